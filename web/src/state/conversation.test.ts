import fc from "fast-check";
import { expect, test } from "vitest";
import type { Header, Shown, ShownCard, WireEvent } from "../wire";
import type { Conversation } from "./conversation";
import { earlier, Hub } from "../hub";
import { coming, families, fateOf, fates, folded, isAsking, isUnfinished, opened, prepended } from "./conversation";

const EMPTY: Conversation = opened("c", { start: 0, total: 0, cursor: "e.0", entries: [], run: null });

const at = (seq: number, fields: Record<string, unknown>, conversation = "c"): WireEvent => ({
  type: "CUSTOM",
  ...fields,
  metadata: { dialoom: { conversation, seq, runId: "r" } },
});

const said = (index: number, content: string, role = "user"): Shown => ({ index, kind: "Text", role: role as "user", content });
const appended = (seq: number, entry: Shown) => at(seq, { name: "entry.appended", value: { entry } });

const SCRIPT: WireEvent[] = [
  appended(1, said(0, "hello")),
  at(2, { type: "RUN_STARTED" }),
  at(3, { type: "TEXT_MESSAGE_START" }),
  at(4, { type: "TEXT_MESSAGE_CONTENT", delta: "good " }),
  at(5, { type: "REASONING_MESSAGE_CONTENT", delta: "hm" }),
  at(6, { type: "TOOL_CALL_START", toolCallId: "t", toolCallName: "clock" }),
  at(7, { type: "TOOL_CALL_ARGS", toolCallId: "t", delta: "{}" }),
  at(8, { type: "TOOL_CALL_RESULT", toolCallId: "t", content: "noon" }),
  at(9, { type: "TEXT_MESSAGE_CONTENT", delta: "day" }),
  appended(10, said(1, "good day", "assistant")),
  at(11, { type: "RUN_FINISHED" }),
];

test("a run's text grows, becomes an entry, and is then shown once", () => {
  const during = SCRIPT.slice(0, 9).reduce(folded, EMPTY);
  expect(during.run).toMatchObject({ id: "r", text: "good day", reasoning: "hm", toolCalls: [{ id: "t", name: "clock", arguments: "{}", result: "noon" }] });
  const after = SCRIPT.reduce(folded, EMPTY);
  expect(after.run).toBeNull();
  expect(after.entries.map((entry) => (entry as { content: string }).content)).toEqual(["hello", "good day"]);
});

test("a thought stays while the answer comes; what is asked for once more is void", () => {
  const half = [
    at(1, { type: "RUN_STARTED" }),
    at(2, { type: "STEP_STARTED", stepName: "model" }),
    at(3, { type: "REASONING_MESSAGE_START" }),
    at(4, { type: "REASONING_MESSAGE_CONTENT", delta: "hm" }),
    at(5, { type: "TEXT_MESSAGE_START" }),
    at(6, { type: "TEXT_MESSAGE_CONTENT", delta: "half" }),
  ];
  const during = half.reduce(folded, EMPTY);
  expect(during.run).toMatchObject({ text: "half", reasoning: "hm" });
  const again = folded(during, at(7, { type: "STEP_STARTED", stepName: "model" }));
  expect(again.run).toMatchObject({ text: "", reasoning: "" });
});

test("what still comes of words that are an entry already is not said twice", () => {
  const during = [...SCRIPT.slice(0, 10), at(11, { type: "TEXT_MESSAGE_CONTENT", delta: " [1]" })].reduce(folded, EMPTY);
  expect(during.run).toMatchObject({ text: "", reasoning: "" });
  const next = [at(12, { type: "STEP_STARTED", stepName: "model" }), at(13, { type: "TEXT_MESSAGE_CONTENT", delta: "more" })].reduce(folded, during);
  expect(next.run).toMatchObject({ text: "more" });
});

