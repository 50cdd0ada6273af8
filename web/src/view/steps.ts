import { t } from "../i18n/i18n";

/** What a step of a dialog does, in words; a graph's own nodes keep their names. */
export function stepWords(name: string): string {
  if (name === "model") return t("stepModel");
  return name === "tools" ? t("stepTools") : name;
}
