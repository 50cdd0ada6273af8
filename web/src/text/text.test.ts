import fc from "fast-check";
import { expect, test } from "vitest";
import { withFiles, wordsOf } from "./attached";
import { blocks } from "./blocks";
import { entryYaml } from "./entryYaml";
import { closed } from "./growing";
import { citedIn, html } from "./markdown";
import { excerptOf, quotedIn } from "./quoted";

const line = fc.constantFrom("a", "", "- b", "  c", "```", "~~~~", "# d", "1. e", "$$", "> f", "    g", "| h |");
const markdown = fc.array(line, { maxLength: 40 }).map((lines) => lines.join("\n"));

test("blocks put together are the text again", () => {
  fc.assert(
    fc.property(markdown, (text) => {
      expect(blocks(text).join("")).toBe(text);
    }),
  );
});

test("what was finished stays finished while a text grows", () => {
  fc.assert(
    fc.property(markdown, fc.nat(), (text, cut) => {
      const before = blocks(text.slice(0, cut % (text.length + 1))).slice(0, -2);
      expect(blocks(text).slice(0, before.length)).toEqual(before);
    }),
  );
});

test("a list, a fence and a formula with blank lines inside stay one block", () => {
  expect(blocks("- a\n\n- b\n\n  c\n\nd\n")).toHaveLength(2);
  expect(blocks("```\na\n\nb\n```\n\nc\n")).toHaveLength(2);
  expect(blocks("$$\na\n\nb\n$$\n\nc\n")).toHaveLength(2);
});

test.each([
  ["**中文，**后", "<strong>中文，</strong>后"],
  ["**“引号”**后", "<strong>“引号”</strong>后"],
  ["这是**重点（说明）**内容", "<strong>重点（说明）</strong>"],
])("Chinese emphasis in %s is bold", (text, expected) => expect(html(text)).toContain(expected));

const HOSTILE = [
  "<script>window.__xss=1</script>",
  "<img src=x onerror=window.__xss=1>",
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](data:text/html,<script>1</script>)",
  "![a](javascript:alert(1))",
  "![a](https://evil.example/x.png?secret)",
  "[a](//evil.example)",
  "<svg/onload=alert(1)>",
  "<a href='x' onclick='alert(1)'>b</a>",
  "```html\n<script>alert(1)</script>\n```",
  "`<img src=x onerror=alert(1)>`",
  "<iframe src=https://evil.example></iframe>",
  '[a](https://x.example "onmouseover=alert(1)")',
  "![a\"onerror=alert(1)](x)",
  "\\(<img src=x onerror=alert(1)>\\)",
  "<style>*{background:url(https://evil.example)}</style>",
  "[a]: javascript:alert(1)\n\n[a]",
  "<details open ontoggle=alert(1)>",
  "&#x3C;script&#x3E;alert(1)&#x3C;/script&#x3E;",
];

test.each(HOSTILE)("%s runs nothing and loads nothing", (text) => {
  const place = document.createElement("div");
  place.innerHTML = html(text);
  expect(place.querySelectorAll("script, img, iframe, svg, style, object, embed, details, link")).toHaveLength(0);
  for (const element of place.querySelectorAll("*")) {
    for (const attribute of element.attributes) {
      expect(attribute.name).not.toMatch(/^on/);
      if (attribute.name === "href") expect(attribute.value).toMatch(/^(https?:|mailto:|#|\/)/);
    }
  }
});

test("a citation of a known source is a button; an unknown number and code stay text", () => {
  const made = html("see [1] and [9], `[1]`", new Set([1]));
  expect(made.match(/data-cite/g)).toHaveLength(1);
  expect(made).toContain("[9]");
  expect(made).toContain("<code>[1]</code>");
});

test("any text gives HTML that runs nothing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const place = document.createElement("div");
      place.innerHTML = html(text);
      expect(place.querySelector("script, img, iframe, svg, style")).toBeNull();
    }),
  );
});

test("the words of a message are told from the lines that name its files", () => {
  const files = [{ id: "1", name: "a.md" }, { id: "2", name: "b [1].md" }];
  expect(wordsOf(withFiles("two\nlines", files), files)).toBe("two\nlines");
  expect(wordsOf("[file: a.md]\n[file: b [1].md]", files)).toBe("");
  expect(wordsOf("I wrote [file: a.md]", [])).toBe("I wrote [file: a.md]");
  fc.assert(fc.property(fc.string(), (words) => wordsOf(withFiles(words, files), files) === words));
});

