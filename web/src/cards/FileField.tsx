/** A file: uploaded when chosen; the answer is its id. */

import { useState } from "react";
import { api } from "../api";
import { t } from "../i18n/i18n";
import { attempt } from "../state/page";

interface Props {
  common: Record<string, unknown>;
  value: string;
  accept?: string;
  /** What may be dropped here, where there is nothing else yet. */
  invites?: string;
  onChange: (id: string) => void;
}

export function FileField({ common, value, accept, invites, onChange }: Props) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const choose = async (file: File | undefined) => {
    if (file === undefined) return;
    setBusy(true);
    const stored = await attempt(() => api.upload(file));
    setBusy(false);
    if (stored === null) return;
    setName(stored.name);
    onChange(stored.id);
  };
  return (
    <div className={`file ${invites === undefined ? "" : "inviting"}`} onDragOver={(event) => event.preventDefault()} onDrop={(event) => { event.preventDefault(); void choose(event.dataTransfer.files[0]); }}>
      {invites !== undefined && <span className="help">{invites}</span>}
      {/* the browser's own button speaks the browser's language, not the page's */}
      <label className="button">
        {t(busy ? "uploading" : "chooseFile")}
        <input {...common} className="off-screen" type="file" accept={accept} disabled={busy} onChange={(event) => void choose(event.target.files?.[0])} />
      </label>
      {value !== "" && <span className="help">{name || t("fileChosen")}</span>}
    </div>
  );
}
