/** What a line that begins with a slash does: it puts a card into the conversation. */

import { api } from "../api";
import { t } from "../i18n/i18n";
import { attempt, current, note, show } from "../state/page";
import type { CardData } from "../wire";

export interface Command {
  name: string;
  words: () => string;
  card: (rest: string) => Promise<{ type: string; payload: CardData } | null>;
}

const MAX_TITLE = 100;

interface Form {
  id: string;
  title?: string;
  card: CardData;
}

const COMMANDS: readonly Command[] = [
  { name: "form", words: () => t("commandForm"), card: formCard },
  { name: "xyz", words: () => t("commandXyz"), card: async () => ({ type: "XyzLoadCard", payload: {} }) },
  { name: "kb", words: () => t("commandKb"), card: knowledgeCard },
];

export function suggestions(text: string): readonly Command[] {
  const typed = /^\/(\w*)$/.exec(text)?.[1];
  return typed === undefined ? [] : COMMANDS.filter((command) => command.name.startsWith(typed));
}

/** Run the command of `line`. A line that names none, like a path or one with two slashes, is a message.
 *
 * Why one was refused is shown.
 */
export async function runCommand(line: string, conversation: string | null): Promise<"done" | "refused" | "message"> {
  const [, name, rest = ""] = /^\/(\p{L}[\p{L}\p{N}_-]*)(?:\s+([\s\S]*))?$/u.exec(line) ?? [];
  if (name === undefined) return "message";
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) {
    note(t("noSuchCommand", { name, commands: COMMANDS.map((one) => `/${one.name}`).join(", ") }), "error");
    return "refused";
  }
  const made = await attempt(() => command.card(rest.trim()));
  if (made === null) return "refused";
  const id = conversation ?? (await attempt(() => api.create({ title: titleOf(made) })))?.id;
  if (id === undefined || (await attempt(() => api.addCard(id, made.type, made.payload))) === null) return "refused";
  if (current.get()?.id !== id) await show(id);
  return "done";
}

/** What a conversation that begins with a card is called: as the card is. */
function titleOf({ type, payload }: { type: string; payload: CardData }): string {
  return [...String(payload.title || t(`card_${type}` as "card_Form"))].slice(0, MAX_TITLE).join("");
}

async function formCard(wanted: string): Promise<{ type: string; payload: CardData } | null> {
  const { items } = await api.list<Form>("forms");
  const form = items.find((one) => one.id === wanted) ?? (wanted === "" ? items[0] : undefined);
  if (form === undefined) {
    const forms = items.map((one) => one.id).join(", ");
    note(forms === "" ? t("noForms") : t("noSuchForm", { form: wanted, forms }), "error");
    return null;
  }
  return { type: "Form", payload: form.card };
}

async function knowledgeCard(wanted: string): Promise<{ type: string; payload: CardData } | null> {
  const { items } = await api.list<{ id: string; name: string }>("kb");
  const base = wanted === "" ? items[0] : items.find((one) => one.id === wanted || one.name.toLowerCase() === wanted.toLowerCase());
  if (base === undefined) {
    const bases = items.map((one) => one.name).join(", ");
    note(bases === "" ? t("noKnowledge") : t("noSuchBase", { base: wanted, bases }), "error");
    return null;
  }
  return { type: "KnowledgeBase", payload: { kbId: base.id, name: base.name, title: base.name } };
}
