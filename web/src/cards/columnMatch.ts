/** Pairs of asked and given columns: what is suggested, and what speaks against a choice. Pure. */

import { t } from "../i18n/i18n";

export interface Required {
  name: string;
  label?: string;
  dtype?: string;
  required?: boolean;
  synonyms?: string[];
}

export interface Preview {
  name: string;
  dtype?: string;
  samples?: unknown[];
  nullRatio?: number | null;
}

export interface Mapping {
  requiredColumn: string;
  matchedColumn?: string | null;
  confidence?: number | null;
  by?: string | null;
}

export interface Trouble {
  words: string;
  blocks: boolean;
}

/** The card's own pairs first, and a name or synonym in common for what has none. */
export function suggested(required: Required[], columns: Preview[], mappings: Mapping[]): Record<string, string> {
  const chosen: Record<string, string> = {};
  const names = new Set(columns.map((column) => column.name));
  for (const each of mappings) {
    if (each.matchedColumn && names.has(each.matchedColumn)) chosen[each.requiredColumn] = each.matchedColumn;
  }
  const taken = new Set(Object.values(chosen));
  for (const want of required) {
    if (chosen[want.name] !== undefined) continue;
    const known = [want.name, want.label ?? "", ...(want.synonyms ?? [])].map(plain).filter(Boolean);
    const found = columns.find((column) => !taken.has(column.name) && known.includes(plain(column.name)));
    if (found !== undefined) {
      chosen[want.name] = found.name;
      taken.add(found.name);
    }
  }
  return chosen;
}

function plain(name: string): string {
  return name.normalize("NFKC").trim().toLowerCase().replace(/[\s_-]+/g, "");
}

export function troublesOf(required: Required[], columns: Preview[], chosen: Record<string, string>): Record<string, Trouble> {
  const found: Record<string, Trouble> = {};
  const uses = new Map<string, number>();
  for (const column of Object.values(chosen)) if (column !== "") uses.set(column, (uses.get(column) ?? 0) + 1);
  for (const want of required) {
    const column = columns.find((one) => one.name === chosen[want.name]);
    if (column === undefined) {
      if (want.required !== false) found[want.name] = { words: t("wrong_required"), blocks: true };
    } else if ((uses.get(column.name) ?? 0) > 1) {
      found[want.name] = { words: t("takenTwice"), blocks: true };
    } else if (!fits(want.dtype, column.dtype)) {
      found[want.name] = { words: t("otherKind", { kind: column.dtype ?? "" }), blocks: false };
    }
  }
  return found;
}

const NUMBERS = new Set(["number", "float", "int", "integer", "double", "float64", "int64"]);

function fits(wanted: string | undefined, given: string | undefined): boolean {
  return !wanted || !given || wanted === given || NUMBERS.has(wanted) === NUMBERS.has(given);
}
