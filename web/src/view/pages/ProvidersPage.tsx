import { t } from "../../i18n/i18n";
import { useList } from "./useList";

interface Provider {
  id: string;
  kind?: string;
  baseUrl?: string;
  default?: boolean;
  models?: { id: string; capabilities?: string[] }[];
}

/** Where models answer from, and what they can. Keys are never shown. */
export function ProvidersPage() {
  const [providers] = useList<Provider>("providers");
  if (providers === null) return <p aria-busy="true">…</p>;
  return (
    <>
      {providers.map((provider) => (
        <section key={provider.id} className="card">
          <header><h3>{provider.id}</h3>{provider.default && <span className="badge">{t("default")}</span>}</header>
          {provider.baseUrl && <p className="help"><code>{provider.baseUrl}</code></p>}
          <ul>{provider.models?.map((model) => <li key={model.id}>{model.id} <span className="help">{model.capabilities?.join(", ")}</span></li>)}</ul>
        </section>
      ))}
    </>
  );
}
