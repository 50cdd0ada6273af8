/** The run: its steps and tool calls as they happen, what it used, and its checkpoints. */

import { number, t } from "../../i18n/i18n";
import { fates } from "../../state/conversation";
import type { Conversation } from "../../state/conversation";
import { useSpent } from "../../state/spent";
import type { ShownText } from "../../wire";
import { stepWords } from "../steps";
import { Checkpoints, useCheckpoints } from "./Checkpoints";

export function RunTab({ open }: { open: Conversation }) {
  const points = useCheckpoints(open);
  return (
    <>
      {open.steps.length > 0 && (
        <>
          <h4>{t("steps")}</h4>
          <ol className="steps">
            {open.steps.map((step, at) => <li key={at} className={step.state}><span aria-hidden="true">{step.state === "done" ? "●" : "◐"}</span> {stepWords(step.name)}</li>)}
          </ol>
        </>
      )}
      <Used newest={points[0]?.id} />
      <Calls open={open} />
      <Checkpoints points={points} answering={open.run?.status === "running"} />
    </>
  );
}

/** Tokens and cost of the last run. */
function Used({ newest }: { newest: string | undefined }) {
  const spent = useSpent(async () => newest, newest ?? "");
  if (spent === null || spent.requests === 0) return null;
  const tokens = (count: number | null) => (count === null ? "–" : number(count));
  const { input_tokens: read, output_tokens: written } = spent.usage;
  const cost = spent.unpriced < spent.requests ? `$${number(Number(spent.cost))}` : t("costUnknown");
  return (
    <>
      <h4>{t("used")}</h4>
      <dl className="answers used">
        <div><dt>{t("requests")}</dt><dd>{number(spent.requests)}</dd></div>
        {(read !== null || written !== null) && (
          <>
            <div><dt>{t("tokens")}</dt><dd>{t("tokensInOut", { read: tokens(read), written: tokens(written) })}</dd></div>
            <div><dt>{t("cost")}</dt><dd>{cost}</dd></div>
          </>
        )}
      </dl>
    </>
  );
}

/** The tool calls of the newest turn. */
function Calls({ open }: { open: Conversation }) {
  const texts = open.entries.filter((entry): entry is ShownText => entry.kind === "Text");
  const turn = texts.slice(texts.findLastIndex((entry) => entry.role === "user") + 1);
  const results = new Map(turn.filter((entry) => entry.role === "tool").map((entry) => [entry.toolCallId, entry]));
  const calls = turn.flatMap((entry) => entry.toolCalls ?? []);
  if (calls.length === 0) return null;
  const ended = fates(open.entries);
  return (
    <>
      <h4>{t("toolCalls")}</h4>
      <ol className="steps">
        {calls.map((call) => {
          const result = results.get(call.id);
          const state = ended.get(call) ?? (result === undefined ? "waiting" : result.isError ? "failed" : "done");
          return <li key={call.id} className={state}><b>{call.name}</b> {t(`tool_${state}`)}</li>;
        })}
      </ol>
    </>
  );
}
