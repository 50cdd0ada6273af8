/** A tool call: its name, and behind it what went in and what came out. */

import { t } from "../i18n/i18n";
import type { Fate } from "../state/conversation";
import { addressOf } from "../text/attached";
import type { Attachment } from "../text/attached";
import { copied } from "./copied";
import { Fold } from "./Fold";
import { Icon, IconButton } from "./icons";
import { Picture } from "./Picture";

const MAX_SHOWN = 20_000;

interface Props {
  /** What the call is known by: the conversation, and its own id. */
  place: string;
  name: string;
  args?: unknown;
  result?: string | undefined;
  /** The pictures and other files that came back. */
  files?: readonly Attachment[] | undefined;
  isError?: boolean;
  running?: boolean;
  /** Why it was not made. */
  fate?: Fate | undefined;
  seconds?: number | null;
}

export function ToolCallView({ place, name, args, result, files = [], isError = false, running = false, fate, seconds = null }: Props) {
  const state = running ? "running" : (fate ?? (isError ? "failed" : result !== undefined ? "done" : "waiting"));
  return (
    <Fold name={`call ${place}`} className={`tool-call ${state}`} summary={
      <>
        <Icon name="tool" /> <b>{name || t("tool")}</b>
        <span className="tool-state">
          {t(`tool_${state}`)}
          {seconds !== null && ` · ${seconds.toFixed(1)} s`}
        </span>
      </>
    }>
      {args !== undefined && <Field label={t("arguments")} text={asText(args)} />}
      {result !== undefined && <Field label={t("result")} text={asText(result)} />}
      {files.map((file) => <Returned key={file.id} file={file} />)}
    </Fold>
  );
}

const SEEN = /^image\/(png|jpeg|gif|webp)$/; // what the server gives back as a picture

/** A picture as one sees it; any other file to download. */
function Returned({ file }: { file: Attachment }) {
  const address = addressOf(file);
  if (SEEN.test(file.mime ?? "")) return <Picture className="tool-picture" source={address} words={file.name} />;
  return <p><a href={address} download={file.name}>{file.name}</a></p>;
}

function Field({ label, text }: { label: string; text: string }) {
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n…` : text;
  return (
    <div className="tool-field">
      <span>{label}</span>
      <IconButton icon="copy" label={`${t("copy")}: ${label}`} onClick={() => void copied(text)} />
      <pre tabIndex={0}>{shown}</pre>
    </div>
  );
}

/** JSON on several lines, and anything else as it is. */
function asText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    return value;
  }
}
