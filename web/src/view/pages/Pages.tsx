/** What is laid over the conversation: knowledge, servers, providers, graphs, settings, help. */

import { useEffect, useRef } from "react";
import type { ReactNode } from "react";
import type { Language } from "../../i18n/i18n";
import { t } from "../../i18n/i18n";
import { Boundary } from "../Boundary";
import { IconButton } from "../icons";
import { SHORTCUTS } from "../shortcuts";
import { ConversationPage } from "./ConversationPage";
import { GraphsPage } from "./GraphsPage";
import { KnowledgePage } from "./KnowledgePage";
import { ProvidersPage } from "./ProvidersPage";
import { ServersPage } from "./ServersPage";
import { SettingsPage } from "./SettingsPage";

const TITLES = { kb: "knowledge", mcp: "servers", providers: "providers", graphs: "graphs", settings: "settings", help: "help", conversation: "conversationSettings" } as const;

export default function Pages({ page, onClose, onLanguage }: { page: string; onClose: () => void; onLanguage: (language: Language) => void }) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    place.current?.showModal();
  }, []);
  const close = () => place.current?.close(); // gives the focus back, and then tells `onClose`
  const name = page in TITLES ? (page as keyof typeof TITLES) : "help";
  const views: Record<keyof typeof TITLES, ReactNode> = {
    kb: <KnowledgePage />,
    mcp: <ServersPage />,
    providers: <ProvidersPage />,
    graphs: <GraphsPage />,
    settings: <SettingsPage onLanguage={onLanguage} />,
    help: <Help />,
    conversation: <ConversationPage />,
  };
  return (
    <dialog ref={place} className="page" aria-label={t(TITLES[name])} onClose={onClose} onClick={(event) => event.target === place.current && close()}>
      <div className="page-in">
        <header>
          <h2>{t(TITLES[name])}</h2>
          <IconButton icon="close" label={t("close")} onClick={close} />
        </header>
        <Boundary>{views[name]}</Boundary>
      </div>
    </dialog>
  );
}

function Help() {
  return (
    <dl className="answers">
      {SHORTCUTS.map(([keys, words]) => (
        <div key={keys}>
          <dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
          <dd>{t(words)}</dd>
        </div>
      ))}
    </dl>
  );
}
