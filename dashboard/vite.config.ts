import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { FakeNode } from "./fake-server.ts";

/** `vite --mode fake`: the page with a simulated node (FAKE_VEHICLES sets the number of vehicles, 60 by default). */
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
  // `npm run dev` uses a real node.
  server: { proxy: mode === "fake" ? {} : { "/v1": process.env["VIADUCT_URL"] ?? "http://127.0.0.1:8080" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // License texts of the bundled libraries.
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 1_500,
    // MapLibre's worker is an .mjs file, which not every server serves as JavaScript.
    rolldownOptions: { output: { assetFileNames: ({ names }) => (names[0]?.endsWith(".mjs") ? "assets/[name]-[hash].js" : "assets/[name]-[hash][extname]") } },
  },
}));
