/** What is stored, exactly as it is exported: one entry, or the whole conversation. */

import { useEffect, useState } from "react";
import { exportUrl } from "../../api";
import { t } from "../../i18n/i18n";
import type { Beside } from "../../state/beside";
import { beside } from "../../state/beside";
import type { Conversation } from "../../state/conversation";
import { tell } from "../../state/page";
import { entryYaml } from "../../text/entryYaml";
import { copied } from "../copied";

const MAX_SHOWN = 200_000;

export function YamlTab({ open, shown }: { open: Conversation; shown: Beside }) {
  const [whole, setWhole] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    fetch(exportUrl(open.id, "yaml"), { signal: stop.signal }).then((answer) => answer.text()).then(setWhole, (error) => stop.signal.aborted || tell(error));
    return () => stop.abort();
  }, [open.id, open.total]);
  const text = shown.entry === undefined ? whole : entryYaml(whole, shown.entry);
  return (
    <>
      <p className="buttons">
        {shown.entry !== undefined && <button type="button" onClick={() => beside.set({ part: "yaml" })}>{t("wholeConversation")}</button>}
        <button type="button" onClick={() => void copied(text)}>{t("copy")}</button>
        <a className="button" href={exportUrl(open.id, "yaml")} download>{t("exportYaml")}</a>
      </p>
      <pre tabIndex={0} className="yaml">{text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n…` : text}</pre>
    </>
  );
}
