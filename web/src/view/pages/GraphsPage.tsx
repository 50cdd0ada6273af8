import { lazy, Suspense, useState } from "react";
import { api } from "../../api";
import { t } from "../../i18n/i18n";
import { attempt } from "../../state/page";
import type { GraphShape } from "../panel/GraphDrawing";
import { useList } from "./useList";

const GraphDrawing = lazy(() => import("../panel/GraphDrawing").then((module) => ({ default: module.GraphDrawing })));
const NONE: ReadonlySet<string> = new Set();

/** The graphs of this server, drawn. */
export function GraphsPage() {
  const [graphs] = useList<{ id: string; title?: string }>("graphs");
  const [shape, setShape] = useState<GraphShape | null>(null);
  if (graphs === null) return <p aria-busy="true">…</p>;
  return (
    <>
      {graphs.length === 0 && <p className="empty">{t("noGraph")}</p>}
      <p className="chips">
        {graphs.map((graph) => <button key={graph.id} type="button" onClick={() => void attempt(() => api.get<GraphShape>(`/graphs/${encodeURIComponent(graph.id)}`)).then(setShape)}>{graph.title ?? graph.id}</button>)}
      </p>
      {shape !== null && <Suspense fallback={<p aria-busy="true">…</p>}><GraphDrawing graph={shape} running={NONE} done={NONE} /></Suspense>}
    </>
  );
}
