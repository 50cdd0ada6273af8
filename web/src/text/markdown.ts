/** Markdown to safe HTML. Raw HTML is text; pictures load on a click; math needs two dollars or a backslash. */

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import cjkFriendly from "markdown-it-cjk-friendly";
import type { StateBlock, StateInline } from "markdown-it";
import { t } from "../i18n/i18n";

const md = new MarkdownIt({ html: false, linkify: true, breaks: false });
md.use(cjkFriendly);
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => /^(https?:|mailto:|#|\/(?!\/))/i.test(url.trim());
md.inline.ruler.before("escape", "math", inlineMath);
md.block.ruler.before("fence", "math", blockMath, { alt: ["paragraph"] });
md.renderer.rules.math = (tokens, at) => mathHtml(tokens[at]?.content ?? "", tokens[at]?.block === true);
md.renderer.rules.math_block = (tokens, at) => mathHtml(tokens[at]?.content ?? "", true);
md.renderer.rules.image = (tokens, at) => {
  const token = tokens[at];
  const source = md.utils.escapeHtml(String(token?.attrGet("src") ?? ""));
  const words = md.utils.escapeHtml(token?.content || t("picture"));
  return `<button type="button" class="picture" data-picture="${source}">${words}</button>`;
};
md.renderer.rules.fence = (tokens, at) => {
  const token = tokens[at];
  const language = md.utils.escapeHtml((token?.info ?? "").trim().split(/\s/)[0] ?? "");
  const code = md.utils.escapeHtml(token?.content ?? "");
  const copy = md.utils.escapeHtml(t("copy"));
  return (
    `<div class="code"><div class="code-head"><span>${language}</span>` +
    `<button type="button" data-copy>${copy}</button></div>` +
    `<pre tabindex="0"><code data-language="${language}">${code}</code></pre></div>`
  );
};
md.renderer.rules.table_open = () => '<div class="table-scroll" tabindex="0"><table>';
md.renderer.rules.table_close = () => "</table></div>";
// a style attribute is what the content policy refuses; a class says the same
for (const rule of ["th_open", "td_open"]) {
  md.renderer.rules[rule] = (tokens, at) => {
    const side = /text-align:(center|right)/.exec(String(tokens[at]?.attrGet("style") ?? ""))?.[1];
    return `<${tokens[at]?.tag}${side === undefined ? "" : ` class="to-${side}"`}>`;
  };
}
const linkOpen = md.renderer.rules.link_open ?? ((tokens, at, options, _env, self) => self.renderToken(tokens, at, options));
md.renderer.rules.link_open = (tokens, at, options, env, self) => {
  tokens[at]?.attrSet("target", "_blank");
  tokens[at]?.attrSet("rel", "noopener noreferrer nofollow");
  return linkOpen(tokens, at, options, env, self);
};

const MAX_CHARS = 200_000;
const CITED = /[[【［](\d{1,3}(?:\s*[,，、;]\s*\d{1,3}){0,20})[\]】］](?!\()/g;

/** The numbers of an answer's sources: whatever can tell whether it has one. */
export interface Known {
  readonly size: number;
  has: (number: number) => boolean;
}

const ALLOWED = { ADD_ATTR: ["target", "data-copy", "data-picture", "data-math", "data-display", "data-language", "data-cite"] };

/** Return `text` as HTML that runs nothing and loads nothing. `[n]` of a known source becomes a link to it. */
export function html(text: string, sources: Known = new Set()): string {
  const shown = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n\n…` : text;
  const made = sources.size === 0 ? md.render(shown) : cited(md.render(shown), sources);
  return DOMPurify.sanitize(made, ALLOWED);
}

/** Links for citations, outside code. A number no source has stays text. */
function cited(made: string, sources: Known): string {
  return made
    .split(/(<pre[\s\S]*?<\/pre>|<code[\s\S]*?<\/code>)/)
    .map((part, at) => (at % 2 ? part : part.replace(CITED, (all, listed: string) => citations(all, numbersOf(listed), sources))))
    .join("");
}

/** The numbers that `text` cites and a source has. */
export function citedIn(text: string, sources: Known): ReadonlySet<number> {
  return new Set([...text.matchAll(CITED)].flatMap((match) => numbersOf(match[1] ?? "")).filter((number) => sources.has(number)));
}

/** The numbers in one bracket: `[1]`, and `[1, 3]`. */
function numbersOf(listed: string): number[] {
  return listed.split(/[^\d]+/).map(Number);
}

/** A number of its own for each source; a bracket that names one that is not there stays text. */
function citations(all: string, numbers: readonly number[], sources: Known): string {
  return numbers.every((number) => sources.has(number)) ? numbers.map(citation).join(" ") : all;
}

function citation(number: number): string {
  return `<button type="button" class="cite" data-cite="${number}" aria-label="${md.utils.escapeHtml(t("source"))} ${number}">${number}</button>`;
}

function mathHtml(source: string, display: boolean): string {
  return `<span class="math" data-math data-display="${display}">${md.utils.escapeHtml(source)}</span>`;
}

/** `\( … \)` and `\[ … \]` within a line, and `$$ … $$`; a single dollar is money. */
function inlineMath(state: StateInline, silent: boolean): boolean {
  const ends: Record<string, string> = { "\\(": "\\)", "\\[": "\\]", $$: "$$" };
  const end = ends[state.src.slice(state.pos, state.pos + 2)];
  if (end === undefined) return false;
  const close = state.src.indexOf(end, state.pos + 2);
  if (close < 0 || close === state.pos + 2) return false;
  if (!silent) {
    const token = state.push("math", "math", 0);
    token.content = state.src.slice(state.pos + 2, close).trim();
    token.block = end !== "\\)" && isAlone(state.src, state.pos, close + 2);
  }
  state.pos = close + 2;
  return true;
}

/** Whether what stands in `text` from `begin` to `end` has its lines for itself. */
function isAlone(text: string, begin: number, end: number): boolean {
  return /(^|\n)[ \t]*$/.test(text.slice(0, begin)) && /^[ \t]*(\n|$)/.test(text.slice(end));
}

function blockMath(state: StateBlock, begin: number, end: number, silent: boolean): boolean {
  if (lineAt(state, begin) !== "$$") return false;
  let last = begin + 1;
  while (last < end && lineAt(state, last) !== "$$") last += 1;
  if (last >= end) return false;
  if (silent) return true;
  const token = state.push("math_block", "math", 0);
  token.content = state.getLines(begin + 1, last, 0, false).trim();
  token.block = true;
  state.line = last + 1;
  return true;
}

function lineAt(state: StateBlock, line: number): string {
  return state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line] ?? 0).trim();
}
