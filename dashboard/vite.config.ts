import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { FakeNode } from "./fake-server.ts";

/** `vite --mode fake`: the page with a simulated node behind it (FAKE_VEHICLES=500 for more of them). */
function fakeNode(): Plugin {
  const node = new FakeNode({ vehicles: Number(process.env["FAKE_VEHICLES"] ?? 60) });
  return {
    name: "fake-node",
    configureServer: (server) => void server.middlewares.use((request, response, next) => node.handle(request, response) || next()),
    configurePreviewServer: (server) => void server.middlewares.use((request, response, next) => node.handle(request, response) || next()),
  };
}

export default defineConfig(({ mode }) => ({
  test: { include: ["test/*.test.ts"] },
  plugins: mode === "fake" ? [fakeNode()] : [],
  // A real node, for `npm run dev`.
  server: { proxy: mode === "fake" ? {} : { "/v1": process.env["VIADUCT_URL"] ?? "http://127.0.0.1:8080" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // The texts that the libraries in the bundle want to be carried along.
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 1_500,
    // MapLibre's worker is an .mjs file, for which not every server knows that it is JavaScript.
    rolldownOptions: { output: { assetFileNames: ({ names }) => (names[0]?.endsWith(".mjs") ? "assets/[name]-[hash].js" : "assets/[name]-[hash][extname]") } },
  },
}));
