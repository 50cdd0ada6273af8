/** One thing that was said or shown, and what one can do with it. */

import { memo, useMemo, useState } from "react";
import { api } from "../api";
import { CardView } from "../cards/CardView";
import { copy } from "../clipboard";
import { t, time } from "../i18n/i18n";
import { attempt, edit, note, regenerate, show } from "../state/page";
import type { Shown, ShownText } from "../wire";
import { IconButton } from "./icons";
import { Markdown } from "./Markdown";
import { Reasoning } from "./Reasoning";
import { ToolCallView } from "./ToolCallView";

interface Props {
  open: string;
  entry: Shown;
  results: ShownText[];
  last: boolean;
  onCite: (entry: ShownText, index: number) => void;
}

export const EntryView = memo(function EntryView({ open, entry, results, last, onCite }: Props) {
  if (entry.kind === "Special") return <CardView conversation={open} shown={entry} />;
  if (entry.role === "user") return <Said open={open} entry={entry} />;
  if (entry.role === "tool") return <ToolCallView name={entry.toolName ?? ""} result={entry.content} isError={entry.isError === true} />;
  return <Answer open={open} entry={entry} results={results} last={last} onCite={onCite} />;
}, same);

function same(before: Props, after: Props): boolean {
  return (
    before.entry === after.entry &&
    before.last === after.last &&
    before.open === after.open &&
    before.results.length === after.results.length
  );
}

function Said({ open, entry }: { open: string; entry: ShownText }) {
  const [editing, setEditing] = useState(false);
  const [text, setText] = useState(entry.content);
  if (editing) {
    return (
      <form
        className="entry user editing"
        onSubmit={async (event) => {
          event.preventDefault();
          if (await edit(entry.index, text)) setEditing(false);
        }}
      >
        <textarea value={text} aria-label={t("editMessage")} autoFocus rows={Math.min(12, text.split("\n").length + 1)} onChange={(event) => setText(event.target.value)} />
        <div className="buttons">
          <button type="button" onClick={() => setEditing(false)}>{t("cancel")}</button>
          <button type="submit" className="primary">{t("sendAgain")}</button>
        </div>
      </form>
    );
  }
  return (
    <article className="entry user" data-index={entry.index} aria-label={t("you")}>
      <div className="bubble">{entry.content}</div>
      <div className="actions">
        <Time at={entry.at} />
        <IconButton icon="copy" label={t("copy")} onClick={() => void copied(entry.content)} />
        <IconButton icon="edit" label={t("editMessage")} className="edit-message" onClick={() => { setText(entry.content); setEditing(true); }} />
        <IconButton icon="branch" label={t("branchHere")} onClick={() => void branch(open, entry.index + 1)} />
      </div>
    </article>
  );
}

function Answer({ open, entry, results, last, onCite }: Props & { entry: ShownText }) {
  const numbers = useMemo(() => new Set(entry.sources?.map((source) => source.index)), [entry.sources]);
  const answers = new Map(results.map((result) => [result.toolCallId, result]));
  return (
    <article className="entry assistant" data-index={entry.index} aria-label={t("assistant")}>
      {entry.reasoning && <Reasoning text={entry.reasoning} />}
      {entry.content !== "" && <Markdown text={entry.content} sources={numbers} onCite={(index) => onCite(entry, index)} />}
      {entry.toolCalls?.map((call) => {
        const answer = answers.get(call.id);
        return <ToolCallView key={call.id} name={call.name} args={call.arguments ?? call.raw} result={answer?.content} isError={answer?.isError === true} />;
      })}
      {entry.status !== undefined && <p className="status">{t(entry.status)}</p>}
      {entry.content !== "" && <div className="actions">
        <Time at={entry.at} />
        <IconButton icon="copy" label={t("copy")} onClick={() => void copied(entry.content)} />
        {last && <IconButton icon="redo" label={t("regenerate")} onClick={() => void regenerate()} />}
        <IconButton icon="branch" label={t("branchHere")} onClick={() => void branch(open, entry.index + 1)} />
        {numbers.size > 0 && (
          <button type="button" className="plain" onClick={() => onCite(entry, 0)}>
            {t("sources", { count: numbers.size })}
          </button>
        )}
      </div>}
    </article>
  );
}

function Time({ at }: { at: string | undefined }) {
  return at === undefined ? null : <time dateTime={at}>{time(at)}</time>;
}

async function copied(text: string): Promise<void> {
  if (await copy(text)) note(t("copied"));
  else note(t("copyFailed"), "error");
}

async function branch(open: string, at: number): Promise<void> {
  const made = await attempt(() => api.branch(open, at));
  if (made !== null) await show(made.id);
}
