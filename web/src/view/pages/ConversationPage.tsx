import { api } from "../../api";
import { t } from "../../i18n/i18n";
import { attempt, changedHeader, heading, me } from "../../state/page";
import { useCell } from "../../state/store";
import type { Choices } from "../../wire";
import { modelWords } from "../modelWords";
import { useList } from "./useList";

interface Skill {
  name: string;
  description?: string;
  mode?: string;
}

/** Who answers in this conversation, told what, with which skills. */
export function ConversationPage() {
  const header = useCell(heading);
  const models = useCell(me)?.models ?? [];
  const [skills] = useList<Skill>("skills");
  if (header === null) return <p className="empty">{t("noConversations")}</p>;
  const choices = header.settings ?? {};
  const change = async (fields: Choices) => {
    const changed = await attempt(() => api.change(header.id, { settings: fields }));
    if (changed !== null) changedHeader(changed);
  };
  const chosen = choices.skills ?? [];
  return (
    <div className="fields">
      <label>
        {t("model")}
        <select value={choices.model ? `${choices.provider} ${choices.model}` : ""} onChange={(event) => void change(pick(event.target.value))}>
          <option value="">{t("chosenByServer")}</option>
          {models.map((model) => <option key={model.label} value={`${model.provider} ${model.model}`}>{modelWords(model)}</option>)}
        </select>
      </label>
      <label>
        {t("instructions")}
        <textarea rows={4} defaultValue={choices.system ?? ""} onBlur={(event) => event.target.value !== (choices.system ?? "") && void change({ system: event.target.value })} />
      </label>
      {skills !== null && skills.length > 0 && (
        <fieldset>
          <legend>{t("skills")}</legend>
          {skills.map((skill) => (
            <label key={skill.name} className="choice">
              <input type="checkbox" disabled={skill.mode === "always"} checked={skill.mode === "always" || chosen.includes(skill.name)} onChange={(event) => void change({ skills: event.target.checked ? [...chosen, skill.name] : chosen.filter((name) => name !== skill.name) })} />
              <span>{skill.name} <span className="help">{skill.description}</span></span>
            </label>
          ))}
        </fieldset>
      )}
    </div>
  );
}

function pick(value: string): Choices {
  const space = value.indexOf(" ");
  return space < 0 ? { provider: "", model: "" } : { provider: value.slice(0, space), model: value.slice(space + 1) };
}
