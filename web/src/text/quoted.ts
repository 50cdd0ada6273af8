/** Which sentences of a passage an answer says in the same words. Pure. */

const LEAST_CHARS = 6;
const EXCERPT_CHARS = 240;
const ENDS = /(?<=[。！？\n])|(?<=[.!?])(?=\s)/;

export interface Piece {
  text: string;
  quoted: boolean;
}

/** The passage in pieces; joined they are the passage again. */
export function quotedIn(passage: string, answer: string): Piece[] {
  const said = plain(answer);
  return passage
    .split(ENDS)
    .map((text) => ({ text, quoted: plain(text).length >= LEAST_CHARS && said.includes(plain(text)) }));
}

/** What fits beside a number: from the first sentence that is quoted on, or the beginning when none is or all fits. */
export function excerptOf(passage: string, answer: string): Piece[] {
  const pieces = quotedIn(passage, answer);
  const from = passage.length <= EXCERPT_CHARS ? 0 : Math.max(0, pieces.findIndex((piece) => piece.quoted));
  const shown: Piece[] = from === 0 ? [] : [{ text: "…", quoted: false }];
  let left = EXCERPT_CHARS;
  for (const { text, quoted } of pieces.slice(from)) {
    if (text.length > left) return [...shown, { text: text.slice(0, left), quoted }, { text: "…", quoted: false }];
    shown.push({ text, quoted });
    left -= text.length;
  }
  return shown;
}

/** Words alone: answers set marks, numbers and spaces of their own. */
function plain(text: string): string {
  return text.replace(/[[【［][\d\s,，、;]{1,80}[\]】］]/g, "").replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
