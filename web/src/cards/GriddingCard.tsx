/** Settings of a gridding run, and its result once it ran. */

import { named, number, t } from "../i18n/i18n";
import { GridMap } from "./GridMap";
import { Choice } from "./XyzCard";
import { isDone, listOf, recordOf, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";
import { MAX_NODES, METHODS, nodesOf, paramsOf } from "./gridding";

export default function GriddingCard(props: CardProps) {
  const { card, shown } = props;
  const start = { method: String(card.method ?? "idw"), params: recordOf(card.methodParams), extent: recordOf(card.extent), cell: recordOf(card.cell) };
  const [settings, write, forget] = useCardDraft(props, start);
  const { busy, problem, act } = useActions(props);
  const result = recordOf(card.result);
  const done = shown.locked || isDone(card);
  const nodes = nodesOf(settings.extent, settings.cell);
  const tooMany = nodes !== null && nodes.nx * nodes.ny > MAX_NODES;
  const run = async () => {
    const { method, params, extent, cell } = settings;
    const input = { method, methodParams: params, ...(Object.keys(cell).length > 0 ? { cell } : {}), ...(Object.keys(extent).length > 0 ? { extent } : {}) };
    if (await act("run", input)) forget();
  };
  const setNumber = (group: "extent" | "cell" | "params", name: string, text: string) => write({ ...settings, [group]: { ...settings[group], [name]: text === "" ? undefined : Number(text) } });
  return (
    <form className="fields" onSubmit={(event) => { event.preventDefault(); if (!tooMany) void run(); }}>
      <div className="line wrap wide">
        <Choice label={t("method")} value={settings.method} options={METHODS} words={(method) => t(`grid_${method}` as "grid_idw")} onChange={(method) => write({ ...settings, method, params: {} })} />
        {paramsOf(settings.method).map((param) => (
          <label key={param.name}>{named(param.name)} <input type="number" step="any" value={String(settings.params[param.name] ?? param.value)} disabled={done} onChange={(event) => setNumber("params", param.name, event.target.value)} /></label>
        ))}
      </div>
      <div className="line wrap">
        {(["xMin", "xMax", "yMin", "yMax"] as const).map((name) => <label key={name}>{named(name)} <input type="number" step="any" disabled={done} value={String(settings.extent[name] ?? "")} onChange={(event) => setNumber("extent", name, event.target.value)} /></label>)}
        {(["dx", "dy"] as const).map((name) => <label key={name}>{named(name)} <input type="number" step="any" min={0} disabled={done} value={String(settings.cell[name] ?? "")} onChange={(event) => setNumber("cell", name, event.target.value)} /></label>)}
      </div>
      {nodes !== null && <p className={tooMany ? "problem" : "help"}>{t("nodes", { nx: number(nodes.nx), ny: number(nodes.ny), all: number(nodes.nx * nodes.ny) })}{tooMany && ` – ${t("tooManyNodes", { max: number(MAX_NODES) })}`}</p>}
      {typeof result.imageId === "string" && <GridMap title={String(card.title || t("card_GriddingParamCard"))} result={result} every={recordOf(card.output).contourInterval} />}
      {Object.keys(result).length > 0 && (
        <dl className="answers">
          {(["nx", "ny", "zMin", "zMax", "nullCount", "rmse", "mae", "elapsedMs"] as const).filter((name) => typeof result[name] === "number").map((name) => <div key={name}><dt>{named(name)}</dt><dd>{number(Number(result[name]))}</dd></div>)}
        </dl>
      )}
      {Array.isArray(result.files) && <p className="chips">{result.files.map((file, at) => <a key={String(file)} className="chip" href={`/api/v1/files/${encodeURIComponent(String(file))}`} download>{listOf<string>(result.fileNames)[at] ?? String(file).slice(0, 12)}</a>)}</p>}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {!done && (
        <div className="buttons">
          {card.status === "running" && <button type="button" disabled={busy} onClick={() => void act("cancel", {})}>{t("cancel")}</button>}
          <button type="submit" className="primary" disabled={busy || tooMany}>{t("runGrid")}</button>
        </div>
      )}
    </form>
  );
}
