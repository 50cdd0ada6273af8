/** Parameters, edited in place and applied together. */

import { useState } from "react";
import { t } from "../i18n/i18n";
import { listOf, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";

interface Parameter {
  name: string;
  valueText?: string;
  description?: string;
  fieldType?: string;
  options?: string[];
  unit?: string;
  min?: number | null;
  max?: number | null;
  default?: string | null;
}

export default function ParameterCard(props: CardProps) {
  const { card, shown } = props;
  const items = listOf<Parameter>(card.items);
  const [changed, write, forget] = useCardDraft<Record<string, string>>(props, {});
  const [onlyChanged, setOnlyChanged] = useState(false);
  const { busy, problem, act } = useActions(props);
  const wrong = Object.fromEntries(items.map((item) => [item.name, troubleOf(item, changed[item.name] ?? item.valueText ?? "")]));
  const dirty = items.filter((item) => (changed[item.name] ?? item.valueText ?? "") !== (item.valueText ?? ""));
  const differing = items.filter((item) => item.default != null && (changed[item.name] ?? item.valueText ?? "") !== item.default);
  const apply = async () => {
    if (dirty.some((item) => wrong[item.name] !== null)) return;
    if (await act("apply", { values: Object.fromEntries(dirty.map((item) => [item.name, changed[item.name] ?? ""])) })) forget();
  };
  return (
    <form className="fields" noValidate onSubmit={(event) => { event.preventDefault(); void apply(); }}>
      <div className="table-scroll" tabIndex={0}>
        <table className="parameters">
          <thead>
            <tr><th scope="col">{t("name")}</th><th scope="col">{t("value")}</th><th scope="col">{t("default")}</th><th scope="col">{t("description")}</th></tr>
          </thead>
          <tbody>
            {(onlyChanged ? differing : items).map((item) => {
              const value = changed[item.name] ?? item.valueText ?? "";
              const set = (text: string) => write({ ...changed, [item.name]: text });
              return (
                <tr key={item.name} className={dirty.includes(item) ? "changed" : ""}>
                  <th scope="row">{item.name}</th>
                  <td>
                    <span className="with-unit">
                      <Value item={item} value={value} locked={shown.locked} wrong={wrong[item.name] ?? null} onChange={set} />
                      {item.unit}
                    </span>
                    {wrong[item.name] !== null && <p className="problem">{wrong[item.name]}</p>}
                  </td>
                  <td>{item.default ?? "–"}</td>
                  <td>{item.description}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      {!shown.locked && (
        <div className="buttons">
          <label><input type="checkbox" checked={onlyChanged} onChange={(event) => setOnlyChanged(event.target.checked)} /> {t("onlyDiffering", { count: differing.length })}</label>
          <span className="spacer" />
          <button type="button" disabled={busy} onClick={() => { write({}); void act("reset", {}).then((done) => done && forget()); }}>{t("reset")}</button>
          <button type="submit" className="primary" disabled={busy || dirty.length === 0}>{t("apply")}</button>
        </div>
      )}
    </form>
  );
}

function Value({ item, value, locked, wrong, onChange }: { item: Parameter; value: string; locked: boolean; wrong: string | null; onChange: (text: string) => void }) {
  const common = { "aria-label": item.name, "aria-invalid": wrong !== null, disabled: locked, value };
  if (item.options?.length) {
    return <select {...common} onChange={(event) => onChange(event.target.value)}>{item.options.map((option) => <option key={option}>{option}</option>)}</select>;
  }
  return <input {...common} onChange={(event) => onChange(event.target.value)} />;
}

function troubleOf(item: Parameter, text: string): string | null {
  if (item.min == null && item.max == null) return null;
  const value = text.trim() === "" ? NaN : Number(text);
  if (Number.isNaN(value)) return t("wrong_number");
  if (item.min != null && value < item.min) return t("wrong_min", { min: item.min });
  if (item.max != null && value > item.max) return t("wrong_max", { max: item.max });
  return null;
}
