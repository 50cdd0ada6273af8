/** The page: list, conversation, panel; and what is laid over them. */

import { lazy, Suspense, useEffect, useReducer, useState } from "react";
import { currentLanguage, setLanguage, t } from "../i18n/i18n";
import type { Language } from "../i18n/i18n";
import { current, dismiss, headers, loading, me, notices, online, signedOut, signIn, stop } from "../state/page";
import { useCell } from "../state/store";
import type { ShownText } from "../wire";
import { BranchArrows } from "./BranchArrows";
import { Composer } from "./Composer";
import { IconButton } from "./icons";
import { Rail } from "./Rail";
import { shortcut } from "./shortcuts";
import { Transcript } from "./Transcript";
import { Welcome } from "./Welcome";

const Panel = lazy(() => import("./panel/Panel"));
const Pages = lazy(() => import("./pages/Pages"));

export interface Cited {
  entry: ShownText;
  index: number;
}

export function App() {
  const open = useCell(current);
  const [rail, setRail] = useState(false);
  const [panel, setPanel] = useState(false);
  const [page, setPage] = useState<string | null>(null);
  const [cited, setCited] = useState<Cited | null>(null);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const speak = (language: Language) => {
    setLanguage(language);
    redraw();
  };
  useEffect(() => {
    const keyed = (event: KeyboardEvent) => shortcut(event, { help: () => setPage("help"), escape: () => (page === null ? void stop() : setPage(null)) });
    addEventListener("keydown", keyed);
    return () => removeEventListener("keydown", keyed);
  }, [page]);
  return (
    <div className={`app ${rail ? "rail-open" : ""} ${panel ? "panel-open" : ""}`} key={currentLanguage()}>
      <Rail current={open?.id ?? null} onChosen={() => setRail(false)} onOpen={setPage} />
      <div className="shade" onClick={() => { setRail(false); setPanel(false); }} aria-hidden="true" />
      <main className="centre">
        <header className="bar">
          <IconButton icon="menu" label={t("conversations")} className="only-small" onClick={() => setRail(!rail)} />
          <Title id={open?.id ?? null} />
          {open !== null && <BranchArrows id={open.id} />}
          <span className="spacer" />
          {open !== null && <IconButton icon="chip" label={t("conversationSettings")} onClick={() => setPage("conversation")} />}
          {open !== null && <IconButton icon="panel" label={t("panel")} pressed={panel} onClick={() => setPanel(!panel)} />}
        </header>
        <Offline />
        {open === null ? (
          <Welcome />
        ) : (
          <Transcript key={open.id} open={open} onCite={(entry, index) => { setCited({ entry, index }); setPanel(true); }} />
        )}
        <Composer key={`composer ${open?.id ?? "new"}`} conversation={open?.id ?? null} busy={open?.run?.status === "running"} />
      </main>
      {panel && open !== null && (
        <Suspense fallback={<aside className="panel" aria-busy="true" />}>
          <Panel open={open} cited={cited} onClose={() => setPanel(false)} />
        </Suspense>
      )}
      {page !== null && (
        <Suspense fallback={null}>
          <Pages page={page} onClose={() => setPage(null)} onLanguage={speak} />
        </Suspense>
      )}
      <Notices />
      <SignedOut />
    </div>
  );
}

function Title({ id }: { id: string | null }) {
  const known = useCell(me);
  const busy = useCell(loading);
  const row = useCell(headers).find((header) => header.id === id);
  const model = known?.models[0];
  return (
    <div className="title" aria-busy={busy}>
      {id === null ? t("newConversation") : row?.title || t("conversation")}
      {model !== undefined && <span className="chip">{model.label}</span>}
    </div>
  );
}

function Offline() {
  const reached = useCell(online) || signedOut.get();
  return reached ? null : <div className="offline" role="status">{t("offline")}</div>;
}

function Notices() {
  const all = useCell(notices);
  return (
    <div className="notices" aria-live="assertive">
      {all.map((notice) => (
        <div key={notice.id} className={`notice ${notice.kind}`}>
          {notice.text}
          <IconButton icon="close" label={t("dismiss")} onClick={() => dismiss(notice.id)} />
        </div>
      ))}
    </div>
  );
}

/** The session ended: what is on the page stays, and the next sign-in in any tab goes on from here. */
function SignedOut() {
  const first = useCell(me) === null;
  if (!useCell(signedOut)) return null;
  return (
    <div className="notice error signed-out" role="alertdialog" aria-label={t("signedOut")}>
      <p>{t(first ? "signInHow" : "signedOutHow")}</p>
      <form onSubmit={(event) => { event.preventDefault(); void signIn(String(new FormData(event.currentTarget).get("token"))); }}>
        <input name="token" type="password" autoComplete="current-password" aria-label={t("token")} placeholder={t("token")} />
        <button type="submit" className="primary">{t("signIn")}</button>
      </form>
    </div>
  );
}
