import fc from "fast-check";
import { expect, test } from "vitest";
import type { Place } from "./inSight";
import { heightOf, moved, ROW_PX } from "./inSight";

const SEEN = 380;
const START: Place = { top: 0, at: 0 };

test("rows that fit are where the bar says", () => {
  expect(heightOf(20_000)).toBe(600_000);
  expect(moved(START, 1234, 20_000, SEEN)).toEqual({ top: 1234, at: 1234 });
});

test("of ten million rows the first, the last and those in between are reached", () => {
  const count = 10_000_000;
  const end = heightOf(count) - SEEN;
  expect(moved(START, end, count, SEEN).at).toBe(count * ROW_PX - SEEN);
  expect(moved({ top: end, at: count * ROW_PX - SEEN }, 0, count, SEEN)).toEqual(START);
  expect(moved(START, end / 2, count, SEEN).at / ROW_PX / count).toBeCloseTo(0.5, 3);
  const middle = moved(START, end / 2, count, SEEN);
  expect(moved(middle, end / 2 + 100, count, SEEN).at).toBe(middle.at + 100); // a turn of the wheel leaves no row out
});

test("no way leads outside, and both ends are the ends", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10_000_000 }), fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }), (count, way) => {
      const bar = Math.max(0, heightOf(count) - SEEN);
      const last = Math.max(0, count * ROW_PX - SEEN);
      const ends = way.reduce((place, part) => moved(place, part * bar, count, SEEN), START);
      expect(ends.at).toBeGreaterThanOrEqual(0);
      expect(ends.at).toBeLessThanOrEqual(last);
      expect(moved(ends, bar, count, SEEN).at).toBe(last);
      expect(moved(ends, 0, count, SEEN).at).toBe(bar === 0 ? last : 0);
    }),
  );
});
