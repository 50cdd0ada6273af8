/** Which column of a file is which: suggestions to accept or change, then confirmed. */

import { number, t } from "../i18n/i18n";
import { isDone, listOf, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";
import { suggested, troublesOf } from "./columnMatch";
import type { Mapping, Preview, Required } from "./columnMatch";

export default function ColumnMatchCard(props: CardProps) {
  const { card, shown } = props;
  const required = listOf<Required | string>(card.requiredColumns).map((each) => (typeof each === "string" ? { name: each } : each));
  const columns = listOf<Preview | string>(card.previewColumns).map((each) => (typeof each === "string" ? { name: each } : each));
  const mappings = listOf<Mapping>(card.mappings);
  const [chosen, write, forget] = useCardDraft<Record<string, string>>(props, suggested(required, columns, mappings));
  const { busy, problem, act } = useActions(props);
  const done = isDone(card) || shown.locked;
  const troubles = troublesOf(required, columns, chosen);
  const free = columns.filter((column) => !Object.values(chosen).includes(column.name));
  const blocked = Object.values(troubles).some((trouble) => trouble.blocks);
  const confirm = async () => {
    const given = Object.fromEntries(Object.entries(chosen).filter(([, column]) => column !== ""));
    if (await act("confirm", { mappings: given })) forget();
  };
  return (
    <form className="fields" onSubmit={(event) => { event.preventDefault(); if (!blocked) void confirm(); }}>
      <div className="table-scroll" tabIndex={0}>
        <table className="parameters">
          <thead><tr><th scope="col">{t("wanted")}</th><th scope="col">{t("fileColumn")}</th><th scope="col">{t("samples")}</th><th scope="col">{t("confidence")}</th></tr></thead>
          <tbody>
            {required.map((want) => {
              const match = columns.find((column) => column.name === chosen[want.name]);
              const auto = mappings.find((each) => each.requiredColumn === want.name && each.matchedColumn === chosen[want.name]);
              const trouble = troubles[want.name];
              return (
                <tr key={want.name} onDragOver={(event) => event.preventDefault()} onDrop={(event) => { event.preventDefault(); if (!done) write({ ...chosen, [want.name]: event.dataTransfer.getData("text/plain") }); }}>
                  <th scope="row">{want.label || want.name}{want.required !== false && <span className="required"> *</span>}<span className="help"> {want.dtype}</span></th>
                  <td>
                    <select aria-label={want.label || want.name} aria-invalid={trouble !== undefined} disabled={done} value={chosen[want.name] ?? ""} onChange={(event) => write({ ...chosen, [want.name]: event.target.value })}>
                      <option value="">{t("none")}</option>
                      {columns.map((column) => <option key={column.name}>{column.name}</option>)}
                    </select>
                    {trouble !== undefined && <p className={trouble.blocks ? "problem" : "help"}>{trouble.words}</p>}
                  </td>
                  <td className="samples">{match?.samples?.slice(0, 3).map(String).join(", ")}{match?.nullRatio ? ` (${number(match.nullRatio * 100)} % ${t("empty")})` : ""}</td>
                  <td>{auto?.confidence == null ? "" : `${Math.round(auto.confidence * 100)} %`}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {!done && free.length > 0 && (
        <p className="chips">
          <span className="help">{t("dragHint")}</span>
          {free.map((column) => (
            <span key={column.name} className="chip" draggable onDragStart={(event) => event.dataTransfer.setData("text/plain", column.name)}>{column.name}</span>
          ))}
        </p>
      )}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {!done && <div className="buttons"><button type="submit" className="primary" disabled={busy || blocked}>{t("confirm")}</button></div>}
    </form>
  );
}
