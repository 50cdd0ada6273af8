import { api } from "../../api";
import { t } from "../../i18n/i18n";
import { attempt, me } from "../../state/page";
import { useList } from "./useList";

interface Provider {
  id: string;
  default: boolean;
  enabled: boolean;
  models: { id: string; capabilities: string[] }[];
  error: string;
}

/** Where models answer from, and what they can; which one is asked by default, and which are switched off. */
export function ProvidersPage() {
  const [providers, read] = useList<Provider>("providers");
  if (providers === null) return <p aria-busy="true">…</p>;
  const choose = async (defaultProvider: string, off: readonly Provider[]) => {
    await attempt(() => api.put("/settings", { defaultProvider, disabledProviders: off.map((one) => one.id) }));
    await read();
    me.set(await attempt(api.me));
  };
  const preferred = providers.find((one) => one.default)?.id ?? "";
  const off = providers.filter((one) => !one.enabled);
  return (
    <>
      {providers.map((provider) => (
        <section key={provider.id} className="card">
          <header><h3>{provider.id}</h3>{provider.default && <span className="badge">{t("default")}</span>}</header>
          {provider.error !== "" && <p className="problem">{provider.error}</p>}
          <ul>{provider.models.map((model) => <li key={model.id}>{model.id} <span className="help">{model.capabilities.join(", ")}</span></li>)}</ul>
          <div className="buttons">
            <label><input type="checkbox" checked={provider.enabled} onChange={(event) => void choose(preferred, event.target.checked ? off.filter((one) => one.id !== provider.id) : [...off, provider])} /> {t("switchedOn")}</label>
            {!provider.default && provider.enabled && <button type="button" onClick={() => void choose(provider.id, off)}>{t("makeDefault")}</button>}
          </div>
        </section>
      ))}
    </>
  );
}
