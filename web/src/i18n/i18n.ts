/** Words of the page in English and Chinese. A missing key is its own name, and a test fails. */

import en from "./en.json";
import problems from "./problems.zh.json";
import zh from "./zh.json";

export type Language = "en" | "zh";
export type Key = keyof typeof en;

const CATALOGS: Record<Language, Record<string, string>> = { en, zh };
/** The server says what went wrong in English; what it means in other languages, by its code. */
const PROBLEMS: Record<Language, Record<string, string>> = { en: {}, zh: problems };
const STORED = "dialoom.language";

let language: Language = initial();

function initial(): Language {
  const chosen = stored();
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function stored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null; // storage may be forbidden; the page works without
  }
}

export function currentLanguage(): Language {
  return language;
}

/** Speak `next` from now on. */
export function speak(next: Language): void {
  language = next;
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
}

/** Speak what a person chose, and next time too; until one does it is the language of the browser. */
export function setLanguage(next: Language): void {
  speak(next);
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // asked again next time
  }
}

/** Return the words for `key` with `{name}` replaced. */
export function t(key: Key, fields: Record<string, string | number> = {}): string {
  return filled(CATALOGS[language][key] ?? key, fields);
}

/** A field of a card in words; one that has none, like `x`, is called what it is. */
export function named(field: string): string {
  return CATALOGS[language][`field_${field}`] ?? field;
}

/** The words for an error code, or `detail`, which the server sent with it, when there are none. */
export function trouble(code: string, detail: string): string {
  const words = CATALOGS[language][`error.${code}`] ?? PROBLEMS[language][code];
  return words === undefined ? detail || code : filled(words, { detail: detail || code });
}

function filled(words: string, fields: Record<string, string | number>): string {
  return words.replace(/\{(\w+)\}/g, (all, name: string) => String(fields[name] ?? all));
}

export function day(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const days = Math.round((midnight(now) - midnight(at)) / 86_400_000);
  if (days === 0) return t("today");
  if (days === 1) return t("yesterday");
  return at.toLocaleDateString(locale(), { dateStyle: "medium" });
}

function midnight(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

export function time(iso: string): string {
  return new Date(iso).toLocaleTimeString(locale(), { timeStyle: "short" });
}

/** The time of a moment of today, and of any other the day too. */
export function moment(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return midnight(at) === midnight(new Date()) ? time(iso) : at.toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });
}

export function number(value: number): string {
  return value.toLocaleString(locale(), { maximumFractionDigits: 6 });
}

export function locale(): string {
  return language === "zh" ? "zh-CN" : "en";
}
