/** Light, dark, or as the system is. */

export type Theme = "system" | "light" | "dark";
const STORED = "dialoom.theme";

export function storedTheme(): Theme {
  try {
    const theme = localStorage.getItem(STORED);
    return theme === "light" || theme === "dark" ? theme : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(STORED, theme);
  } catch {
    // chosen again next time
  }
}
