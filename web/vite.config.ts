/// <reference types="vitest/config" />
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import type { Plugin } from "vite";

/** Every browser this page is for reads woff2; the formula fonts' older copies are left out. */
const onlyWoff2: Plugin = {
  name: "only-woff2",
  generateBundle(_options, bundle) {
    for (const name of Object.keys(bundle)) if (/\.(ttf|woff)$/.test(name)) delete bundle[name];
  },
};

/** Beside each text file its compressed twin, so that the server has nothing to compress. */
const compressed: Plugin = {
  name: "compressed",
  writeBundle(options, bundle) {
    for (const [name, file] of Object.entries(bundle)) {
      if (!/\.(js|css|html|svg)$/.test(name) || options.dir === undefined) continue;
      const text = file.type === "chunk" ? file.code : file.source;
      writeFileSync(join(options.dir, `${name}.gz`), gzipSync(text, { level: 9 }));
    }
  },
};

export default defineConfig({
  plugins: [react(), onlyWoff2, compressed],
  base: "/",
  build: {
    outDir: "../src/dialoom/server/page",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 450,
    assetsInlineLimit: 0, // the content policy allows no inlined fonts and scripts
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8321", "/login": "http://127.0.0.1:8321" } },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], testTimeout: 20_000, pool: "threads", maxWorkers: 1, isolate: false }, // one document for all: making it costs most
});
