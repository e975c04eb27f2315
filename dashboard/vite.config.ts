import { createHash } from "node:crypto";
import type { Plugin, Rolldown } from "vite";
import { runnerImport } from "vite";
import { defineConfig } from "vitest/config";
import { FakeNode } from "./fake-server.ts";

/** Serves a simulated node for the page, with `vite --mode fake` (FAKE_VEHICLES sets the number of vehicles, 60 by default). */
function fakeNode(): Plugin {
  const node = new FakeNode({ vehicles: Number(process.env["FAKE_VEHICLES"] ?? 60), figures: true });
  return {
    name: "fake-node",
    configureServer: (server) => void server.middlewares.use((request, response, next) => node.handle(request, response) || next()),
    configurePreviewServer: (server) => void server.middlewares.use((request, response, next) => node.handle(request, response) || next()),
  };
}

/** `vite --mode fake-desk`: the driver's desk with a simulated vehicle. */
function fakeDesk(): Plugin {
  return {
    name: "fake-desk",
    configureServer: async (server) => {
      const { module } = await runnerImport<typeof import("./dev/desk-server.ts")>("./dev/desk-server.ts");
      const desk = new module.DevDesk();
      server.httpServer?.on("upgrade", (request, socket, head: Buffer) => desk.upgrade(request, socket, head));
    },
  };
}

/**
 * Puts scripts and styles into the page, so that it is one file that a program can embed. A content security policy forbids
 * everything else: no script but this one, no request to another server.
 */
function oneFile(): Plugin {
  return {
    name: "one-file",
    // After the plugin that collects the license texts of the bundled libraries.
    generateBundle: { order: "post", handler: (_, bundle) => joinBundle(bundle) },
  };
}

function joinBundle(bundle: Rolldown.OutputBundle): void {
  const page = Object.values(bundle).find(({ fileName }) => fileName.endsWith(".html"));
  if (page?.type !== "asset") throw new Error("the build has no page");
  const taken = Object.values(bundle).filter((file) => /\.(js|css)$/.test(file.fileName));
  const text = (pattern: RegExp): string => taken.filter(({ fileName }) => pattern.test(fileName)).map((file) => String(file.type === "chunk" ? file.code : file.source)).join("\n").trim();
  const [script, style] = [text(/\.js$/).replaceAll("</script", "<\\/script"), text(/\.css$/)];
  const licenses = Object.values(bundle).find(({ fileName }) => fileName === "licenses.md");
  page.source = joinPage(String(page.source), script, style, licenses?.type === "asset" ? String(licenses.source) : "");
  for (const { fileName } of [...taken, ...(licenses ? [licenses] : [])]) delete bundle[fileName];
}

function joinPage(html: string, script: string, style: string, licenses: string): string {
  const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src 'unsafe-inline'; img-src data: blob:; worker-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
  const bare = html.replace(/\s*<script[^>]*src=[^>]*><\/script>/g, "").replace(/\s*<link[^>]*rel="(stylesheet|modulepreload)"[^>]*>/g, "");
  const notice = licenses === "" ? "" : `<!--\n${licenses.replaceAll("--", "- -")}\n-->\n`;
  // Functions, because a replacement text must not interpret `$`.
  return bare
    .replace(/<meta charset="utf-8" \/>/, (tag) => `${tag}\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
    .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
    .replace("</body>", () => `  <script type="module">${script}</script>\n  </body>`)
    .replace("</html>", () => `</html>\n${notice}`);
}

export default defineConfig(({ mode }) => {
  const desk = mode === "desk";
  return {
    test: { include: ["test/*.test.ts"] },
    plugins: mode === "fake" ? [fakeNode()] : mode === "fake-desk" ? [fakeDesk()] : desk ? [oneFile()] : [],
    // `npm run dev` uses a real node.
    server: { proxy: mode.startsWith("fake") ? {} : { "/v1": process.env["VIADUCT_URL"] ?? "http://127.0.0.1:8080" } },
    build: {
      target: "es2022",
      outDir: desk ? "dist-desk" : "dist",
      assetsInlineLimit: desk ? 1_000_000 : 0,
      modulePreload: !desk,
      // License texts of the bundled libraries.
      license: { fileName: "licenses.md" },
      chunkSizeWarningLimit: 1_500,
      rolldownOptions: {
        ...(desk ? { input: "desk.html" } : {}),
        // MapLibre's worker is an .mjs file, which not every server serves as JavaScript.
        output: { assetFileNames: ({ names }) => (names[0]?.endsWith(".mjs") ? "assets/[name]-[hash].js" : "assets/[name]-[hash][extname]") },
      },
    },
  };
});
