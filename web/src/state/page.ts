/** What the page shows, and all that changes it: requests of a person and events of the server. */

import { api } from "../api";
import type { Me } from "../api";
import type { FromHub } from "../hub";
import { newKey } from "../keys";
import { trouble } from "../i18n/i18n";
import type { Stream } from "../stream";
import { connect } from "../stream";
import type { Attachment } from "../text/attached";
import type { Header, WireEvent } from "../wire";
import { Refused } from "../wire";
import { beside } from "./beside";
import type { Conversation } from "./conversation";
import { folded, listed, opened, prepended } from "./conversation";
import { forgetDraft, moveDraft } from "./drafts";
import { Cell } from "./store";

const FRAME_MS = 33; // at most thirty redraws a second, however fast the events come
const [ERROR_MS, INFO_MS] = [10_000, 4_000]; // how long a notice stands

export interface Notice {
  id: string;
  text: string;
  kind: "error" | "info";
}

export const me = new Cell<Me | null>(null);
export const headers = new Cell<readonly Header[]>([]);
export const more = new Cell<string | null>(null);
export const searched = new Cell("");
export const current = new Cell<Conversation | null>(null);
/** The title and choices of the open conversation, which the list may not hold. */
export const heading = new Cell<Header | null>(null);
/** Whether a conversation, or an older part of it, is on its way. */
export const loading = new Cell(idInAddress() !== null);
export const online = new Cell(true);
export const signedOut = new Cell(false);
export const notices = new Cell<readonly Notice[]>([]);
/** Counts every change of a knowledge base or server list, so that panels read again. */
export const touched = new Cell(0);
/** How far each knowledge base is with what it was last given, and what went wrong with that. */
export const ingests = new Cell<ReadonlyMap<string, Ingest>>(new Map());

/** Counts what this person said: the transcript follows them to the end. */
export const spoken = new Cell(0);

export interface Ingest {
  job: string;
  phase: string;
  done: number;
  total: number;
  errors: readonly string[];
}

let stream: Stream | null = null;
let pending: WireEvent[] = [];
let frame: ReturnType<typeof setTimeout> | undefined;

export async function begin(): Promise<void> {
  stream = connect(hear);
  const [known] = await Promise.allSettled([api.me(), search("")]);
  if (known.status === "fulfilled") me.set(known.value);
  else tell(known.reason);
  addEventListener("popstate", () => void show(idInAddress(), false));
  await show(idInAddress(), false);
  if (current.get() === null) stream.watch([]);
}

function idInAddress(): string | null {
  return /^\/c\/([A-Za-z0-9_-]{1,64})$/.exec(location.pathname)?.[1] ?? null;
}

function hear(said: FromHub): void {
  if ("online" in said) return online.set(said.online);
  pending.push(said.event);
  frame ??= setTimeout(flush, FRAME_MS);
}

function flush(): void {
  frame = undefined;
  const events = pending;
  pending = [];
  for (const event of events) listEvent(event);
  current.update((open) => (open === null ? null : events.reduce(folded, open)));
  if (current.get()?.stale === true) void reload();
}

/** Sign in with the server's token, or the code of a link that was not used yet; what is on the page stays. */
export async function signIn(token: string): Promise<void> {
  const answer = await attempt(() => fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token: token.trim() }) }));
  if (answer === null) return;
  if (!answer.ok) return note(trouble("wrong_token", answer.statusText), "error");
  signedOut.set(false);
  me.set(await attempt(api.me));
  await search(searched.get());
  if (current.get() === null) await show(idInAddress(), false);
  else await reload();
}

/** Go on with a run that failed or was cut short, where it stood; what it did is not done again.
 *
 * An answer that is there, and calls that no run knows any more, are made anew.
 */
export async function tryAgain(): Promise<void> {
  const open = current.get();
  if (open === null) return;
  try {
    await api.resume(open.id);
    settle();
  } catch (error) {
    if (error instanceof Refused && error.code === "usage") await regenerate();
    else tell(error);
  }
}

