import fc from "fast-check";
import { expect, test } from "vitest";
import { contour, levelsOf, readGrid } from "./contours";

const HEAD = "ncols 3\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value -9\n";
const grid = (text: string) => {
  const read = readGrid(HEAD + text);
  if (read === null) throw new Error("no grid");
  return read;
};

test("a text grid is read with its gaps, and what is none is refused", () => {
  expect(grid("1 2 3\n4 -9 6\n")).toEqual({ columns: 3, rows: 2, z: Float64Array.of(1, 2, 3, 4, NaN, 6) });
  expect(readGrid(`${HEAD}1 2 3\n4 5\n`)).toBeNull();
  expect(readGrid("<!doctype html>")).toBeNull();
  expect(readGrid("ncols 2000000\nnrows 2000000\n1")).toBeNull();
});

test("a line goes where the height is, through the middles of the nodes' pixels", () => {
  expect(contour(grid("0 10 20\n0 10 20\n"), 15)).toBe("M2 0.5L2 1.5");
  expect(contour(grid("0 10 20\n0 -9 20\n"), 15)).toBe(""); // nothing is known around the gap
  expect(contour(grid("0 10 20\n0 10 20\n"), 99)).toBe("");
});

test("in a saddle the two lines keep apart, on the side its middle says", () => {
  const saddle = { columns: 2, rows: 2, z: Float64Array.of(0, 8, 8, 0) };
  expect(contour(saddle, 2)).toBe("M1.5 1.25L1.25 1.5M0.5 0.75L0.75 0.5"); // around the two low corners
  expect(contour(saddle, 6)).toBe("M1.25 0.5L1.5 0.75M0.75 1.5L0.5 1.25"); // around the two high ones
});

test("heights are round numbers between the lowest and the highest, few enough to be told apart", () => {
  expect(levelsOf(-58.8, 88.8)).toEqual({ step: 20, levels: [-40, -20, 0, 20, 40, 60, 80] });
  expect(levelsOf(0, 1, 0.25)).toEqual({ step: 0.25, levels: [0.25, 0.5, 0.75] });
  expect(levelsOf(0, 1, 0.001).levels.length).toBeLessThan(20); // too many lines to draw
  expect(levelsOf(3, 3).levels).toEqual([]);
  expect(levelsOf(NaN, 1).levels).toEqual([]);
  fc.assert(
    fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.double({ min: 1e-3, max: 1e6, noNaN: true }), (low, span) => {
      const { levels } = levelsOf(low, low + span);
      return levels.length <= 15 && levels.every((level) => level > low - span / 1e3 && level < low + span * 1.001);
    }),
  );
});
