/** The rows of a data set, a page at a time, asked for as they come in sight. */

import { useEffect, useRef, useState } from "react";
import type { Rows } from "../api";
import { api } from "../api";
import { attempt } from "../state/page";

const PAGE = 200;
const MAX_PAGES = 60; // kept; whoever scrolls through a million rows does not hold them all

export interface Sort {
  column: string;
  desc: boolean;
}

interface Found {
  total: number;
  columns: string[];
  pages: ReadonlyMap<number, unknown[][]>;
}

const NOTHING: Found = { total: 0, columns: [], pages: new Map() };

export function useRemoteRows(dataset: string | null, sort: Sort | null, filter: string) {
  const [found, setFound] = useState<Found>(NOTHING);
  const wanted = useRef<readonly number[]>([]);
  const busy = useRef(false);
  const asked = useRef({ sort, filter, have: new Set<number>() });
  useEffect(() => {
    asked.current = { sort, filter, have: new Set() };
    wanted.current = [0];
    setFound(NOTHING);
    const timer = setTimeout(() => void fetchWanted(), filter === "" ? 0 : 250);
    return () => clearTimeout(timer);
  }, [dataset, sort?.column, sort?.desc, filter]);

  /** One page after the other, and only those that are still in sight: who drags the bar asks for few. */
  const fetchWanted = async () => {
    if (dataset === null || busy.current) return;
    busy.current = true;
    for (let page = next(); page !== undefined; page = next()) {
      const { sort: by, filter: words, have } = asked.current;
      have.add(page);
      const query = { offset: page * PAGE, limit: PAGE, ...(by === null ? {} : { sort: by.column, desc: by.desc }), ...(words === "" ? {} : { filter: words }) };
      const rows = await attempt(() => api.rows(dataset, query));
      if (rows !== null && asked.current.have === have) keep(page, rows, have);
      if (rows !== null) continue;
      have.delete(page); // asked for again when one scrolls on
      break;
    }
    busy.current = false;
  };
  const next = () => wanted.current.find((page) => !asked.current.have.has(page));
  const keep = (page: number, { total, columns, rows }: Rows, have: Set<number>) =>
    setFound((known) => {
      const pages = new Map(known.pages).set(page, rows);
      for (const old of pages.keys()) {
        if (pages.size <= MAX_PAGES) break;
        pages.delete(old);
        have.delete(old);
      }
      return { total, columns: columns.map((column) => column.name), pages };
    });
  return {
    total: found.total,
    columns: found.columns,
    row: (at: number) => found.pages.get(Math.floor(at / PAGE))?.[at % PAGE],
    known: () => [...found.pages].sort(([one], [other]) => one - other).flatMap(([, rows]) => rows),
    want: (first: number, last: number) => {
      wanted.current = [...new Set([Math.floor(first / PAGE), Math.floor(last / PAGE)])];
      void fetchWanted();
    },
  };
}
