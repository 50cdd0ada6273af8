/** What was said, newest at the bottom. It follows the bottom only for a reader who is there. */

import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { t, trouble } from "../i18n/i18n";
import { older, spoken, tryAgain } from "../state/page";
import { useCell } from "../state/store";
import { fateOf, fates, isUnfinished } from "../state/conversation";
import type { Conversation, Fate } from "../state/conversation";
import type { RunCall, Shown, ShownText, ToolCall } from "../wire";
import { useVersions } from "./BranchArrows";
import { EntryView } from "./EntryView";
import { Icon } from "./icons";
import { Live } from "./Live";

const NEAR_PX = 80;

export function Transcript({ open }: { open: Conversation }) {
  const place = useRef<HTMLDivElement>(null);
  const atBottom = useRef(true);
  const height = useRef(0);
  const followed = useRef(0);
  const newest = useRef(-1);
  const [behind, setBehind] = useState(false);

  useLayoutEffect(() => {
    const box = place.current;
    if (box === null) return;
    // words may come before the browser tells of a reader who just scrolled up
    if (followed.current - box.scrollTop >= NEAR_PX && !isNearEnd(box)) atBottom.current = false;
    const last = open.entries.at(-1)?.index ?? -1;
    const isNews = last > newest.current || open.run?.status === "running"; // a card that changed is none
    newest.current = last;
    if (!atBottom.current) return isNews ? setBehind(true) : undefined;
    box.scrollTop = box.scrollHeight;
    followed.current = box.scrollTop;
  }, [open.entries, open.run?.text, open.run?.reasoning, open.run?.toolCalls, open.run?.status]);

  // what was put in front pushes everything down: go with it
  useLayoutEffect(() => {
    const box = place.current;
    if (box !== null && !atBottom.current) box.scrollTop += box.scrollHeight - height.current;
    height.current = box?.scrollHeight ?? 0;
  }, [open.start]);

  const said = useCell(spoken);
  useEffect(() => {
    atBottom.current = true;
    setBehind(false);
    const box = place.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  }, [open.id, said]);

  const scrolled = () => {
    const box = place.current;
    if (box === null) return;
    atBottom.current = isNearEnd(box);
    followed.current = box.scrollTop;
    height.current = box.scrollHeight;
    if (atBottom.current) setBehind(false);
    if (box.scrollTop < NEAR_PX) void older();
  };
  const toBottom = () => {
    const box = place.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  };
  const versions = useVersions(open.id, open.run !== null);
  const pieces = joined(open.entries, open.run?.toolCalls ?? []);
  const under = (at: number) => versions.filter(({ index }) => (pieces[at]?.entry.index ?? 0) <= index && index < (pieces[at + 1]?.entry.index ?? open.total));
  return (
    <div className="transcript" ref={place} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label={t("transcript")}>
      <div className="column">
        {open.start > 0 && (
          <button type="button" className="plain older" onClick={() => void older()}>
            {t("older")}
          </button>
        )}
        {pieces.map(({ entry, results, calls, ended, fate }, at) => (
          <EntryView key={entry.index} open={open.id} entry={entry} results={results} calls={calls} ended={ended} fate={fate} versions={under(at)} last={at === pieces.length - 1} />
        ))}
        {open.run !== null && <Live open={open.id} index={open.total} run={open.run} steps={open.steps} known={new Set(pieces.flatMap(({ calls }) => calls.map((call) => call.id)))} />}
        {isUnfinished(open) && (
          <p className="status unfinished">
            {t("unfinished")} <button type="button" onClick={() => void tryAgain()}>{t("goOn")}</button>
          </p>
        )}
        {open.failure !== null && <Failure code={open.failure.code} message={open.failure.message} />}
      </div>
      {behind && (
        <button type="button" className="new-pill" onClick={toBottom}>
          <Icon name="down" /> {t("newMessages")}
        </button>
      )}
    </div>
  );
}

function isNearEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
}

function Failure({ code, message }: { code: string; message: string }) {
  return (
    <div className="failure" role="alert">
      <p>{trouble(code, message)}</p>
      <button type="button" onClick={() => void tryAgain()}>
        {t("tryAgain")}
      </button>
    </div>
  );
}

interface Piece {
  entry: Shown;
  results: ShownText[];
  calls: RunCall[];
  ended: ReadonlyMap<ToolCall, Fate>;
  fate: Fate | null;
}

/** Each entry with the tool answers that belong to its calls, or how far those are; shown once, with the call. */
function joined(entries: readonly Shown[], going: readonly RunCall[]): Piece[] {
  const answers = new Map<string, ShownText>();
  for (const entry of entries) if (entry.kind === "Text" && entry.role === "tool" && entry.toolCallId) answers.set(entry.toolCallId, entry);
  const notMade = fates(entries);
  const shown: Piece[] = [];
  const taken = new Set<ShownText>();
  for (const entry of entries) {
    if (entry.kind === "Text" && taken.has(entry)) continue;
    const calls = entry.kind === "Text" ? (entry.toolCalls ?? []) : [];
    const results = calls.map((call) => answers.get(call.id)).filter((answer) => answer !== undefined);
    results.forEach((result) => taken.add(result));
    shown.push({ entry, results, calls: going.filter((call) => calls.some((one) => one.id === call.id)), ended: fatesOf(calls, notMade), fate: entry.kind === "Special" ? fateOf(entry, entries) : null });
  }
  return shown;
}

function fatesOf(calls: readonly ToolCall[], all: ReadonlyMap<ToolCall, Fate>): ReadonlyMap<ToolCall, Fate> {
  const found = new Map<ToolCall, Fate>();
  for (const call of calls) {
    const fate = all.get(call);
    if (fate !== undefined) found.set(call, fate);
  }
  return found;
}
