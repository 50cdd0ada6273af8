/** Files dropped anywhere on the page are taken: the browser would leave the page to show them. */

import { useEffect, useRef, useState } from "react";

/** Give `take` what no other place took; true while files are held over the page. A page laid over takes its own. */
export function useDropped(take: (files: FileList) => void): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const stop = new AbortController();
    const listen = (name: "dragover" | "dragleave" | "drop", hear: (event: DragEvent) => void) => addEventListener(name, hear, { signal: stop.signal });
    listen("dragover", (event) => {
      if (!holdsFiles(event)) return;
      setOver(!event.defaultPrevented && !isCovered());
      event.preventDefault();
    });
    listen("dragleave", (event) => event.relatedTarget === null && setOver(false));
    listen("drop", (event) => {
      setOver(false);
      if (!holdsFiles(event) || event.defaultPrevented) return;
      event.preventDefault();
      if (event.dataTransfer !== null && !isCovered()) latest.current(event.dataTransfer.files);
    });
    return () => stop.abort();
  }, []);
  return over;
}

function holdsFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") === true;
}

function isCovered(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
