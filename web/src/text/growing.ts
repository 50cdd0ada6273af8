/** A text that still grows, as it will most likely stand: no marks that vanish with the next word. Pure. */

const FENCED = /^ {0,3}(`{3,}|~{3,})/;
const LAST_MARKS = /[*`~]+$/; // they may open or close, or become more
const WRITTEN_OUT = /\\[\s\S]|(`+)(?:(?!`)[\s\S])*?\1(?!`)/g; // escaped characters, and code that is closed

/** Close what is open at the end of the last block: code, and strong words. */
export function closed(block: string): string {
  if (FENCED.test(block)) return block;
  const kept = block.replace(LAST_MARKS, "");
  const plain = kept.replace(WRITTEN_OUT, (all) => ".".repeat(all.length));
  const tick = /`+/.exec(plain);
  const before = tick === null ? plain : plain.slice(0, tick.index);
  const isStrong = (before.match(/\*\*/g)?.length ?? 0) % 2 === 1;
  if (tick === null && !isStrong) return kept;
  return `${kept.trimEnd()}${tick?.[0] ?? ""}${isStrong ? "**" : ""}`;
}
