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

/** Runs in the page: a gamepad that `follow` moves. */
function stubGamepad() {
  globalThis.pad = { axes: [0, 0, 0, 0], buttons: {} };
  navigator.getGamepads = () => {
    const { axes, buttons } = globalThis.pad;
    return [{ id: "Lap pad (STANDARD GAMEPAD)", mapping: "standard", index: 0, connected: true, axes, buttons: Array.from({ length: 17 }, (_, at) => ({ value: buttons[at] ?? 0, pressed: (buttons[at] ?? 0) > 0.5 })) }];
  };
}

/** Runs in the page: follows the course (pure pursuit) until the vehicle has driven its length. */
function follow(speed_mps) {
  const DEAD_ZONE = 0.08;
  const WHEELBASE_M = 2.7;
  const course = window.viaductDesk.map().lines.find(({ kind }) => kind === "course").points;
  const steps = course.map((point, index) => distance(point, course[(index + 1) % course.length]));
  const length_m = steps.reduce((sum, step) => sum + step, 0);
  const max_rad = window.viaductDesk.session().welcome.vehicle.steering_max_rad;
  const drives = () => ["ready", "driving", "hold"].includes(window.viaductDesk.state()?.driving.state) && window.viaductDesk.state().driving.holder?.you === true;
  let last = window.viaductDesk.map().vehicle;
  globalThis.lap = { done: false, deviationMax_m: 0, way_m: 0, drives };
  const timer = setInterval(() => {
    const { vehicle } = window.viaductDesk.map();
    if (!vehicle || globalThis.lap.done) return;
    globalThis.lap.way_m += distance(vehicle, last);
    last = vehicle;
    globalThis.lap.deviationMax_m = Math.max(globalThis.lap.deviationMax_m, fromLine(vehicle));
    globalThis.lap.done = globalThis.lap.way_m >= length_m;
    if (globalThis.lap.done) clearInterval(timer);
    globalThis.pad = globalThis.lap.done ? { axes: [0, 0, 0, 0], buttons: {} } : { axes: [stick(steer(vehicle)), 0, 0, 0], buttons: pedals() };
  }, 20);

  function steer(vehicle) {
    const ahead_m = 5 + 0.6 * Math.abs(window.viaductDesk.state().vehicle.speed_mps ?? 0);
    const target = pointAhead(nearest(vehicle), ahead_m);
    const [east, north] = [target.east_m - vehicle.east_m, target.north_m - vehicle.north_m];
    const heading = ((90 - vehicle.heading_deg) * Math.PI) / 180;
    const angle = Math.atan2(north, east) - heading;
    return Math.atan((2 * WHEELBASE_M * Math.sin(angle)) / Math.hypot(east, north)) / max_rad;
  }

  /** The inverse of the shape that the page gives to a stick. */
  function stick(share) {
    const size = Math.min(1, Math.abs(share)) ** (1 / 1.6);
    return size === 0 ? 0 : -Math.sign(share) * (DEAD_ZONE + size * (1 - DEAD_ZONE));
  }

  function pedals() {
    const missing = speed_mps - (window.viaductDesk.state()?.vehicle.speed_mps ?? 0);
    return { 5: 1, 7: Math.min(1, Math.max(0, 0.15 + missing * 0.5)), 6: missing < -1 ? Math.min(1, -missing * 0.2) : 0 };
  }

  function nearest(point) {
    return course.reduce((best, candidate, index) => (distance(candidate, point) < distance(course[best], point) ? index : best), 0);
  }

  function pointAhead(index, ahead_m) {
    let [at, left_m] = [index, ahead_m];
    while (left_m > 0) {
      left_m -= Math.max(steps[at], 0.01);
      at = (at + 1) % course.length;
    }
    return course[at];
  }

  function fromLine(point) {
    const at = nearest(point);
    return Math.min(fromSegment(point, course[at], course[(at + 1) % course.length]), fromSegment(point, course[(at - 1 + course.length) % course.length], course[at]));
  }

  function fromSegment(point, a, b) {
    const [east, north] = [b.east_m - a.east_m, b.north_m - a.north_m];
    const square = east ** 2 + north ** 2;
    const share = square === 0 ? 0 : Math.min(1, Math.max(0, ((point.east_m - a.east_m) * east + (point.north_m - a.north_m) * north) / square));
    return Math.hypot(point.east_m - a.east_m - share * east, point.north_m - a.north_m - share * north);
  }

  function distance(a, b) {
    return Math.hypot(a.east_m - b.east_m, a.north_m - b.north_m);
  }
}

async function startDev() {
  const { module } = await runnerImport(`${root}dev/desk-server.ts`);
  const started = await module.startDevDesk({ page: `${root}dist-desk/desk.html`, patience: 4 });
  started.desk.vehicle.steersItself = false;
  return started;
}
