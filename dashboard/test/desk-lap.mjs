// Drives a lap in Chromium: a simulated gamepad follows the line `course` of the map with the positions that the page shows. Prints one
// JSON object with the deviation from the line, command rate, frames and glass-to-glass latencies.
//
//   node test/desk-lap.mjs [--url URL] [--token driver] [--speed 6] [--deviation 2.5] [--timeout 240] [--screenshot FILE]
//
// Without --url it drives the simulated vehicle of the development server. Without Chromium it is skipped.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { APPEAR_MS, assert, launch, open } from "./harness.mjs";
import { follow, stubGamepad } from "./lap-driver.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    token: { type: "string", default: "driver" },
    /** Wanted speed in m/s. */
    speed: { type: "string", default: "6" },
    /** Largest permitted distance from the line in metres. */
    deviation: { type: "string", default: "2.5" },
    /** Time for the lap in seconds. */
    timeout: { type: "string", default: "240" },
    screenshot: { type: "string" },
  },
});

const browser = await launch(["--disable-gpu"]);
const dev = options.url ? undefined : await startDev();
let failed = false;
try {
  await driveLap(options.url ?? dev.url);
} catch (error) {
  failed = true;
  console.error(`FAILED: ${error.message}`);
} finally {
  await browser.close();
  dev?.desk.stop();
  dev?.server.closeAllConnections();
  dev?.server.close();
}
process.exit(failed ? 1 : 0);

async function driveLap(url) {
  const { page, complaints } = await open(browser, `${url}#token=${options.token}`, { width: 1366, height: 768 }, stubGamepad);
  await page.waitForFunction(() => window.viaductDesk?.map().vehicle && window.viaductDesk.map().lines.some(({ kind }) => kind === "course"), null, { timeout: APPEAR_MS });
  await page.click("[data-testid=take]");
  await page.waitForFunction(() => window.viaductDesk.state()?.driving.holder?.you === true, null, { timeout: APPEAR_MS });
  for (let place = 0; place < 3; place += 1) await page.keyboard.press("KeyE");
  const started = performance.now();
  await page.evaluate(follow, Number(options.speed));
  try {
    await page.waitForFunction(() => globalThis.lap.done || !globalThis.lap.drives(), null, { timeout: Number(options.timeout) * 1_000, polling: 500 });
  } finally {
    if (options.screenshot) await page.screenshot({ path: options.screenshot });
    console.log(JSON.stringify(await results(page, (performance.now() - started) / 1_000)));
  }
  const { done, deviationMax_m } = await page.evaluate(() => globalThis.lap);
  assert(done, "control was lost before the end of the lap");
  assert(deviationMax_m <= Number(options.deviation), `${deviationMax_m.toFixed(2)} m from the line`);
  assert(complaints.length === 0, complaints.join("\n"));
}

async function results(page, lap_s) {
  const found = await page.evaluate(() => {
    const { lap, viaductDesk } = globalThis;
    return { done: lap.done, deviationMax_m: lap.deviationMax_m, way_m: lap.way_m, commands: viaductDesk.commands(), cameras: viaductDesk.cameras() };
  });
  const cameras = found.cameras.map(({ camera, received, shown, skipped, late, missed, marks_read, marks_failed, glass_all_us }) => {
    const sorted = glass_all_us.toSorted((a, b) => a - b);
    const quantile_ms = (share) => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) / 1_000;
    return { camera, received, shown, skipped, late, missed, marks_read, marks_failed, glass_ms: { n: sorted.length, p50: quantile_ms(0.5), p99: quantile_ms(0.99), max: quantile_ms(1) } };
  });
  return { lap_s, way_m: found.way_m, deviation_max_m: found.deviationMax_m, commands: found.commands.sent, cameras };
}

async function startDev() {
  const { module } = await runnerImport(`${root}dev/desk-server.ts`);
  const started = await module.startDevDesk({ page: `${root}dist-desk/desk.html`, patience: 4 });
  started.desk.vehicle.steersItself = false;
  return started;
}
