import type { Me } from "../api";
import { t } from "../i18n/i18n";

/** What a model is called: without one, what answers instead; and no name is said twice. */
export function modelWords({ provider, model, label }: Me["models"][number]): string {
  if (provider !== model) return label;
  return provider === "offline" ? t("passagesOnly") : model;
}
