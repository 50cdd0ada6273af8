/** The list of conversations. */

import { useEffect, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { api, exportUrl } from "../api";
import { currentLanguage, day, t, time } from "../i18n/i18n";
import type { Language } from "../i18n/i18n";
import { families } from "../state/conversation";
import type { Family } from "../state/conversation";
import { attempt, headers, more, nextPage, remove, rename, search, searched, show } from "../state/page";
import { useCell } from "../state/store";
import type { Header } from "../wire";
import { Icon, IconButton } from "./icons";
import { Menu } from "./Menu";
import { Name } from "./Name";
import { applyTheme, isDark, theme } from "./theme";
import { useEnter } from "./useEnter";

const TYPING_MS = 200;

interface Props {
  current: string | null;
  onChosen: () => void;
  onOpen: (page: string) => void;
  onLanguage: (language: Language) => void;
}

export function Rail({ current, onChosen, onOpen, onLanguage }: Props) {
  const rows = useCell(headers);
  const cursor = useCell(more);
  return (
    <nav className="rail" aria-label={t("conversations")}>
      <div className="rail-top">
        <span className="brand">dialoom</span>
        <IconButton icon="add" label={t("newConversation")} onClick={() => { void show(null); onChosen(); }} />
      </div>
      <Search />
      <div className="rail-list">
        {grouped(families(rows)).map(([name, group]) => (
          <section key={name}>
            <h2>{name}</h2>
            <ul>
              {group.flatMap(({ first, versions }) => [first, ...versions]).map((row) => (
                <Row key={row.id} row={row} isVersion={!group.some(({ first }) => first.id === row.id)} chosen={row.id === current} onChosen={onChosen} />
              ))}
            </ul>
          </section>
        ))}
        {rows.length === 0 && <p className="empty">{searched.get() === "" ? t("noConversations") : t("nothingFound")}</p>}
        {cursor !== null && <button type="button" className="plain" onClick={() => void nextPage()}>{t("older")}</button>}
      </div>
      <Foot onOpen={onOpen} onLanguage={onLanguage} />
    </nav>
  );
}

const PLACES = [["kb", "book", "knowledge"], ["mcp", "plug", "servers"], ["providers", "chip", "providers"], ["graphs", "graph", "graphs"]] as const;

/** Where else one can go, and how the page looks and speaks. */
function Foot({ onOpen, onLanguage }: Pick<Props, "onOpen" | "onLanguage">) {
  const dark = isDark(useCell(theme));
  const [other, name, lang] = currentLanguage() === "zh" ? (["en", "English", "en"] as const) : (["zh", "中文", "zh-CN"] as const);
  return (
    <div className="rail-foot">
      <div className="places">
        {PLACES.map(([page, icon, words]) => <button key={page} type="button" className="plain" onClick={() => onOpen(page)}><Icon name={icon} /> {t(words)}</button>)}
      </div>
      <div className="rail-bottom">
        <button type="button" className="plain" lang={lang} onClick={() => onLanguage(other)}>{name}</button>
        <span className="spacer" />
        <IconButton icon={dark ? "sun" : "moon"} label={t(dark ? "toLight" : "toDark")} onClick={() => applyTheme(dark ? "light" : "dark")} />
        <IconButton icon="help" label={t("help")} onClick={() => onOpen("help")} />
        <IconButton icon="settings" label={t("settings")} onClick={() => onOpen("settings")} />
      </div>
    </div>
  );
}

function Search() {
  const [text, setText] = useState("");
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(() => void search(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <input id="search" type="search" className="search" value={text} placeholder={t("search")} aria-label={t("search")} onChange={(event) => setText(event.target.value)} />;
}

/** `isVersion` is one of those that stand below the newest of their family, told apart by their time. */
function Row({ row, isVersion, chosen, onChosen }: { row: Header; isVersion: boolean; chosen: boolean; onChosen: () => void }) {
  const [editing, setEditing] = useState(false);
  const title = row.title || t("untitled");
  if (editing) return <Renaming row={row} onClose={() => setEditing(false)} />;
  return (
    <li className={`row ${chosen ? "chosen" : ""} ${isVersion ? "version" : ""}`}>
      <a href={`/c/${row.id}`} aria-current={chosen ? "page" : undefined} onClick={(event) => { if (event.metaKey || event.ctrlKey || event.shiftKey) return; event.preventDefault(); void show(row.id); onChosen(); }}>
        {row.running && <span className="dot" role="img" aria-label={t("answering")} />}
        {isVersion && <Icon name="branch" />}
        <Name title={title} />
        {isVersion && <time dateTime={row.updatedAt}>{time(row.updatedAt)}</time>}
      </a>
      <Menu
        label={t("moreOf", { title })}
        items={[
          { words: t("rename"), act: () => setEditing(true) },
          { words: t("exportMd"), act: () => download(row, "md") },
          { words: t("exportJson"), act: () => download(row, "json") },
          { words: t("exportYaml"), act: () => download(row, "yaml") },
          { words: t("delete"), act: () => void removeAsked(row), danger: true },
        ]}
      />
    </li>
  );
}

/** Enter and going elsewhere keep what was written, Escape does not. */
function Renaming({ row, onClose }: { row: Header; onClose: () => void }) {
  const closed = useRef(false);
  const close = (title: string | null) => {
    if (closed.current) return; // the focus goes with the box
    closed.current = true;
    if (title !== null && title.trim() !== row.title) void rename(row.id, title.trim());
    onClose();
  };
  const box = useRef<HTMLInputElement>(null);
  const escaped = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return false;
    event.stopPropagation();
    close(null);
    return true;
  };
  const enter = useEnter(() => close(box.current?.value ?? null), escaped);
  return (
    <li className="renaming">
      <input ref={box} defaultValue={row.title} aria-label={t("title")} autoFocus maxLength={200} {...enter} onFocus={(event) => event.target.select()} onBlur={(event) => close(event.target.value)} />
    </li>
  );
}

async function removeAsked(row: Header): Promise<void> {
  if (confirm(t("deleteAsk", { title: row.title || t("untitled") }))) await remove(row.id);
}

function download(row: Header, format: "md" | "json" | "yaml"): void {
  const link = document.createElement("a");
  link.href = exportUrl(row.id, format);
  link.download = "";
  link.click();
}

function grouped(all: readonly Family[]): [string, Family[]][] {
  const groups = new Map<string, Family[]>();
  for (const family of all) {
    const name = day(family.first.updatedAt);
    groups.set(name, [...(groups.get(name) ?? []), family]);
  }
  return [...groups];
}

/** Let a person choose a file that was exported before, and open what it holds. */
export async function importFile(file: File): Promise<void> {
  const header = await attempt(() => api.import(file));
  if (header !== null) await show(header.id);
}
