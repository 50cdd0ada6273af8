/// <reference types="vitest/config" />
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

export default defineConfig({
  plugins: [react(), onlyWoff2],
  base: "/",
  build: {
    outDir: "../src/dialoom/server/page",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 450,
    assetsInlineLimit: 0, // the content policy allows no inlined fonts and scripts
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8765", "/login": "http://127.0.0.1:8765" } },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], testTimeout: 20_000 },
});
