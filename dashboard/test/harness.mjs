// What the browser tests share: Chromium, pages that report their complaints, steps, axe-core.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const APPEAR_MS = 20_000;
export const PHONE = { width: 390, height: 844 };

const BROWSER_ARGS = ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** axe-core reports a contrast as incomplete if the background is a picture; the palette tests check these colours. */
const AXE_INCOMPLETE_ALLOWED = new Set(["color-contrast"]);
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts Chromium. Without it, ends the process: the test is skipped. */
export async function launch(extraArgs) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) {
    console.log(`skipped: no browser at ${executablePath}; set CHROMIUM`);
    process.exit(process.env.VIADUCT_REQUIRE_PEERS ? 1 : 0);
  }
  return chromium.launch({ executablePath, args: [...BROWSER_ARGS, ...extraArgs] });
}

/** Opens a page; `complaints` collects errors of the console and requests to other servers. */
export async function open(browser, url, viewport, init) {
  const page = await browser.newPage({ viewport, colorScheme: "dark" });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const external = !/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== new URL(url).origin;
    if (external) complaints.push(`request to another server: ${request.url()}`);
  });
  if (init) await page.addInitScript(init);
  await page.goto(url);
  return { page, complaints };
}

export async function checkAccessibility(page) {
  await page.evaluate(axeSource);
  const { violations, incomplete } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations", "incomplete"] }));
  const found = [...violations, ...incomplete.filter(({ id }) => !AXE_INCOMPLETE_ALLOWED.has(id))];
  assert(found.length === 0, found.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`).join("\n"));
}

/** Waits until the text of the element fulfils the condition. */
export async function text(page, testId, matches) {
  const locator = page.getByTestId(testId);
  const until = Date.now() + APPEAR_MS;
  while (Date.now() < until) {
    if (matches(await locator.innerText())) return;
    await page.waitForTimeout(100);
  }
  assert(false, `${testId} shows "${await locator.innerText()}"`);
}

export async function step(name, run) {
  const started = Date.now();
  await run().catch((error) => {
    throw new Error(`${name}: ${error.message}`);
  });
  console.log(`ok  ${name}  (${Date.now() - started} ms)`);
}

export function assert(holds, message) {
  if (!holds) throw new Error(message);
}
