/** One open conversation: a snapshot and the events after it, folded. Pure; replays and overlaps change nothing. */

import type { Header, Place, Run, RunCall, Shown, ShownCard, ShownText, Source, ToolCall, WireEvent, Window } from "../wire";

export interface Conversation {
  id: string;
  /** Visible entries by index, without gaps from `start` to `total`; folded card states take no place of their own. */
  entries: readonly Shown[];
  start: number;
  total: number;
  run: Run | null;
  /** Why the last run ended, until the next begins; null when it simply finished. */
  failure: { code: string; message: string } | null;
  /** Steps of the run that is under way or was last. */
  steps: readonly Step[];
  epoch: string;
  seq: number;
  stale: boolean;
}

export interface Step {
  name: string;
  state: "running" | "done";
}

const MAX_STEPS = 500;

export function opened(id: string, window: Window): Conversation {
  const [epoch, seq] = splitCursor(window.cursor);
  return {
    id,
    entries: window.entries,
    start: window.start,
    total: window.total,
    run: window.run,
    failure: null,
    steps: [],
    epoch,
    seq,
    stale: false,
  };
}

/** Put an older window in front. */
export function prepended(state: Conversation, window: Window): Conversation {
  const known = new Set(state.entries.map((entry) => entry.index));
  const older = window.entries.filter((entry) => entry.index < state.start && !known.has(entry.index));
  return { ...state, entries: [...older, ...state.entries], start: Math.min(window.start, state.start) };
}

export function splitCursor(cursor: string): [epoch: string, seq: number] {
  const dot = cursor.lastIndexOf(".");
  return [cursor.slice(0, dot), Number(cursor.slice(dot + 1)) || 0];
}

/** Fold one event. Events of other conversations and those already seen are ignored. */
export function folded(state: Conversation, event: WireEvent): Conversation {
  // a server that was started anew counts from the beginning: what it says of that is never old
  if (event.type === "CUSTOM" && event.name === "resync") return { ...state, stale: true };
  const place = event.metadata?.dialoom;
  if (place === undefined || place.seq <= state.seq) return state;
  // only its own events move its place: one of another may come from a stream that never carried these
  if (place.conversation !== state.id) return state;
  return { ...changed(state, event, place), seq: place.seq };
}

function changed(state: Conversation, event: WireEvent, place: Place): Conversation {
  switch (event.type) {
    case "RUN_STARTED":
      return { ...state, run: newRun(place.runId ?? String(event.runId)), failure: null, steps: [] };
    case "RUN_FINISHED":
      return { ...state, run: waiting(state.run, event.outcome), failure: null };
    case "RUN_ERROR":
      return { ...state, run: null, failure: { code: String(event.code ?? ""), message: String(event.message ?? "") } };
    case "STEP_STARTED":
      return { ...state, run: roundBegan(state.run, event.stepName), steps: begun(state.steps, String(event.stepName)) };
    case "STEP_FINISHED":
      return { ...state, steps: done(state.steps, String(event.stepName)) };
    case "CUSTOM":
      return custom(state, String(event.name), event.value);
    default:
      return state.run === null ? state : { ...state, run: streamed(state.run, event) };
  }
}

function newRun(id: string): Run {
  return { id, status: "running", startedAt: new Date().toISOString(), text: "", reasoning: "", toolCalls: [] };
}

function waiting(run: Run | null, outcome: unknown): Run | null {
  const type = typeof outcome === "object" && outcome !== null ? (outcome as { type?: unknown }).type : outcome;
  return run !== null && type === "interrupt" ? { ...run, status: "waiting", text: "", reasoning: "" } : null;
}

/** The pieces of an answer that is asked for once more are void. */
function roundBegan(run: Run | null, step: unknown): Run | null {
  return run === null || step !== "model" ? run : { ...run, text: "", sources: [], reasoning: "", settled: false };
}

