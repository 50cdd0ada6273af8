import { useCallback, useEffect, useState } from "react";
import { api } from "../../api";
import { attempt, touched } from "../../state/page";
import { useCell } from "../../state/store";

/** The items of a list route, read again when the server says that something changed. */
export function useList<T>(what: string): [T[] | null, () => Promise<void>] {
  const [items, setItems] = useState<T[] | null>(null);
  const changes = useCell(touched);
  const read = useCallback(async () => setItems((await attempt(() => api.list<T>(what)))?.items ?? []), [what]);
  useEffect(() => void read(), [read, changes]);
  return [items, read];
}
