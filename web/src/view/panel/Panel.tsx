/** Beside the conversation: sources, the run, its graph, data, and the exact text of what is stored. */

import { lazy, Suspense, useState } from "react";
import type { KeyboardEvent } from "react";
import { t } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import type { Cited } from "../App";
import { IconButton } from "../icons";
import { RunTab } from "./RunTab";
import { SourcesTab } from "./SourcesTab";
import { YamlTab } from "./YamlTab";

const GraphTab = lazy(() => import("./GraphTab"));
const TABS = ["sources", "run", "graph", "yaml"] as const;
type Tab = (typeof TABS)[number];

export default function Panel({ open, cited, onClose }: { open: Conversation; cited: Cited | null; onClose: () => void }) {
  const [tab, setTab] = useState<Tab>(cited === null ? "run" : "sources");
  const [seen, setSeen] = useState(cited);
  if (cited !== seen) {
    setSeen(cited);
    setTab("sources");
  }
  const keyed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || event.altKey) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length] ?? tab;
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside className="panel" aria-label={t("panel")}>
      <div className="tabs">
        <div role="tablist" aria-label={t("panel")} onKeyDown={keyed}>
          {TABS.map((name) => (
            <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={tab === name} aria-controls="panel-body" tabIndex={tab === name ? 0 : -1} onClick={() => setTab(name)}>
              {t(`tab_${name}`)}
            </button>
          ))}
        </div>
        <IconButton icon="close" label={t("close")} onClick={onClose} />
      </div>
      <div id="panel-body" role="tabpanel" aria-labelledby={`tab-${tab}`} className="panel-body" tabIndex={0}>
        {tab === "sources" && <SourcesTab cited={cited} />}
        {tab === "run" && <RunTab open={open} />}
        {tab === "graph" && <Suspense fallback={<p aria-busy="true">…</p>}><GraphTab open={open} /></Suspense>}
        {tab === "yaml" && <YamlTab open={open} />}
      </div>
    </aside>
  );
}
