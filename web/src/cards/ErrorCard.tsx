import { t, trouble } from "../i18n/i18n";
import { useActions } from "./useCard";
import type { CardProps } from "./useCard";

/** What went wrong in a run, and what to do next. */
export function ErrorCard(props: CardProps) {
  const { card } = props;
  const { busy, problem, act } = useActions(props);
  return (
    <div className="fields">
      <p className="problem">{trouble(String(card.code ?? ""), String(card.message ?? ""))}</p>
      {card.hint ? <p className="help">{String(card.hint)}</p> : null}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {card.retryable === true && (
        <div className="buttons">
          <button type="button" disabled={busy} onClick={() => void act("retry", {})}>{t("tryAgain")}</button>
        </div>
      )}
    </div>
  );
}
