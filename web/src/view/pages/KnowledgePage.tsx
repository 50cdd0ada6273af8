import { useState } from "react";
import { api } from "../../api";
import { FileField } from "../../cards/FileField";
import { TryQuestion } from "../../cards/KnowledgeCard";
import { number, t } from "../../i18n/i18n";
import { attempt, ingests } from "../../state/page";
import { useCell } from "../../state/store";
import { BrokenList } from "./BrokenList";
import { useList } from "./useList";

export interface Base {
  id: string;
  name: string;
  documents: number;
  passages: number;
  readOnly: boolean;
}

/** The knowledge bases: what they hold, more to read, and a question to try. */
export function KnowledgePage() {
  const [bases, read, problems] = useList<Base>("kb");
  const [name, setName] = useState("");
  const add = async () => {
    if ((await attempt(() => api.post("/kb", { name }))) !== null) setName(""); // what is refused stays, to be corrected
    await read();
  };
  if (bases === null) return <p aria-busy="true">…</p>;
  return (
    <>
      {bases.length === 0 && <p className="empty">{t("noKnowledge")}</p>}
      <BrokenList problems={problems} />
      {bases.map((base) => <BaseView key={base.id} base={base} onChange={read} />)}
      <form className="line" onSubmit={(event) => { event.preventDefault(); void add(); }}>
        <input value={name} onChange={(event) => setName(event.target.value)} required maxLength={100} placeholder={t("newBase")} aria-label={t("newBase")} />
        <button type="submit">{t("add")}</button>
      </form>
    </>
  );
}

function BaseView({ base, onChange }: { base: Base; onChange: () => Promise<void> }) {
  const [url, setUrl] = useState("");
  const ingest = async (what: { fileIds: string[] } | { url: string }) => {
    const taken = await attempt(() => api.post(`/kb/${encodeURIComponent(base.id)}/ingest`, what));
    if (taken !== null && "url" in what) setUrl("");
    await onChange();
  };
  return (
    <section className="card">
      <header><h3>{base.name}</h3><span className="help">{t("baseHolds", { docs: number(base.documents), chunks: number(base.passages) })}</span></header>
      {base.readOnly ? <p className="help">{t("readOnly")}</p> : (
        <>
          <FileField common={{ "aria-label": t("addFile") }} value="" onChange={(id) => void ingest({ fileIds: [id] })} />
          <form className="line" onSubmit={(event) => { event.preventDefault(); void ingest({ url }); }}>
            <input type="url" required value={url} placeholder="https://" aria-label={t("addUrl")} onChange={(event) => setUrl(event.target.value)} />
            <button type="submit">{t("add")}</button>
          </form>
        </>
      )}
      <Progress base={base.id} />
      <TryQuestion base={base.id} />
    </section>
  );
}

/** How far the base is with what it was given last, and what could not be read of it. */
function Progress({ base }: { base: string }) {
  const ingest = useCell(ingests).get(base);
  if (ingest === undefined) return null;
  const { phase, done, total, errors } = ingest;
  return (
    <div role="status">
      {phase === "reading" && <p className="help">{t("reading")} <progress max={total} value={done} aria-label={t("reading")} /></p>}
      {phase === "done" && errors.length === 0 && <p className="help">{t("allRead")}</p>}
      {errors.map((error) => <p key={error} className="problem">{error}</p>)}
    </div>
  );
}
