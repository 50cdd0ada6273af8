import { time, t } from "../i18n/i18n";
import { listOf, useActions } from "./useCard";
import type { CardProps } from "./useCard";

interface Step {
  id: string;
  displayName?: string;
  order?: number;
  status?: string;
  progress?: number | null;
  startedAt?: string | null;
  endedAt?: string | null;
  message?: string;
}

const SIGNS: Record<string, string> = { pending: "○", running: "◐", done: "●", failed: "✕", skipped: "–", waiting: "⏸" };

/** How far a piece of work is, step by step. */
export function WorkflowCard(props: CardProps) {
  const steps = listOf<Step>(props.card.steps).toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0));
  const { busy, problem, act } = useActions(props);
  const going = steps.some((step) => step.status === "running" || step.status === "waiting");
  return (
    <>
      <ol className="steps">
        {steps.map((step) => (
          <li key={step.id} className={step.status ?? "pending"}>
            <span aria-hidden="true">{SIGNS[step.status ?? "pending"]}</span>
            <span className="off-screen">{t(`step_${step.status ?? "pending"}` as "step_done")}</span>
            <span>{step.displayName || step.id}</span>
            {typeof step.progress === "number" && step.status === "running" && <progress max={1} value={step.progress} aria-label={step.displayName || step.id} />}
            {step.message && <span className="help">{step.message}</span>}
            <span className="spacer" />
            {step.endedAt && <time className="help" dateTime={step.endedAt}>{time(step.endedAt)}</time>}
            {!props.shown.locked && step.status === "failed" && <button type="button" className="plain" disabled={busy} onClick={() => void act("retry", { stepId: step.id })}>{t("tryAgain")}</button>}
          </li>
        ))}
      </ol>
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {going && !props.shown.locked && <div className="buttons"><button type="button" disabled={busy} onClick={() => void act("cancel", {})}>{t("cancel")}</button></div>}
    </>
  );
}
