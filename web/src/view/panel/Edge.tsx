/** The panel's edge, moved with the pointer or the arrow keys; how wide it was left is kept in this browser. */

import { useEffect, useState } from "react";
import type { KeyboardEvent, PointerEvent } from "react";
import { t } from "../../i18n/i18n";

const STORED = "dialoom.panel";
const [LEAST, MOST, STEP] = [280, 900, 40];

export function Edge() {
  const [width, setWidth] = useState(stored);
  useEffect(() => {
    if (width === null) return;
    document.documentElement.style.setProperty("--panel", `${width}px`);
    try {
      localStorage.setItem(STORED, String(width));
    } catch {
      // as wide as at first next time
    }
  }, [width]);
  const move = (to: number) => setWidth(Math.round(Math.min(MOST, Math.max(LEAST, Math.min(to, innerWidth / 2)))));
  const keyed = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = event.key === "ArrowLeft" ? STEP : event.key === "ArrowRight" ? -STEP : 0;
    if (step === 0) return;
    event.preventDefault();
    move((event.currentTarget.parentElement?.clientWidth ?? LEAST) + step);
  };
  const held = (event: PointerEvent<HTMLDivElement>) => event.currentTarget.hasPointerCapture(event.pointerId) && move(innerWidth - event.clientX);
  return (
    <div
      className="edge"
      role="separator"
      aria-orientation="vertical"
      aria-label={t("panelWidth")}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuenow={width ?? LEAST}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={held}
      onKeyDown={keyed}
    />
  );
}

function stored(): number | null {
  try {
    const width = Number(localStorage.getItem(STORED));
    return width >= LEAST && width <= MOST ? width : null;
  } catch {
    return null;
  }
}
