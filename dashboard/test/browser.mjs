// Opens the page in Chromium and checks what a reader sees, at two sizes: vehicles, events, infrastructure, figures, accessibility.
//
//   node test/browser.mjs [--url URL] [--screenshot FILE] [--size 1600x900] [--vehicles N] [--moving N] [--watch S]
//                         [--no-roads] [--shots FOLDER]
//
// Without --url it serves dist/ with the fake server. Without Chromium it is skipped.

import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { APPEAR_MS, assert, checkAccessibility, launch, open as openPage, PHONE, step, text } from "./harness.mjs";

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    screenshot: { type: "string" },
    size: { type: "string", default: "1600x900" },
    vehicles: { type: "string", default: "60" },
    /** Number of stations that must move between two instants. */
    moving: { type: "string", default: "3" },
    /** Seconds to wait before the screenshot. */
    watch: { type: "string", default: "4" },
    /** The fake node has no road network. */
    "no-roads": { type: "boolean", default: false },
    /** Folder for pictures of the life cycle of an event and of the narrow page. */
    shots: { type: "string" },
  },
});

const MAP_ARGS = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader", "--ignore-gpu-blocklist"];

const browser = await launch(MAP_ARGS);
const root = fileURLToPath(new URL("..", import.meta.url));
if (options.shots) mkdirSync(options.shots, { recursive: true });
const fake = options.url ? undefined : await startFake();
let failed = false;
try {
  await checkPage(options.url ?? fake.url);
  await checkPhone(options.url ?? fake.url);
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

async function checkPage(url) {
  const [width, height] = options.size.split("x").map(Number);
  const { page, complaints } = await open(url, { width, height });
  await step("vehicles appear", () => page.waitForFunction(() => window.viaduct?.stations().length > 0, null, { timeout: APPEAR_MS }));
  await step("the number of stations is shown", () => text(page, "stations-count", (shown) => Number(shown) > 0));
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
  if (options.url === undefined) {
    await step("the stages of a round trip are plotted and listed", async () => {
      await page.waitForFunction(() => document.querySelectorAll("[data-testid=figures-row]").length === 11, null, { timeout: APPEAR_MS });
      await page.waitForSelector("#figures .plot .uplot canvas");
      await page.waitForSelector("#figures .ecdf .uplot canvas");
      assert(/total 86\.\d ms.*2 missing.*clock -3\.21 ms ±17\.4 ms/.test(await page.textContent("#figures .note")), "the note lacks a figure");
    });
  }
  await step("the scale and the coordinates are shown", async () => {
    await text(page, "scale", (shown) => /^\d+ (m|km)$/.test(shown));
    await text(page, "coordinates", (shown) => /° [NS]/.test(shown));
  });
  if (options.url === undefined) await checkObjects(page);
  await step("a click opens the decoded message", () => clickVehicle(page));
  await page.waitForTimeout(Number(options.watch) * 1_000);
  if (options.screenshot) await page.screenshot({ path: options.screenshot });
  await step("axe-core finds nothing", () => checkAccessibility(page));
  if (options.url === undefined) {
    await step("a message that was not verified has a badge and its signer", async () => {
      await page.fill("#search-id", "1002");
      await page.keyboard.press("Enter");
      await page.waitForSelector("[data-testid=unverified]", { timeout: APPEAR_MS });
      await text(page, "station-sheet", (shown) => /signer\s*0d3a1d0ddf3f5b7d/.test(shown));
    });
    await shot(page, "unverified");
  }
  await step("Escape closes the station", async () => {
    await page.keyboard.press("Escape");
    await page.waitForSelector("[data-testid=station-panel]", { state: "hidden" });
  });
  await step("far from the roads there is a graticule", async () => {
    for (let i = 0; i < 12; i += 1) await page.click("#zoom-out");
    await page.waitForFunction(() => window.viaduct.hasGraticule(), null, { timeout: APPEAR_MS });
  });
  await shot(page, "far");
  await step("no errors in the console", async () => assert(complaints.length === 0, complaints.join("\n")));
  await page.close();
}

/** An event with its life cycle, which does not move its sender; lanes and signals; no graticule while roads are in view. */
async function checkObjects(page) {
  await step("an event is drawn at its own position", async () => {
    await page.waitForFunction(() => window.viaduct.events().some(({ state }) => state === "active"), null, { timeout: APPEAR_MS });
    await text(page, "events-count", (shown) => shown === "1");
  });
  await step("repetitions are no drops", () => text(page, "repetition-rate", (shown) => Number(shown) > 0));
  await step("a DENM does not move its sender", () => senderStays(page));
  await step("lanes, signals, a sign and its zone are drawn", async () => {
    await page.waitForFunction(() => window.viaduct.infrastructure().counts.stop_line === 4, null, { timeout: APPEAR_MS });
    const { counts, signals } = await page.evaluate(() => window.viaduct.infrastructure());
    assert(counts.lane === 8 && counts.zone === 1 && counts.sign === 1, JSON.stringify(counts));
    assert(signals.includes("protected_movement_allowed") || signals.includes("protected_clearance"), signals.join());
  });
  await step("a graticule replaces missing roads", async () => assert((await page.evaluate(() => window.viaduct.hasGraticule())) === options["no-roads"], "graticule"));
  await step("a click opens the event", async () => {
    await clickEvent(page);
    await text(page, "event-title", (shown) => /^stationary vehicle$/i.test(shown));
    await text(page, "event-state", (shown) => shown === "active");
    await text(page, "event-sheet", (shown) => /cause code\s*94, sub-cause 2/.test(shown) && /awareness distance\s*200 m/.test(shown));
  });
  await step("an event that was not verified has a badge", async () => {
    await page.waitForSelector("[data-testid=event-unverified]", { timeout: APPEAR_MS });
    await text(page, "event-sheet", (shown) => /security\s*unverified/.test(shown));
    const [panel, close] = await Promise.all([page.locator("[data-testid=event-panel]").boundingBox(), page.locator("[data-testid=event-close]").boundingBox()]);
    assert(close.x + close.width <= panel.x + panel.width, "the close button is outside the panel");
  });
  await shot(page, "event-1-trigger");
  await step("an update moves the event", async () => {
    const [before] = await page.evaluate(() => window.viaduct.events());
    fake.node.updateEvent();
    await page.waitForFunction((lon) => window.viaduct.events()[0]?.lon !== lon, before.lon, { timeout: APPEAR_MS });
    await text(page, "event-sheet", (shown) => /1 update/.test(shown) && /security\s*unsecured/.test(shown));
    await page.waitForSelector("[data-testid=event-unverified]", { state: "hidden" });
  });
  await shot(page, "event-2-update");
  await step("a cancelled event fades and disappears", async () => {
    fake.node.cancelEvent();
    await page.waitForFunction(() => window.viaduct.events()[0]?.state === "cancelled", null, { timeout: APPEAR_MS });
    await text(page, "event-state", (shown) => shown === "cancelled");
    await shot(page, "event-3-cancel");
    await page.waitForFunction(() => window.viaduct.events()[0]?.state !== "cancelled", null, { timeout: APPEAR_MS });
    await page.waitForSelector("[data-testid=event-panel]", { state: "hidden" });
  });
}

/** The narrow page: nothing wider than the screen, the panel and its button on the screen. */
async function checkPhone(url) {
  const { page, complaints } = await open(url, PHONE);
  await step("390 px: vehicles appear", () => page.waitForFunction(() => window.viaduct?.stations().length > 0, null, { timeout: APPEAR_MS }));
  await step("390 px: the live stream is open", () => page.waitForSelector('[data-testid=connection][data-phase="live"]', { timeout: APPEAR_MS }));
  await step("390 px: the page fits", async () => {
    const widest = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(widest <= PHONE.width, `the page is ${widest} px wide`);
    await onScreen(page, "[data-testid=connection]");
    await onScreen(page, "#search-id");
  });
  await step("390 px: a station opens and its close button is on the screen", async () => {
    await page.evaluate(() => window.scrollTo(0, 0));
    const id = await page.evaluate(() => window.viaduct.stations().at(0).id);
    await page.fill("#search-id", String(id));
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-testid=message-tree] [data-testid=tree-leaf]", { timeout: APPEAR_MS });
    await onScreen(page, "[data-testid=close]");
  });
  await page.waitForTimeout(1_500);
  await shot(page, "phone-station");
  await step("390 px: axe-core finds nothing", () => checkAccessibility(page));
  await step("390 px: the button closes the station", async () => {
    await page.click("[data-testid=close]");
    await page.waitForSelector("[data-testid=station-panel]", { state: "hidden" });
  });
  await shot(page, "phone");
  await step("390 px: no errors in the console", async () => assert(complaints.length === 0, complaints.join("\n")));
  await page.close();
}

