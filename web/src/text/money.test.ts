/** What is a formula and what is money: only `$$ … $$`, `\( … \)` and `\[ … \]` are formulas. */

import { expect, test } from "vitest";
import { html } from "./markdown";

const CASES: readonly (readonly [text: string, formulas: readonly string[]])[] = [
  ["$7M to $40M", []],
  ["costs $5", []],
  ["$a$", []],
  ["$x_1$ and $y_2$", []],
  ["US$3 and $4", []],
  ["HK$12–$15", []],
  ["\\$5 and \\$6", []],
  ["**$5** or *$6*", []],
  ["($7)$8", []],
  ["- $1\n- $2", []],
  ["| $a | $b |\n|---|---|\n| $1 | $2 |", []],
  ["从 $7 到 $40，合计 $47。", []],
  ["$ echo $HOME && echo $PATH", []],
  ["`$$a$$` in code", []],
  ["```\n$$\na\n$$\n```", []],
  ["    $$a$$", []],
  ["a lone $$ sign", []],
  ["$$ unclosed a^2", []],
  ["$$$$", []],
  ["\\(unclosed", []],
  ["\\[unclosed", []],
  ["\\( across\n\nparagraphs \\)", []],
  ["[a](http://x.example/?p=$1&q=$2)", []],
  ["\\(a^2\\)", ["a^2"]],
  ["\\[a^2\\]", ["a^2"]],
  ["$$a^2$$", ["a^2"]],
  ["$$\na^2\n$$", ["a^2"]],
  ["so \\(a\\) and \\(b\\)", ["a", "b"]],
  ["pay $5 for \\(x\\), not $6", ["x"]],
  ["$$a$$ costs $5", ["a"]],
  ["- \\(a_1\\)\n- \\(a_2\\)", ["a_1", "a_2"]],
  ["| \\(a\\) |\n|---|\n| $$b$$ |", ["a", "b"]],
  ["面积\\(S=\\pi r^2\\)，价 $3", ["S=\\pi r^2"]],
  ["\\(\\text{costs \\$5}\\)", ["\\text{costs \\$5}"]],
  ["**bold \\(a*b\\) here**", ["a*b"]],
  ["> $$\n> a\n> $$", ["a"]],
];

test("the table has the thirty cases that were asked for, and more", () => {
  expect(new Set(CASES.map(([text]) => text)).size).toBeGreaterThanOrEqual(30);
});

test.each(CASES)("%j holds the formulas %j", (text, formulas) => {
  const place = document.createElement("div");
  place.innerHTML = html(text);
  expect([...place.querySelectorAll("[data-math]")].map((one) => one.textContent)).toEqual(formulas);
});
