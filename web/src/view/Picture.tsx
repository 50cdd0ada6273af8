/** A picture that opens large on a press: as large as the window first, and pressed again as large as it is. */

import { useEffect, useRef, useState } from "react";
import { t } from "../i18n/i18n";
import { IconButton } from "./icons";

interface Props {
  source: string;
  words: string;
  className?: string;
  width?: number | undefined;
  height?: number | undefined;
}

export function Picture({ source, words, className, width, height }: Props) {
  const [large, setLarge] = useState(false);
  return (
    <>
      <button type="button" className="plain enlarges" aria-label={t("showLarge", { title: words })} onClick={() => setLarge(true)}>
        <img className={className} src={source} alt={words} loading="lazy" width={width} height={height} />
      </button>
      {large && <Large source={source} words={words} onClose={() => setLarge(false)} />}
    </>
  );
}

function Large({ source, words, onClose }: { source: string; words: string; onClose: () => void }) {
  const place = useRef<HTMLDialogElement>(null);
  const [whole, setWhole] = useState(true);
  useEffect(() => place.current?.showModal(), []);
  const close = () => place.current?.close(); // gives the focus back, and then tells `onClose`
  return (
    <dialog ref={place} className="page large" aria-label={words} onClose={onClose} onClick={(event) => event.target === place.current && close()}>
      <header>
        <span>{words}</span>
        <IconButton icon="close" label={t("close")} onClick={close} />
      </header>
      <div className="picture-room" tabIndex={0}>
        <button type="button" className="plain" aria-pressed={!whole} aria-label={t("trueSize")} onClick={() => setWhole(!whole)}>
          <img className={whole ? "whole" : ""} src={source} alt={words} />
        </button>
      </div>
    </dialog>
  );
}
