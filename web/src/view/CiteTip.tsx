/** The passage behind a number, where the answer took its words from, shown beside it while it is pointed at or has the focus. */

import { useState } from "react";
import type { ReactNode, SyntheticEvent } from "react";
import { excerptOf } from "../text/quoted";
import type { Source } from "../wire";
import { Quoted } from "./Quoted";

const [WIDTH, GAP] = [360, 8];

interface Place {
  source: Source;
  left: number;
  top: number | undefined;
  bottom: number | undefined;
}

export function CiteTip({ sources, answer, children }: { sources: ReadonlyMap<number, Source>; answer: string; children: ReactNode }) {
  const [place, setPlace] = useState<Place | null>(null);
  const enter = ({ target }: SyntheticEvent) => setPlace(placeOf(target, sources));
  const leave = () => setPlace(null);
  return (
    <div onMouseOver={enter} onFocus={enter} onMouseLeave={leave} onBlur={leave} onClick={leave}>
      {children}
      {place !== null && (
        <div className="cite-tip" role="tooltip" style={{ left: place.left, top: place.top, bottom: place.bottom }}>
          <b>{place.source.title || place.source.id}</b>
          <p><Quoted pieces={excerptOf(place.source.text, answer)} /></p>
        </div>
      )}
    </div>
  );
}

/** Below the number, or above it where there is no room; null when what is pointed at is no citation. */
function placeOf(target: EventTarget, sources: ReadonlyMap<number, Source>): Place | null {
  const number = target instanceof Element ? target.closest<HTMLElement>("[data-cite]") : null;
  const source = sources.get(Number(number?.dataset.cite));
  if (number === null || source === undefined) return null;
  const box = number.getBoundingClientRect();
  const below = box.bottom < innerHeight / 2;
  return {
    source,
    left: Math.max(GAP, Math.min(box.left, innerWidth - WIDTH - GAP)),
    top: below ? box.bottom + GAP : undefined,
    bottom: below ? undefined : innerHeight - box.top + GAP,
  };
}
