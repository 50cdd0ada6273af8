import { expect, test } from "vitest";
import { setLanguage } from "../i18n/i18n";
import { suggested, troublesOf } from "./columnMatch";
import { answersOf, fromText, isVisible, violationsOf } from "./formFields";
import { nodesOf } from "./gridding";
import { csv } from "./TableCard";

test("answers are typed, and hidden or empty fields are left out", () => {
  const fields = [
    { id: "n", type: "number" },
    { id: "on", type: "bool" },
    { id: "why", type: "text", visibleIf: { on: true } },
    { id: "more", type: "text", visibleIf: { why: "x" } },
    { id: "tags", type: "multiselect" },
  ];
  expect(answersOf(fields, { n: "2.5", on: "false", why: "x", more: "y", tags: [] })).toEqual({ n: 2.5, on: false });
  expect(answersOf(fields, { n: "two", on: "true", why: "x", more: "y", tags: ["a"] })).toEqual({ n: "two", on: true, why: "x", more: "y", tags: ["a"] });
  expect(isVisible({ id: "a", visibleIf: { on: [true, null] } }, {})).toBe(true);
});

test("what is wrong is told by its rule: in the form's own words, or as it is checked", () => {
  setLanguage("en");
  const wrong = (help: string) => violationsOf([{ keyword: "pattern", keywordLocation: "", instanceLocation: "#/order", error: "" }], [{ id: "order", pattern: "^[0-9]+$", help }], { order: "12ab" });
  expect(wrong("")).toEqual({ order: "must match ^[0-9]+$" });
  expect(wrong("digits only")).toEqual({ order: "not in the form that is asked for: digits only" });
});

test("full-width digits are digits", () => expect(fromText("１２．５")).toBe("12.5"));

test("columns are paired by name, label and synonym, each once", () => {
  const required = [{ name: "x", synonyms: ["east", "经度"] }, { name: "y", label: "North" }, { name: "z", required: false }];
  const columns = [{ name: "East" }, { name: "north" }, { name: "h" }];
  expect(suggested(required, columns, [])).toEqual({ x: "East", y: "north" });
  expect(suggested(required, columns, [{ requiredColumn: "z", matchedColumn: "h" }])).toEqual({ x: "East", y: "north", z: "h" });
});

test("what is missing, doubled or of another kind is said", () => {
  setLanguage("en");
  const required = [{ name: "x", dtype: "float" }, { name: "y" }];
  const columns = [{ name: "a", dtype: "text" }, { name: "b" }];
  expect(troublesOf(required, columns, { x: "a" })).toEqual({ x: { words: "this column holds text", blocks: false }, y: { words: "needed", blocks: true } });
  expect(Object.keys(troublesOf(required, columns, { x: "b", y: "b" }))).toEqual(["x", "y"]);
});

test("a grid has a node at both ends", () => {
  expect(nodesOf({ xMin: 0, xMax: 1, yMin: 0, yMax: 0.3 }, { dx: 0.1, dy: 0.1 })).toEqual({ nx: 11, ny: 4 });
  expect(nodesOf({ xMin: 0, xMax: 1, yMin: 0, yMax: 1 }, { dx: 0, dy: 1 })).toBeNull();
});

test("what a spreadsheet would run is text in CSV; numbers stay numbers", () => {
  expect(csv(["a,b", "c"], [["=1+1", -5], ["@x", "-5"], ['q"', "l\n"]])).toBe('"a,b",c\r\n\'=1+1,-5\r\n\'@x,-5\r\n"q""","l\n"\r\n');
});
