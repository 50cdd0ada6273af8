/** The server's routes, one function each. Every one rejects with `Refused`, or `TypeError` when there is no network. */

import type { Attachment } from "./text/attached";
import type { CardData, Header, Page, Run, Window } from "./wire";
import { Refused } from "./wire";

const ROOT = "/api/v1";
const LIMIT_MS = 30_000;
const UPLOAD_LIMIT_MS = 600_000; // a large file over a slow line

interface Problem {
  code?: string;
  detail?: string;
  title?: string;
  params?: Record<string, unknown>;
}

interface Asked {
  method?: string;
  json?: unknown;
  body?: Blob;
  headers?: Record<string, string>;
}

async function ask(path: string, asked: Asked = {}): Promise<Response> {
  const headers: Record<string, string> = { ...asked.headers };
  let body: BodyInit | null = asked.body ?? null;
  if (asked.json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(asked.json);
  }
  const answer = await fetch(ROOT + path, {
    method: asked.method ?? (body === null ? "GET" : "POST"),
    headers,
    body,
    credentials: "same-origin",
    signal: AbortSignal.timeout(asked.body === undefined ? LIMIT_MS : UPLOAD_LIMIT_MS),
  });
  if (!answer.ok) throw await refused(answer);
  return answer;
}

async function refused(answer: Response): Promise<Refused> {
  const problem = (await answer.json().catch(() => ({}))) as Problem;
  const detail = problem.detail ?? problem.title ?? answer.statusText;
  return new Refused(answer.status, problem.code ?? `http_${answer.status}`, detail, problem.params);
}

async function read<T>(path: string, asked?: Asked): Promise<T> {
  return (await ask(path, asked)).json() as Promise<T>;
}

const seg = encodeURIComponent;

function query(fields: Record<string, string | number | boolean | null | undefined>): string {
  const set = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return set.length ? `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}` : "";
}

export interface Started {
  runId: string;
  index?: number;
  conversationId?: string;
}

export interface Me {
  version: string;
  models: { provider: string; model: string; label: string }[];
  features: Record<string, boolean>;
}

export interface Stored {
  id: string;
  name: string;
  size: number;
  mime: string;
}

export interface Rows {
  total: number;
  columns: { name: string; dtype?: string }[];
  rows: unknown[][];
}

export const api = {
  me: () => read<Me>("/me"),
  conversations: (q = "", cursor: string | null = null) =>
    read<Page<Header>>(`/conversations${query({ q, cursor, limit: 50 })}`),
  create: (fields: Partial<Header> = {}) => read<Header>("/conversations", { json: fields }),
  header: (id: string) => read<Header>(`/conversations/${seg(id)}`),
  change: (id: string, fields: Partial<Pick<Header, "title" | "settings">>) =>
    read<Header>(`/conversations/${seg(id)}`, { method: "PATCH", json: fields }),
  remove: (id: string) => ask(`/conversations/${seg(id)}`, { method: "DELETE" }),
  entries: (id: string, before: number | null = null, limit = 60) =>
    read<Window>(`/conversations/${seg(id)}/entries${query({ before, limit })}`),
  branches: (id: string) =>
    read<{ items: { index: number; conversationIds: string[] }[] }>(`/conversations/${seg(id)}/branches`),
  branch: (id: string, at: number) => read<Header>(`/conversations/${seg(id)}/branch`, { json: { at } }),
  send: (id: string, text: string, attachments: readonly Attachment[], key: string) =>
    read<Started>(`/conversations/${seg(id)}/messages`, { json: { text, attachments, key } }),
  regenerate: (id: string) => read<Started>(`/conversations/${seg(id)}/regenerate`, { json: {} }),
  resume: (id: string) => read<Started>(`/conversations/${seg(id)}/resume`, { json: {} }),
  edit: (id: string, index: number, text: string) =>
    read<Started>(`/conversations/${seg(id)}/edit`, { json: { index, text } }),
  cancel: (run: string) => ask(`/runs/${seg(run)}/cancel`, { json: {} }),
  run: (run: string) => read<Run>(`/runs/${seg(run)}`),
  act: (id: string, card: string, name: string, input: unknown, rev: number, key: string) =>
    read<{ card: CardData; rev: number }>(`/conversations/${seg(id)}/cards/${seg(card)}/actions/${seg(name)}`, {
      json: input,
      headers: { "If-Match": `"${rev}"`, "Idempotency-Key": key },
    }),
  addCard: (id: string, type: string, payload: CardData) =>
    read<{ index: number }>(`/conversations/${seg(id)}/cards`, { json: { type, payload } }),
  rows: (dataset: string, asked: { offset: number; limit: number; sort?: string; desc?: boolean; filter?: string }) =>
    read<Rows>(`/datasets/${seg(dataset)}/rows${query(asked)}`),
  upload: (file: File) =>
    read<Stored>("/files", {
      body: file,
      headers: {
        "Content-Type": file.type || "application/octet-stream",
        "X-Filename": encodeURIComponent(file.name),
      },
    }),
  fetchImage: (url: string) => read<Stored>("/fetch-image", { json: { url } }),
  import: (file: File) =>
    read<Header>(`/conversations/import${query({ format: file.name.split(".").pop() })}`, {
      body: file,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  list: <T>(what: string) => read<{ items: T[] }>(`/${what}`),
  get: <T>(path: string) => read<T>(path),
  post: <T>(path: string, json: unknown) => read<T>(path, { json }),
  put: <T>(path: string, json: unknown) => read<T>(path, { method: "PUT", json }),
};

export const exportUrl = (id: string, format: "md" | "json" | "yaml") =>
  `${ROOT}/conversations/${seg(id)}/export?format=${format}`;
export const datasetCsvUrl = (dataset: string) => `${ROOT}/datasets/${seg(dataset)}/export.csv?bom=1`;
