/** May a tool be run, and with which arguments: decided once. */

import { useState } from "react";
import { t } from "../i18n/i18n";
import { isDone, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";

export function ApprovalCard(props: CardProps) {
  const { card, shown } = props;
  const asked = JSON.stringify(card.arguments ?? {}, null, 2);
  const [draft, write, forget] = useCardDraft(props, { args: asked, comment: "" });
  const [editing, setEditing] = useState(draft.args !== asked);
  const [wrong, setWrong] = useState(false);
  const { busy, problem, act } = useActions(props);
  const decide = async (approved: boolean) => {
    const edited = approved && editing ? parsed(draft.args) : undefined;
    if (edited === null) return setWrong(true);
    setWrong(false);
    const input = { approved, comment: draft.comment, ...(edited === undefined ? {} : { editedArguments: edited }) };
    if (await act("decide", input)) forget();
  };
  const decided = isDone(card) || shown.locked;
  return (
    <div className="fields">
      {card.question ? <p>{String(card.question)}</p> : null}
      {card.toolName && card.toolName !== card.title ? <p><b>{String(card.toolName)}</b></p> : null}
      {editing && !decided ? (
        <textarea className="code-box" rows={Math.min(14, draft.args.split("\n").length + 1)} aria-label={t("arguments")} aria-invalid={wrong} value={draft.args} onChange={(event) => write({ ...draft, args: event.target.value })} />
      ) : (
        <pre tabIndex={0}>{JSON.stringify(card.editedArguments ?? card.arguments ?? {}, null, 2)}</pre>
      )}
      {wrong && <p className="problem" role="alert">{t("notJson")}</p>}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {decided ? (
        card.comment ? <p className="help">{String(card.comment)}</p> : null
      ) : (
        <>
          <input aria-label={t("reason")} placeholder={t("reason")} value={draft.comment} maxLength={2000} onChange={(event) => write({ ...draft, comment: event.target.value })} />
          <div className="buttons">
            <button type="button" disabled={busy} onClick={() => void decide(false)}>{t("decline")}</button>
            <button type="button" disabled={busy} onClick={() => setEditing(!editing)} aria-pressed={editing}>{t("editArguments")}</button>
            <button type="button" className="primary" disabled={busy} onClick={() => void decide(true)}>{t("approve")}</button>
          </div>
        </>
      )}
    </div>
  );
}

/** The object that `text` holds; null when it is none. */
function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
