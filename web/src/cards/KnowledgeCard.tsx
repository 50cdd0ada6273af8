/** A knowledge base inside a conversation: what it holds, what is being read, and a question to try. */

import { useEffect, useState } from "react";
import { api } from "../api";
import { number, t, trouble } from "../i18n/i18n";
import type { CardData, Source } from "../wire";
import { FileField } from "./FileField";
import { listOf, recordOf, useActions } from "./useCard";
import type { CardProps } from "./useCard";
import { attempt, touched } from "../state/page";
import { useCell } from "../state/store";
import { IconButton } from "../view/icons";

interface Document {
  id: string;
  label?: string;
  status?: string;
  chunks?: number;
  error?: string | null;
  errorCode?: string | null;
}

export default function KnowledgeCard(props: CardProps) {
  const { card, shown } = props;
  const [url, setUrl] = useState("");
  const { busy, problem, act } = useActions(props);
  const totals = useTotals(card);
  const progress = recordOf(card.progress);
  const fixed = shown.locked || card.readOnly === true;
  return (
    <div className="fields">
      <p className="help">{t("baseHolds", { docs: number(totals.docs), chunks: number(totals.chunks) })}{card.readOnly === true && ` · ${t("readOnly")}`}</p>
      {Number(progress.total) > 0 && Number(progress.done) < Number(progress.total) && <progress max={Number(progress.total)} value={Number(progress.done)} aria-label={String(progress.phase)} />}
      <ul className="documents">
        {listOf<Document>(card.sources).map((source) => (
          <li key={source.id} className={source.status ?? ""}>
            <span className="label">{source.label || source.id}</span>
            <span className={`badge ${source.status ?? ""}`}>{t(`doc_${source.status ?? "queued"}` as "doc_done")}</span>
            <span className="spacer" />
            {!fixed && source.status === "failed" && <button type="button" className="plain" disabled={busy} onClick={() => void act("retry_source", { sourceId: source.id })}>{t("tryAgain")}</button>}
            {!fixed && <IconButton icon="remove" label={`${t("removeFile")} ${source.label || source.id}`} disabled={busy} onClick={() => void act("remove_source", { sourceId: source.id })} />}
            {source.error && <p className="problem">{trouble(source.errorCode ?? "", source.error)}</p>}
          </li>
        ))}
      </ul>
      {!fixed && (
        <>
          <FileField common={{ "aria-label": t("addFile") }} value="" onChange={(fileId) => void act("add_source", { fileId })} />
          <form className="line" onSubmit={(event) => { event.preventDefault(); void act("add_source", { url }).then((done) => done && setUrl("")); }}>
            <input type="url" value={url} placeholder="https://" aria-label={t("addUrl")} onChange={(event) => setUrl(event.target.value)} />
            <button type="submit" disabled={busy || url === ""}>{t("add")}</button>
          </form>
        </>
      )}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {typeof card.kbId === "string" && <TryQuestion base={card.kbId} />}
      {!shown.locked && (
        <div className="buttons">
          {card.attach ? <button type="button" disabled={busy} onClick={() => void act("detach", {})}>{t("answerWithout")}</button> : <button type="button" className="primary" disabled={busy} onClick={() => void act("attach", {})}>{t("answerFromHere")}</button>}
        </div>
      )}
    </div>
  );
}

/** What the base holds now; what the card says, where the base is not here. */
function useTotals(card: CardData): { docs: number; chunks: number } {
  const kept = recordOf(card.totals);
  const [now, setNow] = useState<{ docs: number; chunks: number } | null>(null);
  const changes = useCell(touched);
  const id = typeof card.kbId === "string" ? card.kbId : "";
  useEffect(() => {
    let wanted = true;
    if (id !== "") api.get<{ documents: number; passages: number }>(`/kb/${encodeURIComponent(id)}/health`).then(({ documents, passages }) => wanted && setNow({ docs: documents, chunks: passages }), () => wanted && setNow(null));
    return () => {
      wanted = false;
    };
  }, [id, changes, card]);
  return now ?? { docs: Number(kept.docs ?? 0), chunks: Number(kept.chunks ?? 0) };
}

export interface Found {
  answer: string;
  sources: (Source & { score?: number })[];
}

export function TryQuestion({ base }: { base: string }) {
  const [found, setFound] = useState<Found | null>(null);
  const [busy, setBusy] = useState(false);
  const ask = async (question: string) => {
    setBusy(true);
    setFound(await attempt(() => api.post<Found>(`/kb/${encodeURIComponent(base)}/query`, { question })));
    setBusy(false);
  };
  return (
    <>
      <form className="line" onSubmit={(event) => { event.preventDefault(); void ask(String(new FormData(event.currentTarget).get("question"))); }}>
        <input name="question" required aria-label={t("tryQuestion")} placeholder={t("tryQuestion")} />
        <button type="submit" disabled={busy}>{t("ask")}</button>
      </form>
      {found !== null && (
        <div aria-live="polite">
          <p>{found.answer}</p>
          <ol className="sources">
            {found.sources.map((source) => (
              <li key={source.index} value={source.index}>
                <b>{source.title || source.id}</b> {source.score !== undefined && <span className="help">{number(source.score)}</span>}
                <blockquote>{source.text}</blockquote>
              </li>
            ))}
          </ol>
        </div>
      )}
    </>
  );
}
