/** Where one writes. Its text is its own state: typing redraws nothing else. */

import { useEffect, useId, useRef, useState } from "react";
import type { ChangeEvent, ClipboardEvent } from "react";
import type { Stored } from "../api";
import { api } from "../api";
import { t } from "../i18n/i18n";
import { added } from "../state/added";
import { draft, draftFiles, keepDraft, keepFiles } from "../state/drafts";
import { attempt, note, online, send, spoken, stop } from "../state/page";
import { useCell } from "../state/store";
import { IconButton } from "./icons";
import { runCommand } from "./commands";
import { Suggestions, useSuggestions } from "./Suggestions";
import { TokenUse } from "./TokenUse";
import { useDropped } from "./useDropped";
import { useEnter } from "./useEnter";

const MAX_FILES = 20;

interface Props {
  conversation: string | null;
  busy: boolean;
  /** Whether something waits for an answer that is not given here. */
  asking: boolean;
  said: number;
}

export function Composer({ conversation, busy, asking, said }: Props) {
  const key = `text:${conversation ?? "new"}`;
  const [text, setText] = useState(() => draft(key));
  const [files, setFiles] = useState(() => draftFiles(key));
  const [coming, setComing] = useState<readonly string[]>([]);
  const [sending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);

  useEffect(() => grow(box.current), [text]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, [conversation]);

  const sent = useCell(spoken);
  useEffect(() => {
    setText(draft(key)); // what was sent is no draft any more
    setFiles(draftFiles(key));
  }, [sent, key]);

  const write = (value: string) => {
    setText(value);
    keepDraft(key, value);
  };
  const attach = (chosen: readonly Stored[]) => {
    keepFiles(key, chosen);
    setFiles(chosen);
  };
  const list = useId();
  const suggested = useSuggestions(text, (line) => {
    write(line);
    box.current?.focus();
  });
  const extra = useCell(added);
  useEffect(() => {
    if (extra === "") return;
    added.set("");
    write(text === "" ? extra : `${text}\n\n${extra}`);
    box.current?.focus();
  }, [extra]);
  const nothing = text.trim() === "" && files.length === 0;
  const say = async () => {
    const words = text.trim();
    if (sending || coming.length > 0 || nothing) return;
    if (busy) return note(t(online.get() ? "stillAnswering" : "error.network"));
    setSending(true);
    const command = words.startsWith("/") ? await runCommand(words, conversation) : "message";
    if (command !== "message") {
      setSending(false);
      return command === "done" ? write("") : undefined;
    }
    const taken = await send(words === "" ? t("onlyFiles") : text, files.map(({ id, name }) => ({ id, name })), key);
    setSending(false);
    if (!taken) return; // what was written stays, to be sent again
    write("");
    attach([]);
  };
  const enter = useEnter(() => void say(), suggested.keyed);
  const add = async (chosen: Iterable<File>) => {
    const taken = [...chosen];
    if (files.length + coming.length + taken.length > MAX_FILES) return note(t("tooManyFiles", { most: MAX_FILES }), "error");
    setComing((all) => [...all, ...taken.map((file) => file.name)]);
    for (const file of taken) {
      const stored = await attempt(() => api.upload(file));
      setComing((all) => all.toSpliced(all.indexOf(file.name), 1));
      if (stored !== null) attach([...draftFiles(key).filter((file) => !same(file, stored)), stored]); // the same file twice is one
    }
  };
  const pasted = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      void add(event.clipboardData.files);
    }
  };
  const over = useDropped((dropped) => void add(dropped));
  return (
    <form
      className={`composer ${over ? "over" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        void say();
      }}
    >
      {asking && <p className="help asking" role="status">{t("givesUp")}</p>}
      <Suggestions id={list} suggested={suggested} />
      {files.length + coming.length > 0 && (
        <ul className="attached">
          {files.map((file) => (
            <li key={`${file.id} ${file.name}`}>
              {file.name}
              <IconButton icon="close" label={`${t("removeFile")} ${file.name}`} onClick={() => attach(files.filter((one) => !same(one, file)))} />
            </li>
          ))}
          {coming.map((name, at) => <li key={at} aria-busy="true">{name} {t("uploading")}</li>)}
        </ul>
      )}
      <textarea
        ref={box}
        rows={1}
        value={text}
        placeholder={t("writeHere")}
        aria-label={t("message")}
        aria-controls={suggested.offered.length > 0 ? list : undefined}
        aria-activedescendant={suggested.offered.length > 0 ? `${list}-${suggested.picked}` : undefined}
        onChange={(event: ChangeEvent<HTMLTextAreaElement>) => write(event.target.value)}
        {...enter}
        onPaste={pasted}
      />
      <div className="composer-bar">
        <IconButton icon="attach" label={t("attach")} onClick={() => picker.current?.click()} />
        <input ref={picker} type="file" multiple hidden aria-hidden="true" tabIndex={-1} onChange={(event) => { void add(event.target.files ?? []); event.target.value = ""; }} />
        <span className="spacer" />
        {conversation !== null && <TokenUse conversation={conversation} busy={busy} said={said} />}
        {busy ? (
          <IconButton icon="stop" label={t("stop")} className="primary" onClick={() => void stop()} />
        ) : (
          <IconButton icon="send" label={t("send")} className="primary" disabled={sending || coming.length > 0 || nothing} onClick={() => void say()} />
        )}
      </div>
    </form>
  );
}

/** Two files may hold the same; they are two while their names are. */
function same(one: Stored, other: Stored): boolean {
  return one.id === other.id && one.name === other.name;
}

function grow(box: HTMLTextAreaElement | null): void {
  if (box === null) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 260)}px`;
}
