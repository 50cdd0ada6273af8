/** What a person unfolded or folded: it stays so when an answer that was on its way is drawn as a whole. */

const MAX = 1000;
const chosen = new Map<string, boolean>();

/** Whether `name` was left open; undefined where nobody chose. */
export function isUnfolded(name: string): boolean | undefined {
  return chosen.get(name);
}

export function keepUnfolded(name: string, open: boolean): void {
  chosen.delete(name); // the newest stands last
  chosen.set(name, open);
  for (const oldest of chosen.keys()) {
    if (chosen.size <= MAX) break;
    chosen.delete(oldest);
  }
}
