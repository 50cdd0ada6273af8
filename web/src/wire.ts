/** What the server says, as types. Everything that arrives is read by `api.ts` and `stream.ts` and trusted after. */

import type { Attachment } from "./text/attached";

export type Role = "user" | "assistant" | "system" | "tool";

export interface Header {
  id: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  workflowMode?: string;
  branchFrom?: string | null;
  running?: string | null;
  settings?: Choices;
}

/** What a conversation is set to; what is left out is the server's choice. */
export interface Choices {
  provider?: string;
  model?: string;
  system?: string;
  skills?: string[];
}

export interface ToolCall {
  id: string;
  name: string;
  arguments?: unknown;
  raw?: string;
  problem?: string;
}

export interface Source {
  index: number;
  id: string;
  title: string;
  text: string;
  url?: string;
}

export interface ShownText {
  index: number;
  kind: "Text";
  role: Role;
  content: string;
  reasoning?: string;
  status?: "cancelled" | "incomplete";
  toolCalls?: ToolCall[];
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  sources?: Source[];
  attachments?: Attachment[];
}

export interface ShownCard {
  index: number;
  kind: "Special";
  type: string;
  payload: string;
  card: CardData | null;
  locked: boolean;
  problem?: string;
  /** The JSON Schema of a form's answers. */
  schema?: Record<string, unknown>;
  rev: number;
}

export type Shown = ShownText | ShownCard;

/** The fields of a card, as its type defines them. */
export interface CardData {
  id?: string;
  title?: string;
  status?: string;
  /** A sentence in English, and the code that has words in other languages. */
  error?: string | null;
  errorCode?: string | null;
  [field: string]: unknown;
}

export interface RunCall {
  id: string;
  name: string;
  arguments: string;
  result?: string;
  isError?: boolean;
  startedAt?: string;
  endedAt?: string;
}

export interface Run {
  id: string;
  status: "running" | "waiting" | "finished" | "failed" | "cancelled";
  startedAt?: string;
  text: string;
  /** The passages that the text cites so far. */
  sources?: Source[];
  reasoning: string;
  toolCalls: RunCall[];
  /** Whether the words of this round are an entry: what still comes of them is in there. */
  settled?: boolean;
}

export interface Window {
  start: number;
  total: number;
  cursor: string;
  entries: Shown[];
  run: Run | null;
}

export interface Page<T> {
  items: T[];
  cursor: string | null;
}

export interface Place {
  conversation: string;
  /** Where the event stands in its hub's one sequence. */
  seq: number;
  runId?: string;
  isError?: boolean;
}

/** An AG-UI event; `metadata.dialoom` says where it belongs. */
export interface WireEvent {
  type: string;
  metadata?: { dialoom?: Place };
  [field: string]: unknown;
}

/** Why a request was not done: RFC 9457, with a code the page has words for. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly params: Record<string, unknown> = {},
  ) {
    super(detail);
  }
}