function streamed(run: Run, event: WireEvent): Run {
  if (run.settled === true && /^(TEXT|REASONING)_/.test(event.type)) return run; // its entry has it
  switch (event.type) {
    case "TEXT_MESSAGE_START":
      return { ...run, text: "" };
    case "TEXT_MESSAGE_CONTENT":
      return { ...run, text: run.text + String(event.delta ?? "") };
    case "REASONING_MESSAGE_START":
      return { ...run, reasoning: "" };
    case "REASONING_MESSAGE_CONTENT":
      return { ...run, reasoning: run.reasoning + String(event.delta ?? "") };
    case "TOOL_CALL_START":
      return { ...run, toolCalls: startedCall(run.toolCalls, event) };
    case "TOOL_CALL_ARGS":
      return withCall(run, event, (call) => ({ ...call, arguments: call.arguments + String(event.delta ?? "") }));
    case "TOOL_CALL_RESULT":
      return withCall(run, event, (call) => ({
        ...call,
        result: String(event.content ?? ""),
        isError: event.metadata?.dialoom?.isError === true,
        endedAt: new Date().toISOString(),
      }));
    default:
      return run;
  }
}

/** A call that came back: what it returned comes with its entry. */
function finishedCall(run: Run, { toolCallId, isError }: { toolCallId: string; isError: boolean }): Run {
  return withCall(run, { type: "", toolCallId }, (call) => ({ ...call, isError, endedAt: new Date().toISOString() }));
}

function startedCall(calls: RunCall[], event: WireEvent): RunCall[] {
  const id = String(event.toolCallId);
  const call = { id, name: String(event.toolCallName ?? ""), arguments: "", startedAt: new Date().toISOString() };
  return calls.some((known) => known.id === id) ? calls : [...calls, call];
}

function withCall(run: Run, event: WireEvent, change: (call: RunCall) => RunCall): Run {
  const id = String(event.toolCallId);
  return { ...run, toolCalls: run.toolCalls.map((call) => (call.id === id ? change(call) : call)) };
}

function begun(steps: readonly Step[], name: string): readonly Step[] {
  return [...steps.slice(-MAX_STEPS + 1), { name, state: "running" }];
}

function done(steps: readonly Step[], name: string): readonly Step[] {
  const last = steps.findLastIndex((step) => step.name === name && step.state === "running");
  return last < 0 ? steps : steps.with(last, { name, state: "done" });
}

function custom(state: Conversation, name: string, value: unknown): Conversation {
  switch (name) {
    case "entry.appended":
      return appended(state, (value as { entry: Shown }).entry);
    case "entry.updated":
      return updated(state, (value as { entry: ShownCard }).entry);
    case "entries.truncated":
      return truncated(state, (value as { keep: number }).keep);
    case "run.cited":
      return { ...state, run: cited(state.run, (value as { sources: Source[] }).sources) };
    case "tool.finished":
      return state.run === null ? state : { ...state, run: finishedCall(state.run, value as { toolCallId: string; isError: boolean }) };
    default:
      return state;
  }
}

function appended(state: Conversation, entry: Shown): Conversation {
  if (state.entries.some((known) => known.index === entry.index)) return updated(state, entry);
  const run = state.run === null ? null : settled(state.run, entry);
  return { ...state, entries: [...state.entries, entry], total: Math.max(state.total, entry.index + 1), run };
}

function cited(run: Run | null, sources: readonly Source[]): Run | null {
  if (run === null || run.settled === true) return run;
  const known = (run.sources ?? []).filter((source) => !sources.some((one) => one.index === source.index));
  return { ...run, sources: [...known, ...sources] };
}

/** The answer under way as the entry it will be; null while there are no words of one. */
export function coming({ run, total }: Conversation): ShownText | null {
  if (run === null || run.text === "") return null;
  return { index: total, kind: "Text", role: "assistant", content: run.text, sources: run.sources ?? [] };
}

/** What became an entry is no longer the run's to show. */
function settled(run: Run, entry: Shown): Run {
  if (entry.kind !== "Text") return run;
  if (entry.role === "assistant") return { ...run, text: "", sources: [], reasoning: "", settled: true };
  if (entry.role === "tool") return { ...run, toolCalls: run.toolCalls.filter((call) => call.id !== entry.toolCallId) };
  return run;
}

/** A card's newest state, in its first place. One that stands in a part not loaded changes nothing here. */
function updated(state: Conversation, entry: Shown): Conversation {
  const at = state.entries.findIndex((known) => known.index === entry.index);
  const total = entry.kind === "Special" ? Math.max(state.total, entry.rev + 1) : state.total;
  return at < 0 ? { ...state, total } : { ...state, total, entries: state.entries.with(at, entry) };
}

function truncated(state: Conversation, keep: number): Conversation {
  const cut = state.entries.some((entry) => entry.kind === "Special" && entry.index < keep && entry.rev >= keep);
  const entries = state.entries.filter((entry) => entry.index < keep);
  return { ...state, entries, total: Math.min(state.total, keep), stale: state.stale || cut };
}