test("one entry is cut out of the YAML of a conversation as it stands there", () => {
  const yaml = 'title: T\nentries:\n- kind: Text\n  content: |\n    - no entry\n\n    of its own\n- kind: Special\n  toolCalls:\n  - id: a\nnotes:\n- x\n';
  expect(entryYaml(yaml, 0)).toBe("- kind: Text\n  content: |\n    - no entry\n\n    of its own\n");
  expect(entryYaml(yaml, 1)).toBe("- kind: Special\n  toolCalls:\n  - id: a\n");
  expect(entryYaml(yaml, 2)).toBe("");
  expect(entryYaml("entries: []\n", 0)).toBe("");
});

test("an answer cites the sources whose numbers stand in it, each once", () => {
  expect(citedIn("as said [2], [1] and [2]; not [7] nor [3](http://a)", new Set([1, 2, 3]))).toEqual(new Set([2, 1]));
  expect(citedIn("两处【3】，又见 [1, 2]", new Set([1, 2, 3]))).toEqual(new Set([3, 1, 2]));
});

test("a bracket of several numbers leads to each of them, and one that names no source stays text", () => {
  const made = html("Both [1, 2]【3】, and [1, 9].", new Set([1, 2, 3]));
  expect([...made.matchAll(/data-cite="(\d)"/g)].map((match) => match[1])).toEqual(["1", "2", "3"]);
  expect(made).toContain("and [1, 9].");
});

test("sentences of a passage that an answer says are told from the others", () => {
  const quotes = (passage: string, answer: string) => quotedIn(passage, answer).filter((piece) => piece.quoted).map((piece) => piece.text.trim());
  expect(quotes("Open from nine. Refunds take 2.5 days. Ask us.", "**Refunds** take 2.5 days [1], I read.")).toEqual(["Refunds take 2.5 days."]);
  expect(quotes("## 退款\n\n当天验货，三个工作日内退回。另外，运费自理。", "根据文档：当天验货，三个工作日内退回。[2]")).toEqual(["当天验货，三个工作日内退回。"]);
  expect(quotes("No.", "no")).toEqual([]);
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom("a", ".", " ", "。", "\n", "1", "?") }), (text) => quotedIn(text, "a").map((piece) => piece.text).join("") === text));
});

test("what is shown beside a number begins where the answer took its words from", () => {
  const shown = (passage: string) => excerptOf(passage, "Refunds take 2.5 days.").map((piece) => piece.text).join("");
  const [long, more] = ["Open from nine. ".repeat(20), "Ask at the desk. ".repeat(20)];
  expect(shown("Open from nine. Refunds take 2.5 days.")).toBe("Open from nine. Refunds take 2.5 days.");
  expect(shown(`${long}Refunds take 2.5 days.`)).toBe("… Refunds take 2.5 days.");
  expect(shown(`${long}Refunds take 2.5 days. ${more}`)).toBe(`…${` Refunds take 2.5 days. ${more}`.slice(0, 240)}…`);
  expect(shown(more)).toBe(`${more.slice(0, 240)}…`);
});

test("while a text grows its open marks are closed, and those at its end wait", () => {
  expect(closed("so **very")).toBe("so **very**");
  expect(closed("so **very **")).toBe("so **very**");
  expect(closed("so **")).toBe("so ");
  expect(closed("**a** and `co")).toBe("**a** and `co`");
  expect(closed("**see `co")).toBe("**see `co`**");
  expect(closed("`**` and \\*\\* are")).toBe("`**` and \\*\\* are");
  expect(closed("```\n**x")).toBe("```\n**x");
  const words = (text: string) => text.replace(/[*`~\s]/g, "");
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom("a", "*", "`", " ", "\\", "\n", "~", "中") }), (text) => words(closed(text)) === words(text)));
});

test("a table's columns stand as they were asked to, without a style the content policy refuses", () => {
  const made = html("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |");
  expect(made).toContain('<th>a</th>\n<th class="to-center">b</th>\n<th class="to-right">c</th>');
  expect(made).toContain('<td>1</td>\n<td class="to-center">2</td>\n<td class="to-right">3</td>');
  expect(made).not.toContain("style=");
});

test("a formula that has its lines for itself is set off, one within a line is not", () => {
  const displayed = (text: string) => [...html(text).matchAll(/data-display="(\w+)"/g)].map((match) => match[1]);
  expect(displayed("$$x^2$$")).toEqual(["true"]);
  expect(displayed("$$\nx^2\n$$")).toEqual(["true"]);
  expect(displayed("so:\n\\[\nx^2\n\\]\nand")).toEqual(["true"]);
  expect(displayed("so $$x$$ and \\[y\\] and")).toEqual(["false", "false"]);
  expect(displayed("\\(x\\)")).toEqual(["false"]);
});
