import hljs from "highlight.js/lib/common";

const MAX_CHARS = 50_000;

/** Colour every code block below `place` whose language is known. */
export function highlight(place: HTMLElement): void {
  for (const code of place.querySelectorAll<HTMLElement>("code[data-language]")) {
    const language = code.dataset.language ?? "";
    const text = code.textContent ?? "";
    if (hljs.getLanguage(language) === undefined || text.length > MAX_CHARS) continue;
    code.innerHTML = hljs.highlight(text, { language, ignoreIllegals: true }).value;
    delete code.dataset.language;
  }
}
