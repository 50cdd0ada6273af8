/** What the last run of a conversation used, as its newest checkpoint holds it. */

import { useEffect, useState } from "react";
import { api } from "../api";

export interface Spent {
  requests: number;
  usage: { input_tokens: number | null; output_tokens: number | null };
  cost: string;
  unpriced: number;
}

export interface Checkpoint {
  id: string;
  run: string;
  step: number;
  at: string;
  nodes: string[];
  next: string[];
  waiting: number;
}

/** The newest checkpoints of a conversation, newest first. */
export function checkpointsOf(conversation: string, most = 100): Promise<readonly Checkpoint[]> {
  return api.get<{ items: Checkpoint[] }>(`/conversations/${conversation}/checkpoints?limit=${most}`).then(({ items }) => items);
}

export function stateOf(checkpoint: string): Promise<Record<string, unknown>> {
  return api.get<{ state: Record<string, unknown> }>(`/checkpoints/${encodeURIComponent(checkpoint)}`).then(({ state }) => state);
}

/** Null until known, and for a run that keeps no such account. `find` names the checkpoint; asked again with a new `key`. */
export function useSpent(find: () => Promise<string | undefined>, key: string): Spent | null {
  const [spent, setSpent] = useState<Spent | null>(null);
  useEffect(() => {
    let wanted = true;
    const read = async () => {
      const id = await find();
      const state = id === undefined ? {} : await stateOf(id);
      if (wanted) setSpent((state.spent as Spent | undefined) ?? null);
    };
    read().catch(() => wanted && setSpent(null)); // an account that cannot be read is none
    return () => {
      wanted = false;
    };
  }, [key]);
  return spent;
}
