/** Light, dark, or as the system is. */

import { Cell } from "../state/store";

export type Theme = "system" | "light" | "dark";
const STORED = "dialoom.theme";

/** What was chosen in this browser. */
export const theme = new Cell<Theme>(stored());

function stored(): Theme {
  try {
    const kept = localStorage.getItem(STORED);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(chosen: Theme): void {
  theme.set(chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // chosen again next time
  }
}

/** Whether the page is dark when `chosen` is. */
export function isDark(chosen: Theme): boolean {
  return chosen === "dark" || (chosen === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}
