/** The picture of a grid with its lines of equal height over it, and what its colours stand for. */

import { useEffect, useMemo, useState } from "react";
import { number, t } from "../i18n/i18n";
import type { Heights } from "./contours";
import { contour, levelsOf, readGrid } from "./contours";
import { listOf } from "./useCard";

const MAX_BYTES = 16_000_000;

export function GridMap({ title, result, every }: { title: string; result: Record<string, unknown>; every: unknown }) {
  const [low, high] = [Number(result.zMin), Number(result.zMax)];
  const at = listOf<string>(result.fileNames).findIndex((name) => name.endsWith(".asc"));
  const grid = useGrid(listOf<string>(result.files)[at]);
  const { step, levels } = useMemo(() => levelsOf(low, high, typeof every === "number" ? every : undefined), [low, high, every]);
  const paths = useMemo(() => (grid === null ? [] : levels.map((level) => ({ level, path: contour(grid, level) }))), [grid, levels]);
  return (
    <figure className="grid-map">
      <div className="map-picture" style={{ maxWidth: `calc(70dvh * ${Number(result.nx) / Number(result.ny) || 1})` }}>
        <img src={`/api/v1/files/${encodeURIComponent(String(result.imageId))}`} alt={t("mapWords", { title, low: short(low), high: short(high) })} className="map" />
        {grid !== null && (
          <svg className="contours" viewBox={`0 0 ${grid.columns} ${grid.rows}`} preserveAspectRatio="none" aria-hidden="true">
            {paths.map(({ level, path }) => <path key={level} d={path} />)}
          </svg>
        )}
      </div>
      <figcaption>
        {short(low)} <span className="ramp" aria-hidden="true" /> {short(high)}
        {paths.length > 0 && ` · ${t("contoursEvery", { step: number(step) })}`}
      </figcaption>
    </figure>
  );
}

function short(height: number): string {
  return number(Number(height.toPrecision(4)));
}

/** The heights in a stored text grid; null until they are here, or when they cannot be drawn over. */
function useGrid(file: string | undefined): Heights | null {
  const [grid, setGrid] = useState<Heights | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    setGrid(null);
    if (file !== undefined) {
      heights(file, stop.signal).then(setGrid, () => undefined); // without its lines the picture is all there
    }
    return () => stop.abort();
  }, [file]);
  return grid;
}

async function heights(file: string, signal: AbortSignal): Promise<Heights | null> {
  const answer = await fetch(`/api/v1/files/${encodeURIComponent(file)}`, { signal });
  const long = Number(answer.headers.get("content-length") ?? Infinity) > MAX_BYTES;
  return answer.ok && !long ? readGrid(await answer.text()) : null;
}
