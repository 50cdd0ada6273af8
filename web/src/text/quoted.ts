/** Which sentences of a passage an answer says in the same words. Pure. */

const LEAST_CHARS = 6;
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

/** Words alone: answers set marks, numbers and spaces of their own. */
function plain(text: string): string {
  return text.replace(/\[\d{1,3}\]/g, "").replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
