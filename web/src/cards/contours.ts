/** Lines of equal height over a grid, found cell by cell. Pure. */

/** Heights by row, the northern row first; NaN where there is none. */
export interface Heights {
  columns: number;
  rows: number;
  z: Float64Array;
}

const MAX_NODES = 1_000_000;
const MAX_SIDE = 160; // more nodes than that draw lines nobody tells apart
const WANTED = 9;
const MAX_LEVELS = 60;

/** Read an ESRI text grid. Null when it is none, or one of more than a million nodes. */
export function readGrid(text: string): Heights | null {
  const head = new Map<string, number>();
  const rest = text.replace(/^[ \t]*([A-Za-z_]+)[ \t]+(\S+)[ \t]*\r?\n/gm, (_line, name: string, value: string) => {
    head.set(name.toLowerCase(), Number(value));
    return "";
  });
  const [columns, rows, none] = [head.get("ncols") ?? 0, head.get("nrows") ?? 0, head.get("nodata_value")];
  if (!Number.isInteger(columns) || !Number.isInteger(rows) || columns < 2 || rows < 2 || columns * rows > MAX_NODES) return null;
  const z = Float64Array.from(rest.trim().split(/\s+/), (word) => (Number(word) === none ? NaN : Number(word)));
  return z.length === columns * rows ? { columns, rows, z } : null;
}

/** The heights lines are drawn at: multiples of `every`, else of a round number that gives about nine. */
export function levelsOf(low: number, high: number, every?: number): { step: number; levels: number[] } {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return { step: 0, levels: [] };
  const step = every !== undefined && every > 0 && span / every <= MAX_LEVELS ? every : round(span / WANTED);
  const [first, last] = [Math.floor(low / step) + 1, Math.ceil(high / step) - 1];
  return { step, levels: Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => Number(((first + at) * step).toPrecision(15))) };
}

function round(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return power * (lead < 1.5 ? 1 : lead < 3 ? 2 : lead < 7.5 ? 5 : 10);
}

/** The line at `level` as the path of an SVG whose unit is one node, and whose origin is a node's corner. */
export function contour(grid: Heights, level: number): string {
  const step = Math.max(1, Math.ceil(Math.max(grid.columns, grid.rows) / MAX_SIDE));
  const pieces: string[] = [];
  for (let row = 0; row + step < grid.rows; row += step) {
    for (let column = 0; column + step < grid.columns; column += step) pieces.push(...lines(grid, { row, column, step }, level));
  }
  return pieces.join("");
}

interface Cell {
  row: number;
  column: number;
  step: number;
}

/** The pieces of the line through one cell: from edge to edge, in the order the edges are walked. */
function lines(grid: Heights, { row, column, step }: Cell, level: number): string[] {
  const corners = [[0, 0], [0, 1], [1, 1], [1, 0]].map(([down = 0, across = 0]) => {
    const [x, y] = [column + across * step, row + down * step];
    return { x: x + 0.5, y: y + 0.5, z: grid.z[y * grid.columns + x] ?? NaN };
  });
  if (corners.some(({ z }) => Number.isNaN(z))) return [];
  const crossings = corners.flatMap((from, at) => {
    const to = corners[(at + 1) % 4] ?? from;
    if (from.z >= level === to.z >= level) return [];
    const share = (level - from.z) / (to.z - from.z);
    return [`${place(from.x + share * (to.x - from.x))} ${place(from.y + share * (to.y - from.y))}`];
  });
  const paired = crossings.length === 4 && !joinsFirst(corners, level) ? [...crossings.slice(1), ...crossings.slice(0, 1)] : crossings;
  return paired.flatMap((point, at) => (at % 2 === 0 ? [`M${point}L${paired[at + 1]}`] : []));
}

/** In a saddle, whether the middle is on the side of the first and the third corner: then the others are cut off. */
function joinsFirst(corners: readonly { z: number }[], level: number): boolean {
  const middle = corners.reduce((sum, { z }) => sum + z, 0) / 4;
  return middle >= level === (corners[0]?.z ?? 0) >= level;
}

function place(value: number): string {
  return String(Math.round(value * 100) / 100);
}
