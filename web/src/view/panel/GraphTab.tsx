/** The graph behind a conversation, with what its run is doing now, and where it stood after each step. */

import { useEffect, useState } from "react";
import { api } from "../../api";
import { t } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import { attempt } from "../../state/page";
import { Checkpoints, useCheckpoints } from "./Checkpoints";
import type { GraphShape } from "./GraphDrawing";
import { GraphDrawing } from "./GraphDrawing";

export default function GraphTab({ open }: { open: Conversation }) {
  const [graph, setGraph] = useState<GraphShape | null>(null);
  const points = useCheckpoints(open);
  useEffect(() => {
    let wanted = true;
    void attempt(() => api.get<GraphShape>(`/conversations/${open.id}/graph`)).then((found) => wanted && setGraph(found));
    return () => {
      wanted = false;
    };
  }, [open.id]);
  const running = new Set(open.steps.filter((step) => step.state === "running").map((step) => step.name));
  const done = new Set(points.filter((point) => point.run === points[0]?.run).flatMap((point) => point.nodes));
  return (
    <>
      {graph === null ? <p className="empty">{t("noGraph")}</p> : <GraphDrawing graph={graph} running={running} done={done} />}
      <Checkpoints points={points} answering={open.run?.status === "running"} />
    </>
  );
}
