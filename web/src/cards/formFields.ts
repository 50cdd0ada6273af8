/** Fields of a form: what is typed, what it means, and which fields there are to fill. Pure. */

import type { OutputUnit } from "@cfworker/json-schema";
import { number, t } from "../i18n/i18n";

export interface FormField {
  id: string;
  label?: string;
  type?: string;
  currentValue?: unknown;
  default?: unknown;
  options?: unknown;
  required?: boolean;
  min?: number | string | null;
  max?: number | string | null;
  pattern?: string | null;
  help?: string;
  visibleIf?: Record<string, unknown>;
}

/** What stands in the fields: a text each, several for a choice of many. */
export type Answers = Record<string, string | string[]>;

export function optionOf(option: unknown): { value: string; label: string } {
  if (typeof option === "object" && option !== null) {
    const { value, label } = option as { value?: unknown; label?: unknown };
    return { value: String(value), label: String(label || value) };
  }
  return { value: String(option), label: String(option) };
}

/** What a field begins with. */
export function textOf(field: FormField): string | string[] {
  const value = field.currentValue ?? field.default;
  if (field.type === "multiselect") return Array.isArray(value) ? value.map(String) : [];
  return value === null || value === undefined ? "" : String(value);
}

/** Full-width digits and signs as the keyboard of a Chinese input method writes them. */
export function fromText(text: string): string {
  return text.replace(/[０-９．－＋，]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0));
}

/** The answers by field id: typed, with empty and invisible ones left out. */
export function answersOf(fields: FormField[], texts: Answers): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const field of fields) {
    const value = valueOf(field, texts[field.id] ?? "");
    if (value !== undefined) all[field.id] = value;
  }
  // a field hidden by a hidden field's answer is hidden too: ask until nothing changes
  for (let round = 0; round < fields.length; round += 1) {
    const hidden = fields.filter((field) => field.id in all && !isVisible(field, all));
    if (hidden.length === 0) break;
    for (const field of hidden) delete all[field.id];
  }
  return all;
}

function valueOf(field: FormField, text: string | string[]): unknown {
  if (Array.isArray(text)) return text.length > 0 ? text : undefined;
  if (field.type === "bool") return text === "" ? undefined : text === "true";
  if (text === "") return undefined;
  if (field.type === "number" || field.type === "integer") {
    const value = Number(text.trim());
    return text.trim() !== "" && Number.isFinite(value) ? value : text;
  }
  return text;
}

export function isVisible(field: FormField, values: Record<string, unknown>): boolean {
  return Object.entries(field.visibleIf ?? {}).every(([other, wanted]) => (Array.isArray(wanted) ? wanted : [wanted]).some((each) => each === (values[other] ?? null)));
}

/** One line per field that is wrong, in the words of the page. */
export function violationsOf(errors: OutputUnit[], fields: FormField[], values: Record<string, unknown>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const field of fields) {
    if (field.required && isVisible(field, values) && !(field.id in values)) found[field.id] = t("wrong_required");
  }
  for (const error of errors) {
    const id = decodeURIComponent(error.instanceLocation.replace(/^#\/?/, "").split("/")[0] ?? "").replaceAll("~1", "/").replaceAll("~0", "~");
    const field = fields.find((one) => one.id === id);
    if (field !== undefined) found[id] ??= words(error.keyword, field);
  }
  return found;
}

function words(keyword: string, field: FormField): string {
  const [min, max] = [String(field.min ?? ""), String(field.max ?? "")];
  if (keyword === "type") return t(field.type === "integer" ? "wrong_integer" : "wrong_number");
  if (["minimum", "minLength", "minItems", "formatMinimum"].includes(keyword)) return t("wrong_min", { min });
  if (["maximum", "maxLength", "maxItems", "formatMaximum"].includes(keyword)) return t("wrong_max", { max });
  if (keyword === "pattern" && field.type === "date") return t("wrong_date");
  if (keyword === "pattern" && field.pattern) return field.help ? t("wrong_form", { rule: field.help }) : t("wrong_pattern", { pattern: field.pattern });
  if (keyword === "enum") return t("wrong_option");
  return t("wrong_value");
}

export function shownValue(field: FormField, value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  if (typeof value === "number") return number(value);
  const options = Array.isArray(field.options) ? field.options.map(optionOf) : [];
  const label = (one: unknown) => options.find((option) => option.value === one)?.label ?? String(one);
  return Array.isArray(value) ? value.map(label).join(", ") : label(value);
}
