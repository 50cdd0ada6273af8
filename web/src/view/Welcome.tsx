/** The page before anything was said. */

import { t } from "../i18n/i18n";
import { attempt, send } from "../state/page";
import { importFile } from "./Rail";

export function Welcome() {
  const examples = [t("example1"), t("example2"), t("example3")];
  return (
    <div className="welcome">
      <h1>{t("welcome")}</h1>
      <p>{t("welcomeHow")}</p>
      <ul>
        {examples.map((words) => (
          <li key={words}>
            <button type="button" onClick={() => void attempt(() => send(words, []))}>{words}</button>
          </li>
        ))}
      </ul>
      <label className="plain">
        {t("openFile")}
        <input type="file" hidden accept=".yaml,.yml,.json" onChange={(event) => { const file = event.target.files?.[0]; if (file) void importFile(file); }} />
      </label>
    </div>
  );
}
