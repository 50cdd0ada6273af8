import { useState } from "react";
import { api } from "../../api";
import { t } from "../../i18n/i18n";
import { attempt } from "../../state/page";
import { useList } from "./useList";

interface Server {
  name: string;
  transport: string;
  command?: string;
  arguments?: string[];
  url?: string;
  enabled: boolean;
  problems?: string[];
}

/** Tool servers as they are configured, and whether they answer. */
export function ServersPage() {
  const [servers] = useList<Server>("mcp-servers");
  if (servers === null) return <p aria-busy="true">…</p>;
  if (servers.length === 0) return <p className="empty">{t("noServers")}</p>;
  return <>{servers.map((server) => <ServerView key={server.name} server={server} />)}</>;
}

function ServerView({ server }: { server: Server }) {
  const [tools, setTools] = useState<{ name: string; description?: string }[] | null>(null);
  const [busy, setBusy] = useState(false);
  const test = async () => {
    setBusy(true);
    const found = await attempt(() => api.post<{ tools: { name: string; description?: string }[] }>(`/mcp-servers/${encodeURIComponent(server.name)}/test`, {}));
    setTools(found?.tools ?? null);
    setBusy(false);
  };
  return (
    <section className="card">
      <header><h3>{server.name}</h3><span className="badge">{server.transport}</span></header>
      <p className="help"><code>{server.command ? [server.command, ...(server.arguments ?? [])].join(" ") : server.url}</code></p>
      {server.problems?.map((problem) => <p key={problem} className="problem">{problem}</p>)}
      {server.enabled ? <button type="button" disabled={busy} onClick={() => void test()}>{t("tryServer")}</button> : <p className="help">{t("switchedOff")}</p>}
      {tools !== null && <ul>{tools.map((tool) => <li key={tool.name}><b>{tool.name}</b> <span className="help">{tool.description}</span></li>)}</ul>}
    </section>
  );
}
