/** The passage behind a number, shown beside it while it is pointed at or has the focus. */

import { useState } from "react";
import type { ReactNode, SyntheticEvent } from "react";
import type { Source } from "../wire";

const MAX_SHOWN = 600;
const [WIDTH, GAP] = [360, 8];

interface Place {
  source: Source;
  left: number;
  top: number | undefined;
  bottom: number | undefined;
}

export function CiteTip({ sources, children }: { sources: ReadonlyMap<number, Source>; children: ReactNode }) {
  const [place, setPlace] = useState<Place | null>(null);
  const enter = ({ target }: SyntheticEvent) => setPlace(placeOf(target, sources));
  const leave = () => setPlace(null);
  return (
    <div onMouseOver={enter} onFocus={enter} onMouseLeave={leave} onBlur={leave} onClick={leave}>
      {children}
      {place !== null && (
        <div className="cite-tip" role="tooltip" style={{ left: place.left, top: place.top, bottom: place.bottom }}>
          <b>{place.source.title || place.source.id}</b>
          <p>{place.source.text.length > MAX_SHOWN ? `${place.source.text.slice(0, MAX_SHOWN)}…` : place.source.text}</p>
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
