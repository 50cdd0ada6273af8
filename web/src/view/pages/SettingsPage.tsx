import type { Language } from "../../i18n/i18n";
import { currentLanguage, t } from "../../i18n/i18n";
import { me } from "../../state/page";
import { useCell } from "../../state/store";
import type { Theme } from "../theme";
import { applyTheme, theme } from "../theme";

/** Language and colours of this browser, and what runs here. */
export function SettingsPage({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const chosen = useCell(theme);
  const known = useCell(me);
  return (
    <div className="fields">
      <label>
        {t("language")}
        <select value={currentLanguage()} onChange={(event) => onLanguage(event.target.value as Language)}>
          <option value="en">English</option>
          <option value="zh">中文</option>
        </select>
      </label>
      <label>
        {t("theme")}
        <select value={chosen} onChange={(event) => applyTheme(event.target.value as Theme)}>
          <option value="system">{t("themeSystem")}</option>
          <option value="light">{t("themeLight")}</option>
          <option value="dark">{t("themeDark")}</option>
        </select>
      </label>
      <p className="help">dialoom {known?.version}</p>
    </div>
  );
}
