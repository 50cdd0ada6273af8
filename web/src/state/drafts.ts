/** What was typed and not sent yet, by key, in this browser: `text:<conversation>`, `card:<conversation>:<card>:<rev>`. */

const PREFIX = "dialoom.draft.";
const MAX_CHARS = 200_000;

export function draft(key: string): string {
  try {
    return localStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return "";
  }
}

export function keepDraft(key: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(PREFIX + key);
    else if (text.length <= MAX_CHARS) localStorage.setItem(PREFIX + key, text);
  } catch {
    // a full or forbidden storage loses a draft on reload, nothing else
  }
}

export function forgetDraft(key: string): void {
  keepDraft(key, "");
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
