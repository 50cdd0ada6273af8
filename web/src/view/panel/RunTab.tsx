/** The run: its steps as they happen, and the checkpoints one can look into or go on from. */

import { useEffect, useState } from "react";
import { api } from "../../api";
import { t, time } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import { attempt, show } from "../../state/page";

interface Checkpoint {
  id: string;
  step: number;
  at?: string;
  nodes: string[];
  next: string[];
}

export function RunTab({ open }: { open: Conversation }) {
  const [points, setPoints] = useState<Checkpoint[]>([]);
  const [chosen, setChosen] = useState<{ id: string; state: unknown } | null>(null);
  const running = open.run?.id ?? null;
  useEffect(() => {
    let wanted = true;
    void attempt(() => api.get<{ items: Checkpoint[] }>(`/conversations/${open.id}/checkpoints`)).then((found) => wanted && setPoints(found?.items ?? []));
    return () => {
      wanted = false;
    };
  }, [open.id, running, open.steps.length]);
  const look = async (id: string) => {
    const found = await attempt(() => api.get<{ state: unknown }>(`/checkpoints/${encodeURIComponent(id)}`));
    if (found !== null) setChosen({ id, state: found.state });
  };
  const fork = async (id: string) => {
    const made = await attempt(() => api.post<{ conversationId: string }>(`/checkpoints/${encodeURIComponent(id)}/fork`, {}));
    if (made !== null) await show(made.conversationId);
  };
  return (
    <>
      {open.steps.length > 0 && (
        <ol className="steps">
          {open.steps.map((step, at) => <li key={at} className={step.state}><span aria-hidden="true">{step.state === "done" ? "●" : "◐"}</span> {step.name}</li>)}
        </ol>
      )}
      <h4>{t("checkpoints")}</h4>
      {points.length === 0 && <p className="empty">{t("noCheckpoints")}</p>}
      <ol className="checkpoints">
        {points.map((point) => (
          <li key={point.id} className={chosen?.id === point.id ? "chosen" : ""}>
            <button type="button" className="plain" onClick={() => void look(point.id)}>
              {t("stepNumber", { step: point.step })} {point.nodes.join(", ")} {point.at && <time dateTime={point.at}>{time(point.at)}</time>}
            </button>
            <button type="button" onClick={() => void fork(point.id)}>{t("forkHere")}</button>
          </li>
        ))}
      </ol>
      {chosen !== null && <pre tabIndex={0}>{JSON.stringify(chosen.state, null, 2)}</pre>}
    </>
  );
}