/** What became of a call that was not made: a person said no, nobody answered in time, or the talk went on without. */
export type Fate = "declined" | "expired" | "givenUp";

/** The calls that were not made, and why. */
export function fates(entries: readonly Shown[]): ReadonlyMap<ToolCall, Fate> {
  const open = new Map<string, ToolCall>();
  const found = new Map<ToolCall, Fate>();
  const end = (id: string, fate: Fate) => {
    const call = open.get(id);
    if (call !== undefined && open.delete(id)) found.set(call, fate);
  };
  for (const entry of entries) {
    if (entry.kind === "Special") {
      const fate = fateOf(entry, entries);
      if (fate !== null) end(String(entry.card?.toolCallId), fate);
    } else if (entry.role === "user") [...open.keys()].forEach((id) => end(id, "givenUp"));
    else if (entry.role === "tool") open.delete(entry.toolCallId ?? "");
    else for (const call of entry.toolCalls ?? []) open.set(call.id, call);
  }
  return found;
}

const SKEW_MS = 60_000; // the clocks of two machines

/** The cards that a run asks a person by. */
const ASKING: ReadonlySet<string> = new Set(["Approval", "Form"]);

/** Why nobody waits for a card that nobody said yes to; null for any other.
 *
 * The server says expired of all that it closed itself: one that a message came before, or whose time was not over,
 * was given up.
 */
export function fateOf(shown: ShownCard, entries: readonly Shown[]): Fate | null {
  const { status, expiresAt } = shown.card ?? {};
  if (!ASKING.has(shown.type)) return null;
  if (status === "declined") return "declined";
  if (status === "cancelled") return "givenUp";
  if (status !== "expired") return null;
  const isLeft = entries.some((entry) => shown.index < entry.index && entry.index < shown.rev && entry.kind === "Text" && entry.role === "user");
  return !isLeft && typeof expiresAt === "string" && Date.parse(expiresAt) <= Date.now() + SKEW_MS ? "expired" : "givenUp";
}

/** Whether something waits for a person's answer, which another message gives up. */
export function isAsking({ run, entries }: Conversation): boolean {
  if (run !== null) return run.status === "waiting";
  return entries.some((entry) => isOpen(entry) && entry.type === "Approval");
}

/** Whether an answer is missing that nobody is giving: to the newest words, or to a call that waits for no person. */
export function isUnfinished({ run, failure, entries }: Conversation): boolean {
  const at = entries.findLastIndex((entry) => entry.kind === "Text");
  const newest = entries[at];
  if (run !== null || failure !== null || newest?.kind !== "Text") return false;
  if (newest.role !== "assistant") return at === entries.length - 1;
  const ended = fates(entries);
  const isMissing = newest.toolCalls?.some((call) => (ended.get(call) ?? "declined") === "declined") ?? false; // a no has to be told, too
  return isMissing && !entries.slice(at).some((entry) => isOpen(entry) && ASKING.has(entry.type));
}

function isOpen(entry: Shown): entry is ShownCard {
  return entry.kind === "Special" && !entry.locked && entry.card !== null && !entry.card.status;
}

/** A conversation and the versions of it that are listed: those that branched from one another. */
export interface Family {
  first: Header;
  versions: readonly Header[];
}

/** Rows by family, each where its first row stands; a version follows the row it shares an origin with. */
export function families(rows: readonly Header[]): readonly Family[] {
  const known = new Map(rows.map((row) => [row.id, row]));
  const found = new Map<string, { first: Header; versions: Header[] }>();
  for (const row of rows) {
    const origin = originOf(row, known);
    const family = found.get(origin);
    if (family === undefined) found.set(origin, { first: row, versions: [] });
    else family.versions.push(row);
  }
  return [...found.values()];
}

function originOf(row: Header, known: ReadonlyMap<string, Header>): string {
  const passed = new Set<string>();
  let at = row;
  while (at.branchFrom != null && !passed.has(at.id)) {
    passed.add(at.id);
    const parent = known.get(at.branchFrom);
    if (parent === undefined) return at.branchFrom; // not listed here, and still what its versions share
    at = parent;
  }
  return at.id;
}

/** The list's rows with one changed header put in its place, newest first. */
export function listed(rows: readonly Header[], header: Header): readonly Header[] {
  const rest = rows.filter((row) => row.id !== header.id);
  return [header, ...rest].sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
}
