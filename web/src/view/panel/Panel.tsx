/** Beside the conversation: sources, run, graph, data, and the exact text of what is stored. */

import { lazy, Suspense } from "react";
import type { KeyboardEvent } from "react";
import { t } from "../../i18n/i18n";
import type { Beside } from "../../state/beside";
import { beside, PARTS } from "../../state/beside";
import type { Conversation } from "../../state/conversation";
import { IconButton } from "../icons";
import { Boundary } from "../Boundary";
import { Edge } from "./Edge";
import { RunTab } from "./RunTab";
import { SourcesTab } from "./SourcesTab";
import { YamlTab } from "./YamlTab";

const GraphTab = lazy(() => import("./GraphTab"));
const DataTab = lazy(() => import("./DataTab"));

export default function Panel({ open, shown }: { open: Conversation; shown: Beside }) {
  const { part } = shown;
  const keyed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || event.altKey) return;
    const next = PARTS[(PARTS.indexOf(part) + step + PARTS.length) % PARTS.length] ?? part;
    beside.set({ part: next });
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside className="panel" aria-label={t("panel")}>
      <Edge />
      <div className="tabs">
        <div role="tablist" aria-label={t("panel")} onKeyDown={keyed}>
          {PARTS.map((name) => (
            <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={part === name} aria-controls="panel-body" tabIndex={part === name ? 0 : -1} onClick={() => beside.set({ part: name })}>
              {t(`tab_${name}`)}
            </button>
          ))}
        </div>
        <IconButton icon="close" label={t("close")} onClick={() => beside.set(null)} />
      </div>
      <div id="panel-body" role="tabpanel" aria-labelledby={`tab-${part}`} className="panel-body" tabIndex={0}>
        <Boundary key={part}>
          <Suspense fallback={<p aria-busy="true">…</p>}>
            {part === "sources" && <SourcesTab open={open} shown={shown} />}
            {part === "run" && <RunTab open={open} />}
            {part === "graph" && <GraphTab open={open} />}
            {part === "data" && <DataTab open={open} shown={shown} />}
            {part === "yaml" && <YamlTab open={open} shown={shown} />}
          </Suspense>
        </Boundary>
      </div>
    </aside>
  );
}
