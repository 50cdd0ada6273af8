/** One thing that was said or shown, and what one can do with it. */

import { memo, useMemo, useState } from "react";
import type { ReactNode } from "react";
import { api } from "../api";
import { CardView } from "../cards/CardView";
import { t } from "../i18n/i18n";
import { beside } from "../state/beside";
import type { Fate } from "../state/conversation";
import { attempt, edit, regenerate, show } from "../state/page";
import { addressOf, withFiles, wordsOf } from "../text/attached";
import { citedIn } from "../text/markdown";
import type { RunCall, Shown, ShownText, ToolCall } from "../wire";
import { BranchArrows } from "./BranchArrows";
import type { Versions } from "./BranchArrows";
import { CiteTip } from "./CiteTip";
import { copied } from "./copied";
import { IconButton } from "./icons";
import { useLanguage } from "./language";
import { lasted } from "./Live";
import { Markdown } from "./Markdown";
import { Reasoning } from "./Reasoning";
import { ToolCallView } from "./ToolCallView";
import { useEnter } from "./useEnter";

interface Props {
  open: string;
  entry: Shown;
  /** What came back of its calls. */
  results: ShownText[];
  /** Its calls that the run under way is at. */
  calls: RunCall[];
  /** Its calls that were not made, and why. */
  ended: ReadonlyMap<ToolCall, Fate>;
  /** Why nobody waits for it any more, when it is a card. */
  fate: Fate | null;
  /** Where other versions of it, or of what came back of its calls, are. */
  versions: readonly Versions[];
  last: boolean;
}

export const EntryView = memo(function EntryView(props: Props) {
  const { open, entry } = props;
  useLanguage();
  const arrows = <BranchArrows id={open} all={props.versions} />;
  if (entry.kind === "Special") return <><CardView conversation={open} shown={entry} fate={props.fate} />{arrows}</>;
  if (entry.role === "user") return <Said open={open} entry={entry} arrows={arrows} />;
  if (entry.role === "tool") return <><ToolCallView place={`${open} ${entry.toolCallId ?? entry.index}`} name={entry.toolName ?? ""} result={entry.content} files={entry.attachments} isError={entry.isError === true} />{arrows}</>;
  return <Answer {...props} entry={entry} arrows={arrows} />;
}, same);

function same(before: Props, after: Props): boolean {
  return (
    before.entry === after.entry &&
    before.last === after.last &&
    before.open === after.open &&
    before.results.length === after.results.length &&
    before.ended.size === after.ended.size &&
    [...before.ended].every(([call, fate]) => after.ended.get(call) === fate) &&
    before.fate === after.fate &&
    before.calls.length === after.calls.length &&
    before.versions.length === after.versions.length &&
    before.versions.every((each, at) => each === after.versions[at]) &&
    before.calls.every((call, at) => call === after.calls[at])
  );
}

function Said({ open, entry, arrows }: { open: string; entry: ShownText; arrows: ReactNode }) {
  const [editing, setEditing] = useState(false);
  const files = entry.attachments ?? [];
  const words = wordsOf(entry.content, files);
  if (editing) return <Editing words={words} onSend={(text) => edit(entry.index, withFiles(text, files))} onClose={() => setEditing(false)} />;
  return (
    <article className="entry user" data-index={entry.index} aria-label={t("you")}>
      {words !== "" && <div className="bubble">{words}</div>}
      {files.length > 0 && (
        <ul className="attached">
          {files.map((file) => <li key={`${file.id} ${file.name}`}><a href={addressOf(file)} download={file.name}>{file.name}</a></li>)}
        </ul>
      )}
      <div className="under">
        <div className="actions">
          <IconButton icon="copy" label={t("copy")} onClick={() => void copied(words)} />
          <IconButton icon="edit" label={t("editMessage")} className="edit-message" onClick={() => setEditing(true)} />
          <Further open={open} index={entry.index} />
        </div>
        {arrows}
      </div>
    </article>
  );
}

function Editing({ words, onSend, onClose }: { words: string; onSend: (text: string) => Promise<boolean>; onClose: () => void }) {
  const [text, setText] = useState(words);
  const send = async () => {
    if (text.trim() !== "" && (await onSend(text))) onClose();
  };
  const enter = useEnter(() => void send());
  return (
    <form
      className="entry user editing"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
        event.stopPropagation();
        onClose();
      }}
    >
      <textarea value={text} aria-label={t("editMessage")} autoFocus rows={Math.min(12, text.split("\n").length + 1)} onChange={(event) => setText(event.target.value)} {...enter} />
      <p className="help">{t("editKeys")}</p>
      <div className="buttons">
        <button type="button" onClick={onClose}>{t("cancel")}</button>
        <button type="submit" className="primary" disabled={text.trim() === ""}>{t("sendAgain")}</button>
      </div>
    </form>
  );
}

function Answer({ open, entry, results, calls, ended, last, arrows }: Props & { entry: ShownText; arrows: ReactNode }) {
  const sources = useMemo(() => new Map(entry.sources?.map((source) => [source.index, source])), [entry.sources]);
  const cited = useMemo(() => citedIn(entry.content, sources), [entry.content, sources]);
  const answers = new Map(results.map((result) => [result.toolCallId, result]));
  const going = new Map(calls.map((call) => [call.id, call]));
  const look = (source?: number) => beside.set({ part: "sources", entry: entry.index, ...(source === undefined ? {} : { source }) });
  return (
    <article className="entry assistant" data-index={entry.index} aria-label={t("assistant")}>
      {entry.reasoning && <Reasoning place={`${open} ${entry.index}`} text={entry.reasoning} />}
      {entry.content !== "" && (
        <CiteTip sources={sources} answer={entry.content}>
          <Markdown text={entry.content} sources={sources} onCite={look} />
        </CiteTip>
      )}
      {entry.toolCalls?.map((call) => {
        const [answer, now] = [answers.get(call.id), going.get(call.id)];
        const isError = answer?.isError === true || now?.isError === true;
        return <ToolCallView key={call.id} place={`${open} ${call.id}`} name={call.name} args={call.arguments ?? call.raw} result={answer?.content} files={answer?.attachments} isError={isError} running={answer === undefined && now !== undefined && now.endedAt === undefined} fate={ended.get(call)} seconds={now === undefined ? null : lasted(now)} />;
      })}
      {entry.status !== undefined && <p className="status">{t(entry.status)}</p>}
      <div className="under">
        {arrows}
        {entry.content !== "" && <div className="actions">
          <IconButton icon="copy" label={t("copy")} onClick={() => void copied(entry.content)} />
          {last && <IconButton icon="redo" label={t("regenerate")} onClick={() => void regenerate()} />}
          <Further open={open} index={entry.index} />
          {cited.size > 0 && (
            <button type="button" className="plain" onClick={() => look()}>
              {t("sources", { count: cited.size })}
            </button>
          )}
        </div>}
      </div>
    </article>
  );
}

/** What one can do with any text: go on from it elsewhere, and look at what is stored. */
function Further({ open, index }: { open: string; index: number }) {
  return (
    <>
      <IconButton icon="branch" label={t("branchHere")} onClick={() => void branch(open, index + 1)} />
      <IconButton icon="code" label={t("showYaml")} onClick={() => beside.set({ part: "yaml", entry: index })} />
    </>
  );
}

async function branch(open: string, at: number): Promise<void> {
  const made = await attempt(() => api.branch(open, at));
  if (made !== null) await show(made.id);
}
