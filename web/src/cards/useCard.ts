/** What every card's view works with: its actions, and the answers not sent yet. */

import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api";
import { trouble } from "../i18n/i18n";
import { newKey } from "../keys";
import { draftOf, forgetDraft, keepDraft } from "../state/drafts";
import { settle, tell } from "../state/page";
import type { CardData, ShownCard } from "../wire";
import { Refused } from "../wire";

export interface CardProps {
  conversation: string;
  shown: ShownCard;
  card: CardData;
}

export interface Violation {
  path: string;
  message: string;
}

export interface Actions {
  busy: boolean;
  problem: string | null;
  violations: readonly Violation[];
  act: (name: string, input: unknown) => Promise<boolean>;
}

/** Actions on a card. The same press sent twice is one action; an answer to an older state is refused and said. */
export function useActions({ conversation, shown, card }: CardProps): Actions {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [violations, setViolations] = useState<readonly Violation[]>([]);
  const key = useRef<string | null>(null);
  const act = useCallback(
    async (name: string, input: unknown) => {
      setBusy(true);
      setProblem(null);
      setViolations([]);
      key.current ??= newKey();
      try {
        await api.act(conversation, String(card.id ?? ""), name, input, shown.rev, key.current);
        key.current = null;
        settle();
        return true;
      } catch (error) {
        if (!(error instanceof Refused) || error.status === 401) {
          tell(error); // the key stays: sent again, it is the same action
          return false;
        }
        key.current = null;
        if (error.status === 409) {
          tell(error); // what was done to the card elsewhere draws it anew, without what stands here
          return false;
        }
        setProblem(trouble(error.code, error.detail));
        setViolations((error.params.violations as Violation[] | undefined) ?? []);
        return false;
      } finally {
        setBusy(false);
      }
    },
    [conversation, shown.rev, card.id],
  );
  return { busy, problem, violations, act };
}

/** Values typed into a card and not sent; they survive a reload, and belong to one state of one card. */
export function useCardDraft<T>({ conversation, shown, card }: CardProps, fallback: T): [T, (next: T) => void, () => void] {
  const key = `card:${conversation}:${String(card.id ?? shown.index)}:${shown.rev}`;
  const [value, setValue] = useState<T>(() => draftOf(key, fallback));
  const write = (next: T) => {
    setValue(next);
    keepDraft(key, JSON.stringify(next));
  };
  useEffect(() => {
    if (shown.locked) forgetDraft(key);
  }, [shown.locked, key]);
  return [value, write, () => forgetDraft(key)];
}

/** A list of a payload, whatever was stored there. */
export function listOf<T>(value: unknown): T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}

export function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function isDone(card: CardData): boolean {
  return ["submitted", "applied", "confirmed", "loaded", "approved", "declined", "expired", "cancelled"].includes(String(card.status ?? "").toLowerCase());
}
