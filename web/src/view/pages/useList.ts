import { useCallback, useEffect, useState } from "react";
import { api } from "../../api";
import { attempt, touched } from "../../state/page";
import { useCell } from "../../state/store";

interface Read<T> {
  items: T[];
  problems?: Record<string, string>;
}

/** The items of a list route, a way to read it again, and what of it could not be opened; read again when the server says that something changed. */
export function useList<T>(what: string): [T[] | null, () => Promise<void>, Record<string, string>] {
  const [found, setFound] = useState<Read<T> | null>(null);
  const changes = useCell(touched);
  const read = useCallback(async () => setFound((await attempt(() => api.get<Read<T>>(`/${what}`))) ?? { items: [] }), [what]);
  useEffect(() => void read(), [read, changes]);
  return [found?.items ?? null, read, found?.problems ?? {}];
}
