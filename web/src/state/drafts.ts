/** What was typed or attached and not sent yet, by key: `text:<conversation>`, `card:<conversation>:<card>:<rev>`.
 *
 * Texts are kept in this browser; files, and texts that the browser does not keep, as long as the page is open.
 */

import type { Stored } from "../api";

const PREFIX = "dialoom.draft.";
const MAX_CHARS = 200_000;
const texts = new Map<string, string>();
const files = new Map<string, readonly Stored[]>();

export function draft(key: string): string {
  const known = texts.get(key);
  if (known !== undefined) return known;
  try {
    return localStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return "";
  }
}

export function keepDraft(key: string, text: string): void {
  texts.set(key, text);
  try {
    if (text === "") localStorage.removeItem(PREFIX + key);
    else if (text.length <= MAX_CHARS) localStorage.setItem(PREFIX + key, text);
  } catch {
    // a full or forbidden storage loses a draft on reload, nothing else
  }
}

export function draftFiles(key: string): readonly Stored[] {
  return files.get(key) ?? [];
}

export function keepFiles(key: string, chosen: readonly Stored[]): void {
  files.set(key, chosen);
}

export function forgetDraft(key: string): void {
  keepDraft(key, "");
  files.delete(key);
}

export function moveDraft(from: string, to: string): void {
  keepDraft(to, draft(from));
  keepFiles(to, draftFiles(from));
  forgetDraft(from);
}

/** A draft that holds JSON, or `fallback` when there is none or it cannot be read. */
export function draftOf<T>(key: string, fallback: T): T {
  const text = draft(key);
  if (text === "") return fallback;
  try {
    return JSON.parse(text) as T;
  } catch {
    return fallback;
  }
}
