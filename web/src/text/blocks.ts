/** Markdown cut into top-level blocks, so that a growing answer redraws its last block only. Pure. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Cut `text` where a blank line ends a block outside fences and lists; joined, the pieces are `text` again. */
export function blocks(text: string): string[] {
  const pieces: string[] = [];
  let piece = "";
  let fence: string | null = null;
  let math = false;
  let blank = false;
  for (const line of text.split(/(?<=\n)/)) {
    const mark = FENCE.exec(line)?.[1];
    if (blank && fence === null && !math && opens(line, piece)) {
      pieces.push(piece);
      piece = "";
    }
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && closes(line, fence)) fence = null;
    else if (fence === null && line.trim() === "$$") math = !math;
    piece += line;
    blank = line.trim() === "";
  }
  if (piece !== "") pieces.push(piece);
  return pieces;
}

/** Whether a line after a blank one begins a block of its own, not another part of a list or quote. */
function opens(line: string, before: string): boolean {
  if (line.trim() === "") return false;
  const list = /^ {0,3}([-*+]|\d{1,9}[.)])\s/;
  const inList = list.test(before) || /\n {0,3}([-*+]|\d{1,9}[.)])\s/.test(before);
  if (/^\s/.test(line)) return !inList && !/^(\t| {4})/.test(line);
  return !(inList && list.test(line));
}

function closes(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === fence.charAt(0).repeat(text.length);
}
