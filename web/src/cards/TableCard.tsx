/** A table: its preview, or all rows of its data set, a page at a time. Only rows in sight are in the document. */

import { useEffect, useMemo, useRef, useState } from "react";
import { datasetCsvUrl } from "../api";
import { number, t } from "../i18n/i18n";
import { added } from "../state/added";
import { beside } from "../state/beside";
import { copied } from "../view/copied";
import { heightOf, useInSight } from "./inSight";
import type { Sort } from "./remoteRows";
import { useRemoteRows } from "./remoteRows";
import { listOf } from "./useCard";
import type { CardProps } from "./useCard";

const COLUMN_REM = 7;
const MAX_CHOSEN = 50;

export default function TableCard({ card, shown, beside: inPanel = false }: CardProps & { beside?: boolean }) {
  const names = listOf<string>(card.columnNames);
  const preview = listOf<unknown[]>(card.rows);
  const dataset = typeof card.datasetId === "string" ? card.datasetId : null;
  const [sort, setSort] = useState<Sort | null>(null);
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => setChosen(new Set()), [sort, filter]); // other rows stand there now
  const own = useMemo(() => (dataset === null ? arranged(preview, names, sort, filter) : []), [card, sort, filter]);
  const remote = useRemoteRows(dataset, sort, filter);
  const total = dataset === null ? own.length : remote.total;
  const row = (at: number) => (dataset === null ? own[at] : remote.row(at));
  const counted = Number(card.totalRowCount ?? preview.length);
  const title = String(card.title || t("card_Table"));
  const shownNames = names.length > 0 ? names : remote.columns;
  const choose = (at: number) => setChosen((all) => (all.has(at) ? new Set([...all].filter((one) => one !== at)) : all.size < MAX_CHOSEN ? new Set([...all, at]) : all));
  const ask = () => added.set(quoted(title, shownNames, [...chosen].sort((one, other) => one - other).map((at) => row(at) ?? [])));
  return (
    <div className={`table-card ${inPanel ? "beside" : ""}`}>
      <div className="table-tools">
        <input type="search" value={filter} placeholder={t("filter")} aria-label={t("filter")} onChange={(event) => setFilter(event.target.value)} />
        <span className="help">{t("rowsOf", { shown: number(total), total: number(Math.max(counted, total)) })}</span>
        <span className="spacer" />
        {chosen.size > 0 && <button type="button" className="primary" onClick={ask}>{t("askAbout", { count: chosen.size })}</button>}
        <button type="button" onClick={() => void copied(tabbed(shownNames, dataset === null ? own : remote.known()))}>{t("copy")}</button>
        {dataset === null ? (
          <>
            <button type="button" onClick={() => download(["\ufeff", csv(names, own)], title, "csv")}>CSV</button>
            <button type="button" onClick={() => download([json(names, own)], title, "json")}>JSON</button>
          </>
        ) : (
          <a className="button" href={datasetCsvUrl(dataset)} download>CSV</a>
        )}
        {!inPanel && <button type="button" onClick={() => beside.set({ part: "data", entry: shown.rev })}>{t("enlarge")}</button>}
      </div>
      <Grid names={shownNames} total={total} row={row} onSeen={remote.want} sort={sort} onSort={(column) => setSort(next(sort, column))} chosen={chosen} onChoose={choose} />
    </div>
  );
}

interface GridProps {
  names: string[];
  total: number;
  row: (at: number) => unknown[] | undefined;
  onSeen: (first: number, last: number) => void;
  sort: Sort | null;
  onSort: (column: string) => void;
  chosen: ReadonlySet<number>;
  onChoose: (at: number) => void;
}

function Grid({ names, total, row, onSeen, sort, onSort, chosen, onChoose }: GridProps) {
  const place = useRef<HTMLDivElement>(null);
  const { first, last, offset } = useInSight(place, total);
  useEffect(() => onSeen(first, last), [first, last, total]);
  const columns = { gridTemplateColumns: `2rem repeat(${names.length}, minmax(0, 1fr))`, minWidth: `${names.length * COLUMN_REM + 2}rem` };
  return (
    <div className="grid" ref={place} role="table" aria-rowcount={total + 1} aria-colcount={names.length + 1} tabIndex={0}>
      <div role="rowgroup" className="grid-head">
        <div role="row" className="grid-row" style={columns} aria-rowindex={1}>
          <div role="columnheader" aria-label={t("chosen")} />
          {names.map((name, at) => (
            <div key={at} role="columnheader" aria-sort={sort?.column === name ? (sort.desc ? "descending" : "ascending") : "none"}>
              <button type="button" onClick={() => onSort(name)}>{name}{sort?.column === name ? (sort.desc ? " ↓" : " ↑") : ""}</button>
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" style={{ height: heightOf(total) }} className="grid-body">
        {Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at).map((at) => {
          const values = row(at);
          return (
            <div key={at} role="row" className="grid-row" aria-rowindex={at + 2} style={{ ...columns, transform: `translateY(${offset(at)}px)` }}>
              <div role="cell"><input type="checkbox" checked={chosen.has(at)} aria-label={t("rowNumber", { row: at + 1 })} onChange={() => onChoose(at)} /></div>
              {names.map((_, column) => <div key={column} role="cell" title={cell(values?.[column])}>{cell(values?.[column])}</div>)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function cell(value: unknown): string {
  if (value === undefined) return "…";
  if (typeof value === "number") return String(Number(value.toPrecision(12))); // 0.1 + 0.2 is 0.3 to people
  return value === null ? "" : String(value);
}

function next(sort: Sort | null, column: string): Sort | null {
  if (sort?.column !== column) return { column, desc: false };
  return sort.desc ? null : { column, desc: true };
}

function arranged(rows: unknown[][], names: string[], sort: Sort | null, filter: string): unknown[][] {
  const wanted = filter.toLowerCase();
  const kept = wanted === "" ? rows : rows.filter((row) => row.some((value) => String(value ?? "").toLowerCase().includes(wanted)));
  if (sort === null) return kept;
  const at = names.indexOf(sort.column);
  return kept.toSorted((one, other) => compare(one[at], other[at]) * (sort.desc ? -1 : 1));
}

function compare(one: unknown, other: unknown): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""), undefined, { numeric: true });
}

/** Rows as a spreadsheet takes them when they are pasted. */
function tabbed(names: string[], rows: unknown[][]): string {
  return [names, ...rows].map((row) => row.map((value) => String(value ?? "").replace(/[\t\n]/g, " ")).join("\t")).join("\n");
}

/** Write rows as CSV. A text a spreadsheet would run gets an apostrophe in front; numbers stay numbers. */
export function csv(names: string[], rows: unknown[][]): string {
  const field = (value: unknown) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** Write rows as a JSON list of objects. */
export function json(names: string[], rows: unknown[][]): string {
  return JSON.stringify(rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? null]))), null, 2) + "\n";
}

/** Rows as a Markdown table, to be asked about. */
export function quoted(title: string, names: string[], rows: unknown[][]): string {
  const line = (values: unknown[]) => `| ${values.map((value) => cell(value ?? "").replace(/\s+/g, " ").replaceAll("|", "\\|")).join(" | ")} |`;
  return [`${title}:`, "", line(names), line(names.map(() => "---")), ...rows.map(line), "", ""].join("\n");
}

function download(content: string[], title: string, kind: "csv" | "json"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(content, { type: kind === "csv" ? "text/csv" : "application/json" }));
  link.download = `${title.replace(/[^\p{L}\p{N} _-]/gu, "_").slice(0, 80)}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
