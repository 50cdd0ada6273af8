/** What a model thought before it answered, folded away once it answers. */

import { t } from "../i18n/i18n";
import { Fold } from "./Fold";
import { Markdown } from "./Markdown";

export function Reasoning({ place, text, growing = false }: { place: string; text: string; growing?: boolean }) {
  return (
    <Fold name={`thought ${place}`} className="reasoning" open={growing} summary={growing ? t("thinking") : t("thought")}>
      <Markdown text={text} growing={growing} />
    </Fold>
  );
}
