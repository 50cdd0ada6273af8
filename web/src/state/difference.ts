/** What changed between two states of a run, place by place. Pure; bounded in depth and number. */

export interface Change {
  /** Like `turn[2].parts`; a name with a dot or bracket in it stands as it is. */
  place: string;
  /** Undefined where there was, or is, nothing. */
  before: unknown;
  after: unknown;
}

const MAX_DEPTH = 8;
const MAX_CHANGES = 200;

export function difference(before: unknown, after: unknown): Change[] {
  const found: Change[] = [];
  walk("", before, after, 0, found);
  return found;
}

function walk(place: string, before: unknown, after: unknown, depth: number, found: Change[]): void {
  if (found.length >= MAX_CHANGES || Object.is(before, after)) return;
  const [one, other] = [parts(before), parts(after)];
  if (one === null || other === null || Array.isArray(before) !== Array.isArray(after) || depth === MAX_DEPTH) {
    if (JSON.stringify(before) !== JSON.stringify(after)) found.push({ place, before, after });
    return;
  }
  for (const name of new Set([...one.keys(), ...other.keys()])) {
    const inside = Array.isArray(after) ? `${place}[${name}]` : place === "" ? name : `${place}.${name}`;
    walk(inside, one.get(name), other.get(name), depth + 1, found);
  }
}

/** The parts of a list or an object by name; null for anything else, which is compared as a whole. */
function parts(value: unknown): Map<string, unknown> | null {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)) : null;
}
