/** What of the page is open: the list as a drawer on a narrow page, and put away on a wide one. */

import { Cell } from "../state/store";

const STORED = "dialoom.list";
const NARROW = "(max-width: 860px)";

/** Whether the list is laid over a narrow page. */
export const drawer = new Cell(false);
/** Whether the list is put away on a wide page. */
export const away = new Cell(stored() === "away");

export function toggleList(): void {
  if (matchMedia(NARROW).matches) drawer.update((open) => !open);
  else put(!away.get());
}

/** Show the list and write in its search. */
export function search(): void {
  if (matchMedia(NARROW).matches) drawer.set(true);
  else put(false);
  setTimeout(() => document.getElementById("search")?.focus()); // once it is drawn
}

function put(isAway: boolean): void {
  away.set(isAway);
  try {
    localStorage.setItem(STORED, isAway ? "away" : "open");
  } catch {
    // open again next time
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
