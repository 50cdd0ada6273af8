import type { Piece } from "../text/quoted";

/** A passage with the words an answer took from it marked. */
export function Quoted({ pieces }: { pieces: readonly Piece[] }) {
  return pieces.map((piece, at) => (piece.quoted ? <mark key={at}>{piece.text}</mark> : piece.text));
}
