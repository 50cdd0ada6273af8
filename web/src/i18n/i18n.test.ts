import { expect, test } from "vitest";
import en from "./en.json";
import { day, setLanguage, t, trouble } from "./i18n";
import zh from "./zh.json";

test("both languages have the same keys, with the same fields in them", () => {
  expect(Object.keys(zh)).toEqual(Object.keys(en));
  const fields = (words: string) => [...words.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
  for (const key of Object.keys(en) as (keyof typeof en)[]) expect(fields(zh[key]), key).toEqual(fields(en[key]));
});

test("every key is used by the page, and every key used is there", () => {
  const sources = import.meta.glob("../**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true }) as Record<string, string>;
  const code = Object.entries(sources).filter(([path]) => !path.includes(".test.")).map(([, text]) => text).join("\n");
  const dynamic = /^(card_|status_|step_|field_|doc_|grid_|tool_|tab_|error\.|key[A-Z]|wrong_)/;
  for (const key of Object.keys(en)) if (!dynamic.test(key)) expect(code, key).toMatch(new RegExp(`["'\`]${key}["'\`]|\\b${key}\\b`));
  for (const [, key] of code.matchAll(/\bt\("([\w.]+)"/g)) expect(en, key).toHaveProperty([key ?? ""]);
});

test("days have names relative to the reader's own midnight", () => {
  setLanguage("en");
  const now = new Date(2026, 10, 30, 0, 5);
  expect(day(new Date(2026, 10, 30, 0, 1).toISOString(), now)).toBe("Today");
  expect(day(new Date(2026, 10, 29, 23, 59).toISOString(), now)).toBe("Yesterday");
  setLanguage("zh");
  expect(day(new Date(2026, 10, 29, 1, 0).toISOString(), now)).toBe("昨天");
  expect(t("rowsOf", { shown: 1, total: 2 })).toBe("1 / 2 行");
});

test("what the server refuses is said in the reader's language, with its own words where they tell more", () => {
  setLanguage("zh");
  expect(trouble("no_space", "the disk is full; free some")).toBe("服务器磁盘空间不足。");
  expect(trouble("provider", "HTTP 401")).toBe("模型没有作答：HTTP 401");
  expect(trouble("of_the_future", "what it says")).toBe("what it says");
  setLanguage("en");
  expect(trouble("no_space", "the disk is full; free some")).toBe("the disk is full; free some");
  expect(trouble("of_the_future", "")).toBe("of_the_future");
});
