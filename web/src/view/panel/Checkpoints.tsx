/** Where the run stood after each step: what a step changed, and a way to go on from there in a new conversation. */

import { useEffect, useState } from "react";
import { api } from "../../api";
import { number, t, time } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import type { Change } from "../../state/difference";
import { difference } from "../../state/difference";
import { attempt, show } from "../../state/page";
import { checkpointsOf, stateOf } from "../../state/spent";
import type { Checkpoint } from "../../state/spent";
import { stepWords } from "../steps";

/** The checkpoints of a conversation, newest first; read again as its run goes on. */
export function useCheckpoints(open: Conversation): readonly Checkpoint[] {
  const [points, setPoints] = useState<readonly Checkpoint[]>([]);
  const going = `${open.run?.id} ${open.run?.status} ${open.steps.filter((step) => step.state === "done").length}`;
  useEffect(() => {
    let wanted = true;
    void attempt(() => checkpointsOf(open.id)).then((found) => wanted && setPoints(found ?? []));
    return () => {
      wanted = false;
    };
  }, [open.id, going]);
  return points;
}

/** `answering`: while a run goes on nothing can be gone on with elsewhere, and a button that is refused is none. */
export function Checkpoints({ points, answering }: { points: readonly Checkpoint[]; answering: boolean }) {
  const [chosen, setChosen] = useState<{ id: string; changes: Change[] } | null>(null);
  const look = async (at: number) => {
    const [point, before] = [points[at], points[at + 1]];
    if (point === undefined) return;
    if (chosen?.id === point.id) return setChosen(null);
    const states = await attempt(() => Promise.all([before?.run === point.run ? stateOf(before.id) : {}, stateOf(point.id)]));
    if (states !== null) setChosen({ id: point.id, changes: difference(...states) });
  };
  const fork = async (id: string) => {
    const made = await attempt(() => api.post<{ conversationId: string }>(`/checkpoints/${encodeURIComponent(id)}/fork`, {}));
    if (made !== null) await show(made.conversationId);
  };
  return (
    <>
      <h4>{t("checkpoints")}</h4>
      {points.length === 0 && <p className="empty">{t("noCheckpoints")}</p>}
      <ol className="checkpoints">
        {points.map((point, at) => (
          <li key={point.id} className={chosen?.id === point.id ? "chosen" : ""}>
            <button type="button" className="plain" aria-expanded={chosen?.id === point.id} onClick={() => void look(at)}>
              {t("stepNumber", { step: point.step })} {point.nodes.map(stepWords).join(", ") || t("stepFirst")} <time dateTime={point.at}>{time(point.at)}</time> <span className="took">{lasted(point, points[at + 1])}</span>
            </button>
            {point.waiting > 0 && <span className="badge">{t("step_waiting")}</span>}
            <button type="button" disabled={answering} title={answering ? t("stillAnswering") : undefined} onClick={() => void fork(point.id)}>{t("forkHere")}</button>
            {chosen?.id === point.id && <Changes changes={chosen.changes} />}
          </li>
        ))}
      </ol>
    </>
  );
}

/** How long a step took: from the checkpoint before it to its own. */
function lasted(point: Checkpoint, before: Checkpoint | undefined): string {
  if (before === undefined || before.run !== point.run) return "";
  return `· ${number(Math.round((Date.parse(point.at) - Date.parse(before.at)) / 10) / 100)} s`;
}

function Changes({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <p className="help">{t("nothingChanged")}</p>;
  return (
    <dl className="changes" aria-label={t("changed")}>
      {changes.map(({ place, before, after }) => (
        <div key={place}>
          <dt>{place}</dt>
          <dd>
            {before !== undefined && <del><Value value={before} /></del>} {after !== undefined && <ins><Value value={after} /></ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const FIRST_LINES = 8;
const MAX_SHOWN = 20_000;

/** A value; of a long one the first lines, until one asks for all. */
function Value({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  const lines = (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text).split("\n");
  if (whole || lines.length <= FIRST_LINES + 1) return lines.join("\n");
  return (
    <>
      {lines.slice(0, FIRST_LINES).join("\n")}{"\n"}
      <button type="button" className="plain" onClick={() => setWhole(true)}>{t("showAll", { lines: lines.length })}</button>
    </>
  );
}
