/** Which of very many rows of one height are in sight, however tall they would be together. */

import { useLayoutEffect, useReducer, useRef } from "react";
import type { RefObject } from "react";

export const ROW_PX = 30;
const TALLEST_PX = 12_000_000; // browsers draw nothing beyond some 17 to 33 million pixels
const AROUND = 8; // rows drawn on either side of those in sight

/** Where a box stands that scrolls: what its bar says, and which pixel of all rows its upper edge shows. */
export interface Place {
  top: number;
  at: number;
}

/** The place after the bar moved to `top`: a short way is gone as far as it says, a long one in proportion. Pure. */
export function moved(before: Place, top: number, count: number, seen: number): Place {
  const whole = Math.max(0, count * ROW_PX - seen);
  const bar = Math.max(0, heightOf(count) - seen);
  if (bar === whole || top <= 0 || top >= bar) return { top, at: top >= bar ? whole : Math.max(0, top) };
  const way = top - before.top;
  const at = Math.abs(way) <= 2 * seen ? before.at + way : (top / bar) * whole;
  return { top, at: Math.min(Math.max(0, at), whole) };
}

/** How tall the box is made for `count` rows. */
export function heightOf(count: number): number {
  return Math.min(count * ROW_PX, TALLEST_PX);
}

/** How much of `box` is there for rows: what else scrolls in it, its head, takes some. */
function roomIn(box: HTMLElement, count: number): number {
  return box.clientHeight - Math.max(0, box.scrollHeight - heightOf(count));
}

export interface InSight {
  first: number;
  last: number;
  /** Where a row stands within the box. */
  offset: (row: number) => number;
}

/** The rows to draw in the box at `ref`, which is drawn again as it scrolls or changes its size. */
export function useInSight(ref: RefObject<HTMLElement | null>, count: number): InSight {
  const place = useRef<Place>({ top: 0, at: 0 });
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const seen = ref.current === null ? 0 : roomIn(ref.current, count);
  useLayoutEffect(() => {
    const box = ref.current;
    if (box === null) return;
    const scrolled = () => {
      place.current = moved(place.current, box.scrollTop, count, roomIn(box, count));
      redraw();
    };
    const watch = new ResizeObserver(scrolled);
    watch.observe(box);
    box.addEventListener("scroll", scrolled, { passive: true });
    scrolled();
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", scrolled);
    };
  }, [ref, count]);
  const { top, at } = place.current;
  const first = Math.max(0, Math.floor(at / ROW_PX) - AROUND);
  const last = Math.min(count, Math.ceil((at + seen) / ROW_PX) + AROUND) - 1;
  return { first, last, offset: (row) => row * ROW_PX - at + top };
}
