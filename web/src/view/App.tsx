/** The page: list, conversation, panel; and what is laid over them. */

import { lazy, Suspense, useEffect, useReducer, useState } from "react";
import { currentLanguage, setLanguage, t } from "../i18n/i18n";
import type { Language } from "../i18n/i18n";
import { beside } from "../state/beside";
import { isAsking } from "../state/conversation";
import { current, dismiss, heading, loading, me, notices, online, signedOut, signIn, stop } from "../state/page";
import { useCell } from "../state/store";
import { Composer } from "./Composer";
import { IconButton } from "./icons";
import { Spoken } from "./language";
import { away, drawer, toggleList } from "./layout";
import { modelWords } from "./modelWords";
import { Name } from "./Name";
import { Rail } from "./Rail";
import { shortcut } from "./shortcuts";
import { Transcript } from "./Transcript";
import { Welcome } from "./Welcome";

const Panel = lazy(() => import("./panel/Panel"));
const Pages = lazy(() => import("./pages/Pages"));

export function App() {
  const open = useCell(current);
  const panel = useCell(beside);
  const rail = useCell(drawer);
  const railAway = useCell(away);
  const coming = useCell(loading); // the empty page is not shown between two conversations, nor is the panel closed
  const isWide = panel !== null && (open !== null || coming);
  const [page, setPage] = useState<string | null>(null);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const chooseLanguage = (language: Language) => {
    setLanguage(language);
    redraw();
  };
  useEffect(() => {
    const escape = () => (page === null ? leave() : undefined); // a page laid over closes itself, and gives the focus back
    const keyed = (event: KeyboardEvent) => shortcut(event, { help: () => setPage("help"), escape });
    addEventListener("keydown", keyed);
    return () => removeEventListener("keydown", keyed);
  }, [page]);
  return (
    <Spoken value={currentLanguage()}>
      <div className={`app ${rail ? "rail-open" : ""} ${railAway ? "rail-away" : ""} ${isWide ? "panel-open" : ""}`}>
        <Rail current={open?.id ?? null} onChosen={() => drawer.set(false)} onOpen={(chosen) => { setPage(chosen); drawer.set(false); }} onLanguage={chooseLanguage} />
        <div className="shade" onClick={() => { drawer.set(false); beside.set(null); }} aria-hidden="true" />
        <main className="centre">
          <header className="bar">
            <IconButton icon="menu" label={t("conversations")} onClick={toggleList} />
            <Title open={open !== null} onChoose={() => setPage("conversation")} />
            <span className="spacer" />
            {open !== null && <IconButton icon="chip" label={t("conversationSettings")} onClick={() => setPage("conversation")} />}
            {open !== null && <IconButton icon="panel" label={t("panel")} pressed={panel !== null} onClick={() => beside.set(panel === null ? { part: "run" } : null)} />}
          </header>
          <Offline />
          {open !== null ? <Transcript key={open.id} open={open} /> : coming ? <div className="loading" aria-busy="true" /> : <Welcome />}
          <Composer key={`composer ${open?.id ?? "new"}`} conversation={open?.id ?? null} busy={open?.run?.status === "running"} asking={open !== null && isAsking(open)} said={open?.total ?? 0} />
        </main>
        {isWide && (
          <Suspense fallback={<aside className="panel" aria-busy="true" />}>
            {open === null ? <aside className="panel" aria-busy="true" /> : <Panel key={open.id} open={open} shown={panel} />}
          </Suspense>
        )}
        {page !== null && (
          <Suspense fallback={null}>
            <Pages page={page} onClose={() => setPage(null)} onLanguage={chooseLanguage} />
          </Suspense>
        )}
        <Notices />
        <SignedOut />
      </div>
    </Spoken>
  );
}

/** What Escape leaves: the list over a narrow page, else the answer that comes, else the panel. */
function leave(): void {
  if (drawer.get()) drawer.set(false);
  else if (current.get()?.run?.status === "running") void stop();
  else beside.set(null);
}

/** What the conversation is called, and who answers in it with which skills. */
function Title({ open, onChoose }: { open: boolean; onChoose: () => void }) {
  const models = useCell(me)?.models ?? [];
  const busy = useCell(loading);
  const header = useCell(heading);
  const { provider, model, skills = [] } = header?.settings ?? {};
  const title = header === null && !open ? t("newConversation") : header?.title || t("untitled");
  useEffect(() => {
    document.title = `${title} – dialoom`;
  }, [title]);
  const chosen = model ? models.find((one) => one.provider === provider && one.model === model) : models.length === 1 ? models[0] : undefined;
  const answers = chosen ? modelWords(chosen) : (model ?? t("chosenByServer"));
  return (
    <div className="title" aria-busy={busy}>
      <h1><Name title={title} /></h1>
      {open ? <button type="button" className="chip" title={t("conversationSettings")} onClick={onChoose}>{answers}</button> : <span className="chip">{answers}</span>}
      {skills.map((skill) => <span key={skill} className="chip skill">{skill}</span>)}
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
        <div key={notice.id} className={`notice ${notice.kind}`} onClick={() => dismiss(notice.id)}>
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
    <div className="notice signed-out" role="alertdialog" aria-label={t("signedOut")}>
      <p>{t(first ? "signInHow" : "signedOutHow")}</p>
      <form onSubmit={(event) => { event.preventDefault(); void signIn(String(new FormData(event.currentTarget).get("token"))); }}>
        <input name="token" type="password" autoComplete="current-password" aria-label={t("token")} placeholder={t("token")} />
        <button type="submit" className="primary">{t("signIn")}</button>
      </form>
    </div>
  );
}
