/** Where one writes. Its text is its own state: typing redraws nothing else. */

import { useEffect, useRef, useState } from "react";
import type { ChangeEvent, ClipboardEvent, DragEvent, KeyboardEvent } from "react";
import type { Stored } from "../api";
import { api } from "../api";
import { t } from "../i18n/i18n";
import { draft, keepDraft } from "../state/drafts";
import { attempt, note, send, stop } from "../state/page";
import { IconButton } from "./icons";
import { runCommand, suggestions } from "./commands";

const AFTER_COMPOSITION_MS = 50;
const MAX_FILES = 20;

export function Composer({ conversation, busy }: { conversation: string | null; busy: boolean }) {
  const key = `text:${conversation ?? "new"}`;
  const [text, setText] = useState(() => draft(key));
  const [files, setFiles] = useState<Stored[]>([]);
  const [sending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const composed = useRef(0);
  const picker = useRef<HTMLInputElement>(null);

  useEffect(() => grow(box.current), [text]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, [conversation]);

  const write = (value: string) => {
    setText(value);
    keepDraft(key, value);
  };
  const say = async () => {
    const words = text.trim();
    if (sending || (words === "" && files.length === 0)) return;
    if (busy) return note(t("stillAnswering"));
    if (words.startsWith("/") && (await runCommand(words, conversation))) return write("");
    setSending(true);
    const taken = await send(text, files.map((file) => file.id));
    setSending(false);
    if (!taken) return; // what was written stays, to be sent again
    write("");
    setFiles([]);
  };
  const keyed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    const native = event.nativeEvent;
    // an input method's Enter takes a word over and sends nothing
    if (native.isComposing || native.keyCode === 229 || performance.now() - composed.current < AFTER_COMPOSITION_MS) return;
    event.preventDefault();
    void say();
  };
  const add = async (chosen: Iterable<File>) => {
    for (const file of [...chosen].slice(0, MAX_FILES)) {
      const stored = await attempt(() => api.upload(file));
      if (stored !== null) setFiles((all) => [...all, stored]);
    }
  };
  const pasted = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      void add(event.clipboardData.files);
    }
  };
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    void add(event.dataTransfer.files);
  };
  const offered = suggestions(text);
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void say();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={dropped}
    >
      {offered.length > 0 && (
        <div className="commands" role="listbox" aria-label={t("commands")}>
          {offered.map((command) => (
            <button key={command.name} type="button" role="option" aria-selected="false" onClick={() => { write(`/${command.name} `); box.current?.focus(); }}>
              <b>/{command.name}</b> {command.words()}
            </button>
          ))}
        </div>
      )}
      {files.length > 0 && (
        <ul className="attached">
          {files.map((file) => (
            <li key={file.id}>
              {file.name}
              <IconButton icon="close" label={`${t("removeFile")} ${file.name}`} onClick={() => setFiles((all) => all.filter((one) => one.id !== file.id))} />
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={box}
        rows={1}
        value={text}
        placeholder={t("writeHere")}
        aria-label={t("message")}
        onChange={(event: ChangeEvent<HTMLTextAreaElement>) => write(event.target.value)}
        onCompositionEnd={() => (composed.current = performance.now())}
        onKeyDown={keyed}
        onPaste={pasted}
      />
      <div className="composer-bar">
        <IconButton icon="attach" label={t("attach")} onClick={() => picker.current?.click()} />
        <input ref={picker} type="file" multiple hidden aria-hidden="true" tabIndex={-1} onChange={(event) => { void add(event.target.files ?? []); event.target.value = ""; }} />
        <span className="spacer" />
        {busy ? (
          <IconButton icon="stop" label={t("stop")} className="primary" onClick={() => void stop()} />
        ) : (
          <IconButton icon="send" label={t("send")} className="primary" disabled={sending || (text.trim() === "" && files.length === 0)} onClick={() => void say()} />
        )}
      </div>
    </form>
  );
}

function grow(box: HTMLTextAreaElement | null): void {
  if (box === null) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 260)}px`;
}
