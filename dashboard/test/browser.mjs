// Opens the page in a real browser and looks: do vehicles appear and move, do figures come, does a click open a message?
//
//   node test/browser.mjs [--url URL] [--screenshot FILE] [--size 1600x900] [--vehicles N] [--moving N] [--watch S]
//
// Without --url it serves dist/ in front of the fake server. Without a Chromium it says so and succeeds.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { runnerImport } from "vite";

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    screenshot: { type: "string" },
    size: { type: "string", default: "1600x900" },
    vehicles: { type: "string", default: "60" },
    /** So many stations must move between two instants. */
    moving: { type: "string", default: "3" },
    /** Seconds to watch before the screenshot. */
    watch: { type: "string", default: "4" },
  },
});

const BROWSER_ARGS = [
  "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader", "--ignore-gpu-blocklist",
];
const APPEAR_MS = 20_000;

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(executablePath)) {
  console.log(`skipped: no browser at ${executablePath}; set CHROMIUM`);
  process.exit(process.env.VIADUCT_REQUIRE_PEERS ? 1 : 0);
}

const root = fileURLToPath(new URL("..", import.meta.url));
const fake = options.url ? undefined : await startFake();
const browser = await chromium.launch({ executablePath, args: BROWSER_ARGS });
let failed = false;
try {
  await look(options.url ?? fake.url);
} catch (error) {
  failed = true;
  console.error(`FAILED: ${error.message}`);
} finally {
  await browser.close();
  fake?.node.stop();
  fake?.server.closeAllConnections();
  fake?.server.close();
}
process.exit(failed ? 1 : 0);

async function look(url) {
  const [width, height] = options.size.split("x").map(Number);
  const page = await browser.newPage({ viewport: { width, height } });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => !/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== new URL(url).origin && complaints.push(`asks elsewhere: ${request.url()}`));
  await page.goto(url);

  await step("vehicles appear", () => page.waitForFunction(() => window.viaduct?.stations().length > 0, null, { timeout: APPEAR_MS }));
  await step("the count of stations is shown", () => text(page, "stations-count", (shown) => Number(shown) > 0));
  await step("the live stream is open", () => page.waitForSelector('[data-testid=connection][data-phase="live"]', { timeout: APPEAR_MS }));
  await step("vehicles move", () => vehiclesMove(page));
  await step("a hop has a latency", async () => {
    await page.waitForFunction(() => [...document.querySelectorAll("[data-testid=latency-row]")].some((row) => Number(row.dataset.p50Us) > 0), null, { timeout: APPEAR_MS });
    const hops = await page.evaluate(() => window.viaduct.hops());
    assert(hops.some(({ recent, total }) => recent.p50_us > 0 && total.count > 0), "no hop with a p50 above 0");
  });
  await step("the message rates are plotted", async () => {
    await page.waitForFunction(() => window.viaduct.samples().rates >= 2, null, { timeout: APPEAR_MS });
    await page.waitForSelector("[data-testid=rate-row]");
    await page.waitForSelector("#rates .uplot canvas");
  });
  await step("a click opens the decoded message", () => clickVehicle(page));
  await page.waitForTimeout(Number(options.watch) * 1_000);
  if (options.screenshot) await page.screenshot({ path: options.screenshot });
  await step("Escape closes the station", async () => {
    await page.keyboard.press("Escape");
    await page.waitForSelector("[data-testid=station-panel]", { state: "hidden" });
  });
  await step("no errors in the console", async () => assert(complaints.length === 0, complaints.join("\n")));
}

async function vehiclesMove(page) {
  const wanted = Number(options.moving);
  const before = await page.evaluate(() => window.viaduct.stations());
  const until = Date.now() + APPEAR_MS;
  let moved = 0;
  while (Date.now() < until && moved < wanted) {
    await page.waitForTimeout(500);
    const now = new Map((await page.evaluate(() => window.viaduct.stations())).map((station) => [station.id, station]));
    moved = before.filter(({ id, lon, lat }) => now.has(id) && Math.hypot(now.get(id).lon - lon, now.get(id).lat - lat) > 1e-5).length;
  }
  assert(moved >= wanted, `${moved} of ${before.length} stations moved by about a metre, wanted ${wanted}`);
}

/** Vehicles do not wait for the mouse: a few tries. */
async function clickVehicle(page) {
  const box = await page.locator("#traffic").boundingBox();
  for (let attempt = 0; attempt < 12; attempt += 1) {
    const at = await page.evaluate(
      ({ width, height, skip }) =>
        window.viaduct
          .stations()
          .map(({ id }) => window.viaduct.whereDrawn(id))
          .filter((at) => at && at.x > 60 && at.y > 60 && at.x < width * 0.6 && at.y < height - 80)[skip],
      { ...box, skip: attempt },
    );
    if (at) {
      await page.mouse.click(box.x + at.x, box.y + at.y);
      const opened = await page.waitForSelector("[data-testid=message-tree] [data-testid=tree-leaf]", { timeout: 2_000 }).catch(() => undefined);
      if (opened) return;
    }
    await page.waitForTimeout(300);
  }
  assert(false, "no click opened a message");
}

async function text(page, testId, wanted) {
  const locator = page.getByTestId(testId);
  const until = Date.now() + APPEAR_MS;
  while (Date.now() < until) {
    if (wanted(await locator.innerText())) return;
    await page.waitForTimeout(100);
  }
  assert(false, `${testId} shows "${await locator.innerText()}"`);
}

async function step(name, run) {
  const started = Date.now();
  await run().catch((error) => {
    throw new Error(`${name}: ${error.message}`);
  });
  console.log(`ok  ${name}  (${Date.now() - started} ms)`);
}

function assert(holds, message) {
  if (!holds) throw new Error(message);
}

async function startFake() {
  const page = `${root}dist`;
  if (!existsSync(`${page}/index.html`)) throw new Error("there is no dist/: run `npm run build` first");
  const { module } = await runnerImport(`${root}fake-server.ts`);
  return module.startFakeServer({ port: 0, vehicles: Number(options.vehicles), page });
}
