/** What stands beside the conversation: which part of the panel, and of which entry. */

import { Cell } from "./store";

export const PARTS = ["sources", "run", "graph", "data", "yaml"] as const;
export type Part = (typeof PARTS)[number];

export interface Beside {
  part: Part;
  /** The entry it is of, by the index of its newest state; without one it is of the whole conversation. */
  entry?: number;
  /** The number of the passage that was asked for. */
  source?: number;
}

/** Null while the panel is closed. */
export const beside = new Cell<Beside | null>(null);