test("replays and overlaps of events change nothing", () => {
  const strip = (state: Conversation) => JSON.stringify(state).replace(/"(started|ended)At":"[^"]*"/g, "");
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(SCRIPT.length), fc.nat(SCRIPT.length)), { maxLength: 6 }), (overlaps) => {
      const repeated: WireEvent[] = [];
      let reached = 0;
      for (const [one, other] of overlaps) {
        const from = Math.min(one, other, reached); // a stream goes back, it never skips ahead
        const to = Math.max(one, other);
        repeated.push(...SCRIPT.slice(from, to));
        reached = Math.max(reached, to);
      }
      repeated.push(...SCRIPT.slice(reached));
      expect(strip(repeated.reduce(folded, EMPTY))).toEqual(strip(SCRIPT.reduce(folded, EMPTY)));
    }),
  );
});

test("events of another conversation change nothing, and hide nothing that comes after them", () => {
  const other = folded(EMPTY, at(5, { type: "RUN_STARTED" }, "other"));
  expect(other).toEqual(EMPTY);
  expect(folded(other, at(4, { type: "RUN_STARTED" })).run?.status).toBe("running");
});

test("a failed run says why until the next begins", () => {
  const failed = folded(EMPTY, at(1, { type: "RUN_ERROR", code: "timeout", message: "too slow" }));
  expect(failed.failure).toEqual({ code: "timeout", message: "too slow" });
  expect(folded(failed, at(2, { type: "RUN_STARTED" })).failure).toBeNull();
});

test("an interrupted run waits for a person", () => {
  const waiting = [at(1, { type: "RUN_STARTED" }), at(2, { type: "RUN_FINISHED", outcome: { type: "interrupt" } })].reduce(folded, EMPTY);
  expect(waiting.run?.status).toBe("waiting");
});

test("a card's new state takes its first place, and truncating to before it asks for a fresh copy", () => {
  const card = (rev: number): Shown => ({ index: 0, kind: "Special", type: "Form", payload: "", card: { id: "f" }, locked: false, rev });
  const shown = [appended(1, card(0)), at(2, { name: "entry.updated", value: { entry: card(3) } })].reduce(folded, EMPTY);
  expect(shown.entries).toEqual([card(3)]);
  expect(shown.total).toBe(4);
  const cut = folded(shown, at(3, { name: "entries.truncated", value: { keep: 2 } }));
  expect(cut.stale).toBe(true);
});

test("a server that was started anew has everything read again, whatever its numbers", () => {
  const during = SCRIPT.slice(0, 5).reduce(folded, EMPTY);
  expect(folded(during, at(1, { name: "resync", value: {} })).stale).toBe(true);
});

test("an older window goes in front without doubles", () => {
  const state = opened("c", { start: 2, total: 4, cursor: "e.9", entries: [said(2, "c"), said(3, "d")], run: null });
  const whole = prepended(state, { start: 0, total: 4, cursor: "e.9", entries: [said(0, "a"), said(1, "b"), said(2, "c")], run: null });
  expect(whole.entries.map((entry) => entry.index)).toEqual([0, 1, 2, 3]);
  expect(whole.start).toBe(0);
});

test("of two cursors the earlier is gone back to, and of two epochs the newer snapshot's", () => {
  expect(earlier("a.5", "a.7")).toBe("a.5");
  expect(earlier("a.10", "a.9")).toBe("a.9");
  expect(earlier("b.1", "a.9")).toBe("b.1");
});

test("a tab whose snapshot is older than the stream has it gone back to", () => {
  const urls: string[] = [];
  const sources: { readyState: number; onmessage?: (message: { data: string; lastEventId: string }) => void }[] = [];
  const hub = new Hub((url) => {
    urls.push(decodeURIComponent(url));
    const source = { readyState: 1, close: () => undefined };
    sources.push(source);
    return source as unknown as EventSource;
  });
  hub.watch(() => undefined, ["a"], "e.3");
  sources[0]?.onmessage?.({ data: '{"type":"RUN_STARTED"}', lastEventId: "e.9" });
  hub.watch(() => undefined, ["a"], "e.7");
  hub.watch(() => undefined, ["a"], "e.9");
  expect(urls).toEqual(["/api/v1/events?conversations=a&after=e.3", "/api/v1/events?conversations=a&after=e.7"]);
});

