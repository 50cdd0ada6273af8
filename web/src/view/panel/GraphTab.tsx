/** The graph behind a conversation, with what its run is doing now. */

import { useEffect, useState } from "react";
import { api } from "../../api";
import { t } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import { attempt } from "../../state/page";
import type { GraphShape } from "./GraphDrawing";
import { GraphDrawing } from "./GraphDrawing";

export default function GraphTab({ open }: { open: Conversation }) {
  const [graph, setGraph] = useState<GraphShape | null>(null);
  useEffect(() => {
    void attempt(() => api.get<GraphShape>(`/conversations/${open.id}/graph`)).then(setGraph);
  }, [open.id]);
  if (graph === null) return <p className="empty">{t("noGraph")}</p>;
  const running = new Set(open.steps.filter((step) => step.state === "running").map((step) => step.name));
  const done = new Set(open.steps.filter((step) => step.state === "done").map((step) => step.name));
  return <GraphDrawing graph={graph} running={running} done={done} />;
}
