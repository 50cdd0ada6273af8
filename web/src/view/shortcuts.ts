/** Keys that work anywhere on the page. */

import { show } from "../state/page";
import { search } from "./layout";

interface Acts {
  help: () => void;
  escape: () => void;
}

export const SHORTCUTS = [
  ["Enter", "keySend"],
  ["Shift Enter", "keyLine"],
  ["/", "keyCommands"],
  ["Ctrl/⌘ K", "keySearch"],
  ["Ctrl/⌘ Shift O", "keyNew"],
  ["Esc", "keyStop"],
  ["↑", "keyEdit"],
  ["Alt ← →", "keyBranches"],
  ["?", "keyHelp"],
] as const;

export function shortcut(event: KeyboardEvent, acts: Acts): void {
  if (event.isComposing || event.defaultPrevented) return;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "k") return taken(event, search);
  if (command && event.shiftKey && event.key.toLowerCase() === "o") return taken(event, () => void show(null));
  if (event.key === "Escape") return acts.escape();
  if (event.altKey && event.key === "ArrowLeft") return taken(event, () => click(".branch-before"));
  if (event.altKey && event.key === "ArrowRight") return taken(event, () => click(".branch-after"));
  if (event.key === "ArrowUp" && emptyComposer(event.target)) return taken(event, editLast);
  if (event.key === "?" && !writing(event.target)) taken(event, acts.help);
}

function taken(event: KeyboardEvent, act: () => void): void {
  event.preventDefault();
  act();
}

function click(selector: string): void {
  [...document.querySelectorAll<HTMLElement>(selector)].at(-1)?.click();
}

function emptyComposer(target: EventTarget | null): boolean {
  return target instanceof HTMLTextAreaElement && target.closest(".composer") !== null && target.value === "";
}

function editLast(): void {
  [...document.querySelectorAll<HTMLElement>(".edit-message")].at(-1)?.click();
}

function writing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
