/** A file of points: its layout as it was detected, corrected by a person, then loaded. */

import { named, number, t } from "../i18n/i18n";
import { FileField } from "./FileField";
import { isDone, listOf, recordOf, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";

interface Column {
  index: number;
  name?: string;
  dtype?: string;
  min?: number | null;
  max?: number | null;
  nulls?: number;
}

const AXES = ["x", "y", "z", "weight", "id"] as const;
const ENCODINGS = ["auto", "utf-8", "gb18030"];
const FORMATS = ["auto", "xyz", "csv", "tsv", "xlsx"];

export default function XyzCard(props: CardProps) {
  const { card, shown } = props;
  const columns = listOf<Column>(card.columns);
  const start = { format: String(card.format ?? "auto"), encoding: String(card.encoding ?? "auto"), skipRows: Number(card.skipRows ?? 0), zFactor: Number(card.zFactor ?? 1), crs: String(card.crs ?? ""), mapping: recordOf(card.mapping) };
  const [layout, write, forget] = useCardDraft(props, start);
  const { busy, problem, act } = useActions(props);
  const done = isDone(card) || shown.locked;
  const begun = Boolean(card.fileName) || columns.length > 0;
  const dirty = JSON.stringify(layout) !== JSON.stringify(start);
  const stats = recordOf(card.stats);
  const warnings = listOf<string>(card.warnings);
  const configure = async () => {
    const { crs, ...rest } = layout;
    if (await act("configure", { ...rest, ...(crs === "" ? {} : { crs }) })) forget();
  };
  return (
    <form className="fields" onSubmit={(event) => { event.preventDefault(); void configure(); }}>
      {card.fileName ? <p><b>{String(card.fileName)}</b> <span className="help">{card.sizeBytes ? t("bytes", { count: number(Number(card.sizeBytes)) }) : ""}</span></p> : null}
      {!done && <FileField common={{ "aria-label": t("pointFile") }} value="" accept=".xyz,.csv,.tsv,.txt,.dat,.xlsx" {...(begun ? {} : { invites: t("dropPoints") })} onChange={(fileId) => void act("configure", { fileId })} />}
      {warnings.map((warning) => <p key={warning} className="warning">{warning}</p>)}
      {!done && begun && (
        <div className="line wrap">
          <Choice label={t("format")} value={layout.format} options={FORMATS} onChange={(format) => write({ ...layout, format })} />
          <Choice label={t("encoding")} value={layout.encoding} options={ENCODINGS} onChange={(encoding) => write({ ...layout, encoding })} />
          <label>{t("skipRows")} <input type="number" min={0} value={layout.skipRows} onChange={(event) => write({ ...layout, skipRows: Number(event.target.value) })} /></label>
          <label>{t("zFactor")} <input type="number" step="any" value={layout.zFactor} onChange={(event) => write({ ...layout, zFactor: Number(event.target.value) })} /></label>
          <label>CRS <input value={layout.crs} onChange={(event) => write({ ...layout, crs: event.target.value })} /></label>
        </div>
      )}
      {columns.length > 0 && (
        <div className="line wrap wide">
          {AXES.map((axis) => (
            <label key={axis}>
              {named(axis)}
              <select disabled={done} value={String(layout.mapping[axis] ?? "")} onChange={(event) => write({ ...layout, mapping: { ...layout.mapping, [axis]: event.target.value === "" ? null : event.target.value } })}>
                <option value="">–</option>
                {columns.map((column) => <option key={column.index} value={column.name || String(column.index)}>{column.name || column.index}{column.min != null && column.max != null ? ` (${number(column.min)} … ${number(column.max)})` : ""}</option>)}
              </select>
            </label>
          ))}
        </div>
      )}
      <Preview names={columns.map((column) => column.name || String(column.index))} rows={listOf<unknown[]>(card.previewRows)} />
      {typeof card.thumbnailId === "string" && <img src={`/api/v1/files/${encodeURIComponent(card.thumbnailId)}`} alt={t("scatter")} className="thumbnail" />}
      {Number(stats.n) > 0 && (
        <dl className="answers">
          {Object.entries(stats).filter(([, value]) => value !== null).map(([name, value]) => (
            <div key={name}><dt>{named(name)}</dt><dd>{Array.isArray(value) ? value.map((each) => number(Number(each))).join(", ") : number(Number(value))}</dd></div>
          ))}
        </dl>
      )}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {!done && (
        <div className="buttons">
          <button type="submit" className={dirty ? "primary" : ""} disabled={busy || !dirty}>{t("apply")}</button>
          <button type="button" className={dirty ? "load" : "primary load"} disabled={busy || dirty || !layout.mapping.x || !layout.mapping.y || !layout.mapping.z} onClick={() => void act("load", {})}>{t("load")}</button>
        </div>
      )}
    </form>
  );
}

export function Choice({ label, value, options, onChange, words }: { label: string; value: string; options: readonly string[]; onChange: (value: string) => void; words?: (option: string) => string }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map((option) => <option key={option} value={option}>{words?.(option) ?? option}</option>)}
      </select>
    </label>
  );
}

function Preview({ names, rows }: { names: string[]; rows: unknown[][] }) {
  if (rows.length === 0) return null;
  return (
    <div className="table-scroll" tabIndex={0}>
      <table>
        <thead><tr>{names.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>{rows.slice(0, 8).map((row, at) => <tr key={at}>{row.map((value, column) => <td key={column}>{String(value ?? "")}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
