/** A card in its frame. A type nobody knows here shows its fields; one that cannot be read shows its text. */

import { lazy, memo, Suspense, useLayoutEffect, useRef } from "react";
import type { ComponentType, FocusEvent } from "react";
import { t, trouble } from "../i18n/i18n";
import { beside } from "../state/beside";
import type { Fate } from "../state/conversation";
import { Boundary } from "../view/Boundary";
import { IconButton } from "../view/icons";
import { useLanguage } from "../view/language";
import type { ShownCard } from "../wire";
import { ApprovalCard } from "./ApprovalCard";
import { ErrorCard } from "./ErrorCard";
import { FormCard } from "./FormCard";
import { GenericCard } from "./GenericCard";
import { PlotCard } from "./PlotCard";
import { SourcesCard } from "./SourcesCard";
import { Until } from "./Until";
import type { CardProps } from "./useCard";
import { WorkflowCard } from "./WorkflowCard";

const VIEWS: Record<string, ComponentType<CardProps>> = {
  Approval: ApprovalCard,
  ColumnMatch: lazy(() => import("./ColumnMatchCard")),
  Error: ErrorCard,
  Form: FormCard,
  GriddingParamCard: lazy(() => import("./GriddingCard")),
  KnowledgeBase: lazy(() => import("./KnowledgeCard")),
  ParameterSet: lazy(() => import("./ParameterCard")),
  Plot: PlotCard,
  Sources: SourcesCard,
  Table: lazy(() => import("./TableCard")),
  WorkflowStatus: WorkflowCard,
  XyzLoadCard: lazy(() => import("./XyzCard")),
};

export const CardView = memo(function CardView({ conversation, shown, fate }: { conversation: string; shown: ShownCard; fate: Fate | null }) {
  useLanguage();
  const View = VIEWS[shown.type] ?? GenericCard;
  const title = String(shown.card?.title || t(`card_${shown.type}` as "card_Form"));
  const status = fate ?? String(shown.card?.status ?? "");
  const place = useRef<HTMLElement>(null);
  const held = useRef(false);
  useLayoutEffect(() => {
    // the button that was pressed is gone with the state before: who works with keys goes on from the card
    if (held.current && document.activeElement === document.body) place.current?.focus({ preventScroll: true });
  }, [shown.rev]);
  const left = (event: FocusEvent<HTMLElement>) => {
    // a button that is pressed is switched off, and loses the focus to nobody
    held.current = event.relatedTarget === null ? event.target.matches(":disabled") : event.currentTarget.contains(event.relatedTarget);
  };
  return (
    <section ref={place} tabIndex={-1} onFocus={() => (held.current = true)} onBlur={left} className="card" data-type={shown.type} data-index={shown.index} aria-label={title}>
      <header>
        <h3>{title.startsWith("card_") ? shown.type : title}</h3>
        {status !== "" && <span className={`badge ${status}`}>{statusWords(status)}</span>}
        <span className="spacer" />
        <IconButton icon="code" label={t("showYaml")} onClick={() => beside.set({ part: "yaml", entry: shown.rev })} />
      </header>
      {shown.card === null ? (
        <Unreadable shown={shown} />
      ) : (
        <Suspense fallback={<p aria-busy="true">…</p>}>
          {typeof shown.card.error === "string" && <p className="problem" role="alert">{trouble(shown.card.errorCode ?? "", shown.card.error)}</p>}
          {!shown.locked && typeof shown.card.expiresAt === "string" && <Until when={shown.card.expiresAt} />}
          {fate === "expired" && <p className="help">{t("expiredThen")}</p>}
          {/* a card of another state is another form: nothing typed leaks from one to the next */}
          <Boundary key={`${String(shown.card.id)}:${shown.rev}`}>
            <View conversation={conversation} shown={shown} card={shown.card} />
          </Boundary>
        </Suspense>
      )}
    </section>
  );
});

function statusWords(status: string): string {
  const words = t(`status_${status}` as "status_submitted");
  return words.startsWith("status_") ? status : words;
}

function Unreadable({ shown }: { shown: ShownCard }) {
  return (
    <>
      <p className="problem">{t("cardUnreadable")} {shown.problem}</p>
      <details>
        <summary>{t("asStored")}</summary>
        <pre tabIndex={0}>{shown.payload}</pre>
      </details>
    </>
  );
}
