import fc from "fast-check";
import { expect, test } from "vitest";
import { difference } from "./difference";

test("a change names its place, what was there and what is there now", () => {
  const before = { turn: [{ role: "user" }], rounds: 0, gone: true, spent: { usage: { input: 1 } } };
  const after = { turn: [{ role: "user" }, { role: "assistant" }], rounds: 1, spent: { usage: { input: 5 } } };
  expect(difference(before, after)).toEqual([
    { place: "turn[1]", before: undefined, after: { role: "assistant" } },
    { place: "rounds", before: 0, after: 1 },
    { place: "gone", before: true, after: undefined },
    { place: "spent.usage.input", before: 1, after: 5 },
  ]);
});

test("a list that became an object is one change", () => {
  expect(difference({ a: [] }, { a: {} })).toEqual([{ place: "a", before: [], after: {} }]);
});

test("a state differs from no state in every channel, and from itself in nothing", () => {
  expect(difference({}, { a: 1, b: [] }).map((each) => each.place)).toEqual(["a", "b"]);
  fc.assert(fc.property(fc.jsonValue(), (value) => difference(value, structuredClone(value)).length === 0));
});

test("any two states give a bounded list, empty only when they are the same", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (before, after) => {
      const found = difference(before, after);
      expect(found.length).toBeLessThanOrEqual(200);
      if (found.length === 0) expect(after).toEqual(before);
    }),
  );
});
