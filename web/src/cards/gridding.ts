/** What a gridding method asks for, and how large a grid becomes. Pure. */

export const METHODS = ["nearest", "idw", "linear", "cubic", "minimum_curvature", "rbf", "kriging", "moving_average"] as const;
export const MAX_NODES = 4_000_000;

const PARAMS: Record<string, { name: string; value: number }[]> = {
  idw: [{ name: "power", value: 2 }, { name: "smoothing", value: 0 }],
  minimum_curvature: [{ name: "tension", value: 0.25 }, { name: "maxIter", value: 500 }],
  rbf: [{ name: "smoothing", value: 0 }],
};

export function paramsOf(method: string): { name: string; value: number }[] {
  return PARAMS[method] ?? [];
}

/** Nodes in x and y: both ends of the extent have one. Null while a number is missing or makes no grid. */
export function nodesOf(extent: Record<string, unknown>, cell: Record<string, unknown>): { nx: number; ny: number } | null {
  const nx = count(extent.xMin, extent.xMax, cell.dx);
  const ny = count(extent.yMin, extent.yMax, cell.dy);
  return nx === null || ny === null ? null : { nx, ny };
}

function count(low: unknown, high: unknown, step: unknown): number | null {
  if (typeof low !== "number" || typeof high !== "number" || typeof step !== "number") return null;
  return step > 0 && high > low ? Math.floor((high - low) / step + 1e-9) + 1 : null;
}
