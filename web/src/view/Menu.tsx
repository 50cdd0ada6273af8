/** A button with a list of actions, worked with the mouse, the keyboard and a screen reader. */

import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { IconButton } from "./icons";

interface Item {
  words: string;
  act: () => void;
  danger?: boolean;
}

export function Menu({ label, items }: { label: string; items: Item[] }) {
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    place.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: PointerEvent) => {
      if (event.target instanceof Node && place.current?.contains(event.target) === false) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const close = () => {
    setOpen(false);
    place.current?.querySelector<HTMLElement>(".icon-button")?.focus();
  };
  return (
    <div className="menu" ref={place} onKeyDown={(event) => keyed(event, close)}>
      <IconButton icon="more" label={label} pressed={open} onClick={() => setOpen(!open)} />
      {open && (
        <div role="menu" id={id} aria-label={label}>
          {items.map((item) => (
            <button key={item.words} type="button" role="menuitem" className={item.danger ? "danger" : ""} onClick={() => { close(); item.act(); }}>
              {item.words}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function keyed(event: KeyboardEvent<HTMLDivElement>, close: () => void): void {
  if (event.key === "Escape") {
    event.stopPropagation();
    return close();
  }
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[(at + step + all.length) % all.length]?.focus();
}
