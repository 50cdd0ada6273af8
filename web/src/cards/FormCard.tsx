/** A form: filled, checked by the schema the server checks with, submitted once, and then to be read. */

import { Validator } from "@cfworker/json-schema";
import { useId, useMemo, useState } from "react";
import { t } from "../i18n/i18n";
import type { Answers, FormField } from "./formFields";
import { answersOf, fromText, isVisible, optionOf, shownValue, textOf, violationsOf } from "./formFields";
import { FileField } from "./FileField";
import { isDone, listOf, recordOf, useActions, useCardDraft } from "./useCard";
import type { CardProps } from "./useCard";

export function FormCard(props: CardProps) {
  const { card, shown } = props;
  const fields = listOf<FormField>(card.fields);
  const start = useMemo(() => Object.fromEntries(fields.map((field) => [field.id, textOf(field)])), [card]);
  const [texts, setTexts, forget] = useCardDraft<Answers>(props, start);
  const [tried, setTried] = useState(false);
  const { busy, problem, violations, act } = useActions(props);
  if (isDone(card) || shown.locked) return <Answered fields={fields} values={card.status === "submitted" ? recordOf(card.submittedValues) : valuesOf(fields)} locked={shown.locked} />;

  const values = answersOf(fields, texts);
  const wrong = tried ? check(shown.schema, fields, values) : {};
  for (const violation of violations) wrong[violation.path.replace(/^[/$.]+/, "")] ??= violation.message;
  const submit = async (form: HTMLFormElement) => {
    setTried(true);
    const found = check(shown.schema, fields, values);
    if (Object.keys(found).length > 0) return focusFirst(form, found);
    if (await act("submit", { values })) forget();
  };
  return (
    <form className="fields" noValidate onSubmit={(event) => { event.preventDefault(); void submit(event.currentTarget); }}>
      {fields.filter((field) => isVisible(field, values)).map((field) => (
        <Field key={field.id} field={field} text={texts[field.id] ?? ""} wrong={wrong[field.id]} onChange={(text) => setTexts({ ...texts, [field.id]: text })} />
      ))}
      {problem !== null && <p className="problem" role="alert">{problem}</p>}
      <div className="buttons">
        <button type="submit" className="primary" disabled={busy}>{String(card.submitLabel || t("submit"))}</button>
      </div>
    </form>
  );
}

function check(schema: Record<string, unknown> | undefined, fields: FormField[], values: Record<string, unknown>): Record<string, string> {
  if (schema === undefined) return {};
  const result = new Validator(schema, "2020-12", false).validate(values);
  return result.valid ? {} : violationsOf(result.errors, fields, values);
}

/** Go to the first field that is wrong, as they stand in this form; another may have fields of the same names. */
function focusFirst(form: HTMLFormElement, found: Record<string, string>): void {
  const places = [...form.querySelectorAll<HTMLElement>("[data-field]")];
  const first = places.find((place) => (place.dataset.field ?? "") in found);
  (first?.querySelector("input") ?? first)?.focus();
}

interface FieldProps {
  field: FormField;
  text: string | string[];
  wrong: string | undefined;
  onChange: (text: string | string[]) => void;
}

function Field({ field, text, wrong, onChange }: FieldProps) {
  const id = useId();
  const about = wrong !== undefined ? `${id}-wrong` : field.help ? `${id}-help` : undefined;
  const common = { id, "data-field": field.id, "aria-invalid": wrong !== undefined, "aria-describedby": about, "aria-required": field.required === true };
  return (
    <div className={`field ${field.type ?? "text"}`}>
      <label htmlFor={id}>
        {field.label || field.id}
        {field.required && <span className="required" title={t("required")}> *</span>}
      </label>
      <Input field={field} text={text} common={common} onChange={onChange} />
      {field.help && <p id={`${id}-help`} className="help">{field.help}</p>}
      {wrong !== undefined && <p id={`${id}-wrong`} className="problem">{wrong}</p>}
    </div>
  );
}

function Input({ field, text, common, onChange }: { field: FormField; text: string | string[]; common: Record<string, unknown>; onChange: (text: string | string[]) => void }) {
  const one = Array.isArray(text) ? "" : text;
  switch (field.type) {
    case "textarea":
      return <textarea {...common} rows={4} value={one} onChange={(event) => onChange(event.target.value)} />;
    case "bool":
      return <input {...common} type="checkbox" checked={one === "true"} onChange={(event) => onChange(String(event.target.checked))} />;
    case "select":
      return (
        <select {...common} value={one} onChange={(event) => onChange(event.target.value)}>
          <option value="">{t("choose")}</option>
          {listOf<unknown>(field.options).map(optionOf).map((option) => <option key={option.value} value={option.value}>{option.label}</option>)}
        </select>
      );
    case "multiselect": {
      const chosen = Array.isArray(text) ? text : [];
      return (
        <div role="group" className="choices" id={String(common.id)} data-field={field.id} aria-label={field.label || field.id} aria-describedby={common["aria-describedby"] as string | undefined}>
          {listOf<unknown>(field.options).map(optionOf).map((option) => (
            <label key={option.value}>
              <input type="checkbox" aria-invalid={common["aria-invalid"] === true} checked={chosen.includes(option.value)} onChange={(event) => onChange(event.target.checked ? [...chosen, option.value] : chosen.filter((each) => each !== option.value))} />
              {option.label}
            </label>
          ))}
        </div>
      );
    }
    case "file":
      return <FileField common={common} value={one} onChange={onChange} />;
    case "date":
      return <input {...common} type="date" value={one} onChange={(event) => onChange(event.target.value)} />;
    case "secret":
      return <input {...common} type="password" autoComplete="off" value={one} onChange={(event) => onChange(event.target.value)} />;
    case "number":
    case "integer":
      return <input {...common} type="text" inputMode="decimal" value={one} onChange={(event) => onChange(fromText(event.target.value))} />;
    default:
      return <input {...common} type="text" value={one} onChange={(event) => onChange(event.target.value)} />;
  }
}

/** What stood in the fields of a form that was not sent. */
function valuesOf(fields: FormField[]): Record<string, unknown> {
  return answersOf(fields, Object.fromEntries(fields.map((field) => [field.id, textOf(field)])));
}

function Answered({ fields, values, locked }: { fields: FormField[]; values: Record<string, unknown>; locked: boolean }) {
  return (
    <dl className="answers">
      {fields.filter((field) => field.type !== "secret" && isVisible(field, values) && (locked || field.id in values)).map((field) => (
        <div key={field.id}>
          <dt>{field.label || field.id}</dt>
          <dd>{shownValue(field, values[field.id])}</dd>
        </div>
      ))}
    </dl>
  );
}
