/** The commands that what is typed may become, chosen with the pointer or the arrow keys. */

import { useEffect, useState } from "react";
import type { KeyboardEvent } from "react";
import { t } from "../i18n/i18n";
import type { Command } from "./commands";
import { suggestions } from "./commands";

export interface Suggested {
  offered: readonly Command[];
  picked: number;
  /** Take a key; true when it was one of the list's. */
  keyed: (event: KeyboardEvent) => boolean;
  pick: (command: Command) => void;
}

export function useSuggestions(text: string, onPick: (line: string) => void): Suggested {
  const [picked, setPicked] = useState(0);
  const [closed, setClosed] = useState(false);
  useEffect(() => {
    setPicked(0);
    setClosed(false);
  }, [text]);
  const offered = closed ? [] : suggestions(text);
  const pick = (command: Command) => onPick(`/${command.name} `);
  const keyed = (event: KeyboardEvent) => {
    const command = offered[picked];
    if (command === undefined) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setPicked((picked + step + offered.length) % offered.length);
    else if (event.key === "Escape") setClosed(true);
    else if (event.key === "Tab" || (event.key === "Enter" && text !== `/${command.name}`)) pick(command);
    else return false;
    event.preventDefault();
    return true;
  };
  return { offered, picked, keyed, pick };
}

export function Suggestions({ id, suggested: { offered, picked, pick } }: { id: string; suggested: Suggested }) {
  if (offered.length === 0) return null;
  return (
    <div id={id} className="commands" role="listbox" aria-label={t("commands")}>
      {offered.map((command, at) => (
        <button key={command.name} id={`${id}-${at}`} type="button" role="option" tabIndex={-1} aria-selected={at === picked} onClick={() => pick(command)}>
          <b>/{command.name}</b> {command.words()}
        </button>
      ))}
    </div>
  );
}
