/** Text as a reader sees it. Finished blocks are drawn once; while a text grows only its last block is drawn again. */

import { memo, useLayoutEffect, useMemo, useRef } from "react";
import type { MouseEvent } from "react";
import { api } from "../api";
import { copy } from "../clipboard";
import { t } from "../i18n/i18n";
import { note } from "../state/page";
import { blocks } from "../text/blocks";
import { closed } from "../text/growing";
import { html } from "../text/markdown";
import type { Known } from "../text/markdown";
import { useLanguage } from "./language";

interface Props {
  text: string;
  growing?: boolean;
  sources?: Known;
  onCite?: (index: number) => void;
}

const NONE: Known = new Set<number>();

export function Markdown({ text, growing = false, sources = NONE, onCite }: Props) {
  const parts = useMemo(() => blocks(text), [text]);
  const click = (event: MouseEvent<HTMLDivElement>) => clicked(event, onCite);
  return (
    <div className="text" onClick={click}>
      {parts.map((part, at) => (
        // a block keeps its place for good: text is only ever added behind it
        <Block key={at} text={part} growing={growing && at === parts.length - 1} sources={sources} />
      ))}
    </div>
  );
}

const Block = memo(function Block({ text, growing, sources }: { text: string; growing: boolean; sources: Known }) {
  const place = useRef<HTMLDivElement>(null);
  const language = useLanguage(); // that of the words on its buttons
  const made = useMemo(() => html(growing ? closed(text) : text, sources), [text, growing, sources, language]);
  // before it is painted: what was drawn while the text grew does not flash bare when it stands for good
  useLayoutEffect(() => {
    if (!growing && place.current !== null) dress(place.current);
  }, [growing, made]);
  return <div className="block" ref={place} dangerouslySetInnerHTML={{ __html: made }} />;
});

/** Colours for code and formulas for math, fetched when there are any; at once when they are here already. */
function dress(place: HTMLElement): void {
  if (place.querySelector("[data-math]") !== null) math(place);
  if (place.querySelector("code[data-language]:not([data-language=''])") !== null) colours(place);
}

const math = fetched(() => import("../text/math").then((module) => module.drawMath));
const colours = fetched(() => import("../text/highlight").then((module) => module.highlight));

function fetched(fetch: () => Promise<(place: HTMLElement) => void>): (place: HTMLElement) => void {
  let draw: ((place: HTMLElement) => void) | null = null;
  return (place) => {
    if (draw !== null) return draw(place);
    void fetch().then((here) => {
      draw = here;
      here(place);
    });
  };
}

function clicked(event: MouseEvent<HTMLDivElement>, onCite?: (index: number) => void): void {
  const target = event.target instanceof Element ? event.target.closest("button") : null;
  if (target === null) return;
  if (target.dataset.cite !== undefined) onCite?.(Number(target.dataset.cite));
  if (target.dataset.copy !== undefined) void copied(target);
  if (target.dataset.picture !== undefined) void picture(target, target.dataset.picture);
}

async function copied(button: HTMLElement): Promise<void> {
  const code = button.closest(".code")?.querySelector("code")?.textContent ?? "";
  if (!(await copy(code))) return note(t("copyFailed"), "error");
  button.textContent = t("copied");
  setTimeout(() => (button.textContent = t("copy")), 1500);
}

/** A picture of this server is shown; one of another is fetched by the server, which asks as nobody in particular. */
async function picture(button: HTMLButtonElement, source: string): Promise<void> {
  const url = new URL(source, location.origin);
  if (url.protocol !== "http:" && url.protocol !== "https:") return;
  if (url.origin === location.origin) return shown(button, url.href);
  button.disabled = true;
  try {
    shown(button, `/api/v1/files/${(await api.fetchImage(url.href)).id}`);
  } catch {
    const link = document.createElement("a"); // a person may still follow it
    link.href = url.href;
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    link.textContent = `${t("pictureElsewhere")} ${url.href}`;
    button.replaceWith(link);
  }
}

function shown(button: HTMLButtonElement, source: string): void {
  const image = document.createElement("img");
  image.src = source;
  image.alt = button.textContent ?? "";
  button.replaceWith(image);
}
