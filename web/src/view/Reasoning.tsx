/** What a model thought before it answered, folded away. */

import { t } from "../i18n/i18n";
import { Markdown } from "./Markdown";

export function Reasoning({ text, growing = false }: { text: string; growing?: boolean }) {
  return (
    <details className="reasoning" open={growing}>
      <summary>{growing ? t("thinking") : t("thought")}</summary>
      <Markdown text={text} growing={growing} />
    </details>
  );
}
