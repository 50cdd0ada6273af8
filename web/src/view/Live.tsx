/** The answer that is on its way. */

import { useEffect, useMemo, useState } from "react";
import { t } from "../i18n/i18n";
import { beside } from "../state/beside";
import type { Step } from "../state/conversation";
import type { Run, RunCall } from "../wire";
import { CiteTip } from "./CiteTip";
import { Markdown } from "./Markdown";
import { Reasoning } from "./Reasoning";
import { stepWords } from "./steps";
import { ToolCallView } from "./ToolCallView";

const ANNOUNCED_MS = 1000;

interface Props {
  open: string;
  /** The index that the answer will have as an entry. */
  index: number;
  run: Run;
  steps: readonly Step[];
  /** The calls that stand with an entry already. */
  known: ReadonlySet<string>;
}

export function Live({ open, index, run, steps, known }: Props) {
  const sources = useMemo(() => new Map(run.sources?.map((source) => [source.index, source])), [run.sources]);
  if (run.status === "waiting") return <p className="waiting" role="status">{t("waitingForYou")}</p>;
  const idle = run.text === "" && run.reasoning === "" && run.toolCalls.every((call) => call.endedAt !== undefined);
  const step = steps.findLast((one) => one.state === "running");
  return (
    <article className="entry assistant live" aria-busy="true" aria-label={t("assistant")}>
      {run.reasoning !== "" && <Reasoning place={`${open} ${index}`} text={run.reasoning} growing={run.text === ""} />}
      {run.text !== "" && (
        <CiteTip sources={sources} answer={run.text}>
          <Markdown text={run.text} growing sources={sources} onCite={(source) => beside.set({ part: "sources", entry: index, source })} />
        </CiteTip>
      )}
      {run.toolCalls.filter((call) => !known.has(call.id)).map((call) => (
        <ToolCallView key={call.id} place={`${open} ${call.id}`} name={call.name} args={call.arguments} result={call.result} isError={call.isError === true} running={call.endedAt === undefined} seconds={lasted(call)} />
      ))}
      {idle && (
        <p className="working" role="status">
          <span className="pulse" aria-hidden="true" /> {step === undefined ? t("working") : t("workingOn", { step: stepWords(step.name) })}
        </p>
      )}
      <Announced text={run.text} />
    </article>
  );
}

/** How long a call took, in seconds; null while it goes on. */
export function lasted(call: RunCall): number | null {
  if (call.startedAt === undefined || call.endedAt === undefined) return null;
  return (Date.parse(call.endedAt) - Date.parse(call.startedAt)) / 1000;
}

/** What a screen reader hears: whole sentences, not pieces of words. */
function Announced({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text.slice(0, 1 + Math.max(...[".", "!", "?", "。", "！", "？", "\n"].map((end) => text.lastIndexOf(end))))), ANNOUNCED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <div className="off-screen" aria-live="polite" aria-atomic="false">{said}</div>;
}