test("one stream serves all tabs and asks for what all of them show", () => {
  const urls: string[] = [];
  const sources: { close: () => void; readyState: number; onmessage?: (message: { data: string; lastEventId: string }) => void }[] = [];
  const hub = new Hub((url) => {
    urls.push(decodeURIComponent(url));
    const source = { readyState: 1, close: () => undefined };
    sources.push(source);
    return source as unknown as EventSource;
  });
  const heard: string[][] = [[], []];
  hub.watch((said) => "event" in said && heard[0]?.push(said.event.type), ["a"], "e.3");
  hub.watch((said) => "event" in said && heard[1]?.push(said.event.type), ["b"], "e.5");
  sources[1]?.onmessage?.({ data: '{"type":"RUN_STARTED"}', lastEventId: "e.6" });
  sources[1]?.onmessage?.({ data: "not json", lastEventId: "e.7" });
  expect(urls).toEqual(["/api/v1/events?conversations=a&after=e.3", "/api/v1/events?conversations=a,b&after=e.3"]);
  expect(heard).toEqual([["RUN_STARTED"], ["RUN_STARTED"]]);
});

test("a tool that came back says so before its answer is an entry", () => {
  const during = SCRIPT.slice(0, 7).reduce(folded, EMPTY);
  const back = folded(during, at(8, { name: "tool.finished", value: { toolCallId: "t", isError: true } }));
  expect(back.run?.toolCalls).toMatchObject([{ id: "t", isError: true, endedAt: expect.any(String) }]);
});

test("versions of a conversation stand together, also when the first of them is not listed", () => {
  const row = (id: string, branchFrom: string | null): Header => ({ id, title: id, createdAt: "", updatedAt: "", branchFrom });
  const rows = [row("c", "b"), row("x", null), row("b", "a"), row("y", "gone"), row("z", "gone"), row("o", "o")];
  expect(families(rows).map(({ first, versions }) => [first.id, ...versions.map((each) => each.id)])).toEqual([["c", "b"], ["x"], ["y", "z"], ["o"]]);
});

test("what an answer under way cites is known from its first citation until it is an entry", () => {
  const [north, east] = [{ index: 1, id: "n", title: "north", text: "" }, { index: 2, id: "e", title: "east", text: "" }];
  const events = [
    at(1, { type: "RUN_STARTED" }),
    at(2, { type: "STEP_STARTED", stepName: "model" }),
    at(3, { name: "run.cited", value: { sources: [north] } }),
    at(4, { type: "TEXT_MESSAGE_CONTENT", delta: "North [1]" }),
    at(5, { name: "run.cited", value: { sources: [north, east] } }),
    at(6, { type: "TEXT_MESSAGE_CONTENT", delta: ", east [2]" }),
  ];
  const state = events.reduce(folded, EMPTY);
  expect(coming(state)).toEqual({ index: 0, kind: "Text", role: "assistant", content: "North [1], east [2]", sources: [north, east] });
  const ended = folded(state, appended(7, said(0, "North [1], east [2]", "assistant")));
  expect([coming(ended), ended.run?.sources]).toEqual([null, []]);
  expect(folded(ended, at(8, { name: "run.cited", value: { sources: [east] } })).run?.sources).toEqual([]);
});

const calling = (index: number, ...ids: string[]): Shown => ({ index, kind: "Text", role: "assistant", content: "", toolCalls: ids.map((id) => ({ id, name: id })) });
const asked = (index: number, id: string, fields: Record<string, unknown> = {}, rev = index): Shown => ({ index, kind: "Special", type: "Approval", payload: "", card: { toolCallId: id, ...fields }, locked: "status" in fields, rev });
const result = (index: number, id: string): Shown => ({ ...said(index, "done", "tool"), toolCallId: id }) as Shown;

