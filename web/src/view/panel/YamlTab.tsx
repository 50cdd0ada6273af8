import { useEffect, useState } from "react";
import { exportUrl } from "../../api";
import { t } from "../../i18n/i18n";
import type { Conversation } from "../../state/conversation";
import { tell } from "../../state/page";

const MAX_SHOWN = 200_000;

/** The conversation exactly as it is exported. */
export function YamlTab({ open }: { open: Conversation }) {
  const [text, setText] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    fetch(exportUrl(open.id, "yaml"), { signal: stop.signal }).then((answer) => answer.text()).then(setText, (error) => stop.signal.aborted || tell(error));
    return () => stop.abort();
  }, [open.id, open.total]);
  return (
    <>
      <p><a className="button" href={exportUrl(open.id, "yaml")} download>{t("exportYaml")}</a></p>
      <pre tabIndex={0} className="yaml">{text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n…` : text}</pre>
    </>
  );
}
