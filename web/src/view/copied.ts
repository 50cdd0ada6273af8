/** Copy words and say whether that went well. */

import { copy } from "../clipboard";
import { t } from "../i18n/i18n";
import { note } from "../state/page";

export async function copied(text: string): Promise<void> {
  if (await copy(text)) note(t("copied"));
  else note(t("copyFailed"), "error");
}