function open(url, viewport) {
  return openPage(browser, url, viewport);
}

async function onScreen(page, selector) {
  const box = await page.locator(selector).boundingBox();
  const inside = box && box.x >= 0 && box.x + box.width <= PHONE.width && box.y >= 0 && box.y + box.height <= PHONE.height;
  assert(inside, `${selector} is at ${JSON.stringify(box)}`);
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
  assert(moved >= wanted, `${moved} of ${before.length} stations moved by about a metre, expected ${wanted}`);
}

/** For three seconds, the sender of the DENM never jumps by more than 30 m. */
async function senderStays(page) {
  let last;
  for (let i = 0; i < 30; i += 1) {
    const sender = (await page.evaluate(() => window.viaduct.stations())).find(({ id }) => id === 1001);
    if (last && sender) {
      const metres = Math.hypot((sender.lon - last.lon) * 70_000, (sender.lat - last.lat) * 111_000);
      assert(metres < 30, `the sender jumped ${metres.toFixed(0)} m`);
    }
    last = sender;
    await page.waitForTimeout(100);
  }
  assert(last, "station 1001 is missing");
}

/** Vehicles move while the mouse clicks, so it takes several attempts. */
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

async function clickEvent(page) {
  const box = await page.locator("#traffic").boundingBox();
  const at = await page.evaluate(() => window.viaduct.whereEventDrawn(window.viaduct.events()[0].id));
  assert(at, "the event is not drawn");
  await page.mouse.click(box.x + at.x, box.y + at.y);
  await page.waitForSelector("[data-testid=event-panel]", { timeout: 2_000 });
}

async function shot(page, name) {
  if (!options.shots) return;
  await page.waitForTimeout(600);
  await page.screenshot({ path: `${options.shots}/${name}.png` });
}

async function startFake() {
  const page = `${root}dist`;
  if (!existsSync(`${page}/index.html`)) throw new Error("there is no dist/: run `npm run build` first");
  const { module } = await runnerImport(`${root}fake-server.ts`);
  return module.startFakeServer({ port: 0, vehicles: Number(options.vehicles), page, roads: !options["no-roads"], figures: true });
}