test("why a call was not made is told apart: declined, given up for another message, or out of time", () => {
  const why = (...entries: Shown[]) => Object.fromEntries([...fates(entries)].map(([call, fate]) => [call.id, fate]));
  const [past, future] = ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"];
  expect(why(calling(0, "a"), asked(1, "a"))).toEqual({});
  expect(why(calling(0, "a"), asked(1, "a", { status: "approved" }), result(2, "a"), said(3, "and now?"), calling(4, "a"))).toEqual({});
  expect(why(calling(0, "a"), asked(1, "a", { status: "declined" }), result(2, "a"))).toEqual({ a: "declined" });
  expect(why(calling(0, "a"), asked(1, "a", { status: "cancelled" }))).toEqual({ a: "givenUp" });
  expect(why(calling(0, "a"), asked(1, "a", { status: "expired" }))).toEqual({ a: "givenUp" });
  expect(why(calling(0, "a"), asked(1, "a", { status: "expired", expiresAt: future }))).toEqual({ a: "givenUp" });
  expect(why(calling(0, "a"), asked(1, "a", { status: "expired", expiresAt: past }, 3), said(2, "something else"))).toEqual({ a: "givenUp" });
  expect(why(calling(0, "a"), asked(1, "a", { status: "expired", expiresAt: past }, 2), said(3, "later"))).toEqual({ a: "expired" });
  expect(fateOf({ ...asked(0, "job", { status: "cancelled" }), type: "WorkflowStatus" } as ShownCard, [])).toBeNull();
  expect(why(calling(0, "form"), said(1, "something else"))).toEqual({ form: "givenUp" });
});

test("what nobody answers can be gone on with, wherever its run stood; what a person was asked is theirs to answer", () => {
  const unfinished = (...entries: Shown[]) => isUnfinished({ ...EMPTY, entries });
  const [approved, declined] = [asked(2, "a", { status: "approved" }), asked(2, "a", { status: "declined" })];
  expect(unfinished(said(0, "do it"))).toBe(true);
  expect(unfinished(said(0, "do it"), calling(1, "a"))).toBe(true);
  expect(unfinished(said(0, "do it"), calling(1, "a"), asked(2, "a"))).toBe(false);
  for (const card of [approved, declined]) {
    expect(unfinished(said(0, "do it"), calling(1, "a"), card)).toBe(true);
    expect(unfinished(said(0, "do it"), calling(1, "a"), card, result(3, "a"))).toBe(true);
    expect(unfinished(said(0, "do it"), calling(1, "a"), card, result(3, "a"), said(4, "Done.", "assistant"))).toBe(false);
  }
  expect(unfinished(said(0, "do it"), calling(1, "a", "b"), approved, asked(3, "b"))).toBe(false);
  expect(unfinished(said(0, "do it"), calling(1, "a"), asked(2, "a", { status: "expired" }))).toBe(false);
  expect(unfinished()).toBe(false);
});

test("something waits for an answer while its run does, and after a restart while its approval is open", () => {
  const approval = (status: string | undefined): Shown => ({ index: 0, kind: "Special", type: "Approval", payload: "", card: status === undefined ? {} : { status }, locked: false, rev: 0 });
  expect(isAsking({ ...EMPTY, entries: [approval(undefined)] })).toBe(true);
  expect(isAsking({ ...EMPTY, entries: [approval("cancelled")] })).toBe(false);
  const run = [at(1, { type: "RUN_STARTED" }), at(2, { type: "RUN_FINISHED", outcome: { type: "interrupt" } })];
  expect(isAsking(run.reduce(folded, EMPTY))).toBe(true);
  expect(isAsking(folded(EMPTY, at(1, { type: "RUN_STARTED" })))).toBe(false);
});