function listEvent(event: WireEvent): void {
  const place = event.metadata?.dialoom;
  if (event.type === "RUN_STARTED" && place) running(place.conversation, place.runId ?? null);
  if ((event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") && place) running(place.conversation, null);
  if (event.type !== "CUSTOM") return;
  if (event.name === "conversation.updated") changedHeader(event.value as Header);
  if (event.name === "conversation.deleted") gone((event.value as { id: string }).id);
  if (event.name === "run.noticed" && place?.conversation === current.get()?.id) noticed(event.value as { code: string; message: string });
  if (event.name === "ingest.progress") ingested(event.value as Ingest & { kb: string; error: string });
  if (event.name === "ingest.progress" || event.name === "mcp.changed") touched.update((count) => count + 1);
}

/** Take in what a conversation is now called and set to. */
export function changedHeader(header: Header): void {
  if (heading.get()?.id === header.id) heading.set(header);
  const known = headers.get().some((row) => row.id === header.id);
  if (known || searched.get() === "") headers.update((rows) => listed(rows, header));
}

function noticed({ code, message }: { code: string; message: string }): void {
  note(trouble(code, message));
}

function ingested({ kb, error, code = "", ...now }: Ingest & { kb: string; error: string; code?: string }): void {
  const before = ingests.get().get(kb);
  const errors = before?.job === now.job ? before.errors : [];
  ingests.update((all) => new Map(all).set(kb, { ...now, errors: error === "" ? errors : [...errors.slice(-9), trouble(code, error)] }));
}

function running(id: string, run: string | null): void {
  headers.update((rows) => rows.map((row) => (row.id === id ? { ...row, running: run } : row)));
}

function gone(id: string): void {
  headers.update((rows) => rows.filter((row) => row.id !== id));
  if (current.get()?.id === id) void show(null);
}

/** Open a conversation, or the empty page; `push` makes it a step of the browser's history. */
export async function show(id: string | null, push = true): Promise<void> {
  if (push && id !== idInAddress()) history.pushState(null, "", id === null ? "/" : `/c/${id}`);
  if (current.get()?.id !== id) {
    current.set(null);
    beside.update((shown) => (shown === null ? null : { part: shown.part })); // its entries are of the one before
  }
  if (heading.get()?.id !== id) heading.set(headers.get().find((row) => row.id === id) ?? null);
  loading.set(id !== null);
  if (id === null) return;
  try {
    const [window, header] = await Promise.all([api.entries(id), heading.get() ?? api.header(id)]);
    if (idInAddress() !== id) return; // another one was chosen meanwhile
    heading.update((known) => (known?.id === id ? known : header));
    current.set(opened(id, window));
    stream?.watch([id], window.cursor);
  } catch (error) {
    tell(error);
  } finally {
    if (idInAddress() === id) loading.set(false); // else another one is on its way
  }
}

async function reload(): Promise<void> {
  const open = current.get();
  if (open === null) return;
  try {
    const window = await api.entries(open.id);
    current.update((now) => (now?.id === open.id ? opened(open.id, window) : now));
    stream?.watch([open.id], window.cursor);
    await search(searched.get());
  } catch (error) {
    tell(error);
  }
}

export async function older(): Promise<void> {
  const open = current.get();
  if (open === null || open.start === 0 || loading.get()) return;
  loading.set(true);
  try {
    const window = await api.entries(open.id, open.start);
    current.update((now) => (now?.id === open.id ? prepended(now, window) : now));
  } catch (error) {
    tell(error);
  } finally {
    loading.set(false);
  }
}

export async function search(query: string): Promise<void> {
  searched.set(query);
  try {
    const page = await api.conversations(query);
    if (searched.get() !== query) return;
    headers.set(page.items);
    more.set(page.cursor);
  } catch (error) {
    tell(error);
  }
}

export async function nextPage(): Promise<void> {
  const cursor = more.get();
  if (cursor === null) return;
  more.set(null);
  try {
    const page = await api.conversations(searched.get(), cursor);
    const known = new Set(headers.get().map((row) => row.id));
    headers.update((rows) => [...rows, ...page.items.filter((row) => !known.has(row.id))]);
    more.set(page.cursor);
  } catch (error) {
    tell(error);
  }
}

/** Say `text`; a new conversation is made for it when none is open, and what is kept as `from` is its draft then.
 *
 * Returns whether the server has it.
 */
export async function send(text: string, attachments: readonly Attachment[], from?: string): Promise<boolean> {
  const id = current.get()?.id ?? (await attempt(() => api.create()))?.id;
  if (id === undefined) return false;
  if (current.get()?.id !== id) {
    if (from !== undefined) moveDraft(from, `text:${id}`);
    await show(id); // before anything is said, to hear all that comes of it
  }
  if ((await act(() => api.send(id, text, attachments, newKey()))) === null) return false;
  forgetDraft(`text:${id}`);
  spoken.update((count) => count + 1);
  return true;
}

/** Something a person did went well: what went wrong before it is no news any more. */
export function settle(): void {
  notices.update((all) => all.filter((notice) => notice.kind !== "error"));
}

/** Do what a person wants done; what went wrong is shown, until something goes well. */
async function act<T>(work: () => Promise<T>): Promise<T | null> {
  const done = await attempt(work);
  if (done !== null) settle();
  return done;
}

/** Do something that may be refused; what went wrong is shown. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    tell(error);
    return null;
  }
}

export async function regenerate(): Promise<void> {
  const open = current.get();
  if (open === null) return;
  const started = await act(() => api.regenerate(open.id));
  if (started?.conversationId) await show(started.conversationId);
}

export async function edit(index: number, text: string): Promise<boolean> {
  const open = current.get();
  if (open === null) return false;
  const started = await act(() => api.edit(open.id, index, text));
  if (started?.conversationId) await show(started.conversationId);
  return started !== null;
}

export async function stop(): Promise<void> {
  const run = current.get()?.run;
  if (run) await act(() => api.cancel(run.id));
}

export async function remove(id: string): Promise<void> {
  if ((await act(() => api.remove(id))) !== null) gone(id);
}

export async function rename(id: string, title: string): Promise<void> {
  const header = await act(() => api.change(id, { title }));
  if (header !== null) changedHeader(header);
}

export function tell(error: unknown): void {
  if (error instanceof Refused && error.status === 401) return signedOut.set(true);
  if (error instanceof Refused) return note(trouble(meant(error), error.detail), "error");
  if (error instanceof DOMException && error.name === "TimeoutError") return note(trouble("timeout", error.message), "error");
  note(trouble("network", String(error)), "error");
}

/** The code of a refusal; to answer what expired is another thing than to answer what is answered. */
function meant({ code, params }: Refused): string {
  return code === "card_decided" && params.status === "expired" ? "card_expired" : code;
}

export function note(text: string, kind: Notice["kind"] = "info"): void {
  const notice = { id: newKey(), text, kind };
  notices.update((all) => [...all.filter((one) => one.text !== text || one.kind !== kind).slice(-4), notice]); // said twice, it stands once
  setTimeout(() => dismiss(notice.id), kind === "error" ? ERROR_MS : INFO_MS);
}

export function dismiss(id: string): void {
  notices.update((all) => all.filter((notice) => notice.id !== id));
}
