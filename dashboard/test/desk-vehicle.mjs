// Drives a real vehicle node over a real emulated link in Chromium: three `viaduct` processes (desk, link, vehicle) from the config of
// `viaduct demo drive`. Checks driving with a gamepad, a frozen camera, a cut link, a takeover and an emergency stop.
//
//   node test/desk-vehicle.mjs [--binary ../target/debug/viaduct] [--profile lossy-5] [--cameras 4] [--lap] [--shots FOLDER]
//
// With --lap the gamepad drives the whole course, which takes five minutes. One line of the output is then a JSON object with the
// deviation from the course, commands, frames and glass-to-glass latencies.
// Without Chromium it is skipped.

import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { APPEAR_MS, assert, launch, open, step, text } from "./harness.mjs";
import { follow, stubGamepad } from "./lap-driver.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    binary: { type: "string", default: `${root}target/debug/viaduct` },
    profile: { type: "string", default: "lossy-5" },
    cameras: { type: "string", default: "4" },
    lap: { type: "boolean", default: false },
    shots: { type: "string" },
  },
});
const binary = resolve(options.binary);
const LAPTOP = { width: 1366, height: 768 };
const TOKENS = { Ada: "token-of-ada-0001", Grace: "token-of-grace-0001", Observer: "token-of-observer-1" };
/** Distance that the test drives, in metres. A lap ends when the vehicle has driven the length of the course. */
const WAY_M = options.lap ? 5_000 : 60;
/** Speed in metres per second, and the largest permitted distance from the course in metres. */
const SPEED_MPS = 6;
const DEVIATION_M = 2.5;
/** Longest time from the cut of the link to standstill: 1.9 s at 6 m/s, 0.5 s between two updates of the metric, and a busy machine. */
const STOP_MAX_MS = 5_000;

if (!existsSync(binary)) {
  console.log(`skipped: there is no ${binary}; build it with \`cargo build\``);
  process.exit(process.env.VIADUCT_REQUIRE_PEERS ? 1 : 0);
}
const browser = await launch(["--disable-gpu"]);
const folder = mkdtempSync(join(tmpdir(), "desk-vehicle-"));
if (options.shots) mkdirSync(options.shots, { recursive: true });
const processes = [];
let failed = false;
try {
  await check(await ports());
} catch (error) {
  failed = true;
  console.error(`FAILED: ${error.message}`);
  for (const { name, output } of processes) console.error(`--- ${name}\n${output().split("\n").slice(-12).join("\n")}`);
} finally {
  await browser.close();
  for (const { child } of processes) {
    child.kill("SIGCONT");
    child.kill("SIGTERM");
  }
  rmSync(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);

async function check({ page: port, udp, node }) {
  const files = configs(port, udp, node);
  start("desk", files.desk);
  const link = start("link", files.link);
  let vehicle = start("vehicle", files.vehicle);
  const url = `http://127.0.0.1:${port}/`;
  const speed = () => metric(node + 2, "speed_mps");
  await listening(port);

  const ada = await open(browser, `${url}#token=${TOKENS.Ada}`, LAPTOP, stubGamepad);
  const { page } = ada;
  await step("the pictures of all cameras arrive, and their marks are read", () =>
    page.waitForFunction((count) => window.viaductDesk?.cameras().length === count && window.viaductDesk.cameras().every(({ marks_read }) => marks_read > 5), Number(options.cameras), { timeout: APPEAR_MS }),
  );
  await step(`a gamepad drives ${options.lap ? "a lap" : `${WAY_M} m`} along the course`, () => drive(page));
  await step("the vehicle drives on", () => driveOn(page, speed));
  await shot(page, "drive-normal");

  await step("a cut link stops the moving vehicle, and the page shows it", async () => {
    const before_mps = await speed();
    assert(before_mps > 1, `the vehicle has ${before_mps} m/s before the link is cut`);
    link.child.kill("SIGSTOP");
    await until(async () => (await speed()) === 0, `the vehicle moves ${STOP_MAX_MS} ms after the cut`, STOP_MAX_MS);
    await text(page, "alarm", (shown) => /link to the vehicle is lost/.test(shown));
    await pictureIs(page, 0, "frozen");
  });
  await shot(page, "drive-link-lost");
  await step("when the link returns, the vehicle does not move without a new grant", async () => {
    link.child.kill("SIGCONT");
    await page.waitForSelector("[data-testid=alarm]", { state: "hidden", timeout: APPEAR_MS });
    await text(page, "holder", (shown) => shown === "nobody");
    await page.evaluate(() => {
      globalThis.lap.stop();
      globalThis.pad = { axes: [0, 0, 0, 0], buttons: { 5: 1, 7: 1 } };
    });
    await page.waitForTimeout(1_000);
    assert((await speed()) === 0, "the vehicle moves");
    await page.evaluate(() => (globalThis.pad = { axes: [0, 0, 0, 0], buttons: {} }));
  });

  await step("a second driver takes control over", async () => {
    await take(page);
    const grace = await open(browser, `${url}#token=${TOKENS.Grace}`, LAPTOP, stubGamepad);
    await text(grace.page, "holder", (shown) => shown === "Ada");
    await grace.page.click("[data-testid=force]");
    await grace.page.fill("[data-testid=takeover-reason]", "Ada does not answer");
    await shot(grace.page, "drive-takeover");
    await grace.page.click("[data-testid=takeover-confirm]");
    await text(grace.page, "holder", (shown) => shown === "Grace (you)");
    await text(page, "holder", (shown) => shown === "Grace");
    assert(grace.complaints.length === 0, grace.complaints.join("\n"));
    await grace.page.close();
  });
  await step("an observer stops the vehicle in an emergency", async () => {
    const observer = await open(browser, `${url}#token=${TOKENS.Observer}`, LAPTOP);
    await text(observer.page, "user", (shown) => shown === "Observer · observer");
    assert(!(await observer.page.getByTestId("take").isVisible()), "an observer may request control");
    await observer.page.click("[data-testid=emergency]");
    await page.waitForSelector("[data-testid=driving][data-state=stopped]", { timeout: APPEAR_MS });
    await text(page, "driving", (shown) => /emergency/.test(shown));
    await observer.page.close();
  });

  await step("a camera that repeats one picture is marked as frozen, also after a restart of the vehicle", async () => {
    const still = await page.locator("[data-testid=view-1] canvas").screenshot({ type: "jpeg" });
    writeFileSync(join(folder, "still", "1.jpg"), still);
    await stop(vehicle);
    vehicle = start("vehicle", files.frozen);
    await pictureIs(page, 0, "live");
    await text(page, "veil-1", (shown) => /FROZEN/.test(shown) && /the same picture/.test(shown));
  });
  await shot(page, "drive-frozen");
  await step("no errors in the console", async () => assert(ada.complaints.length === 0, ada.complaints.join("\n")));
}

/** Writes the config of `viaduct demo drive` and the files that it names. */
function configs(port, udp, node) {
  const args = ["demo", "drive", "--print-config", "--profile", options.profile, "--cameras", options.cameras, "--port", port, "--udp-port", udp, "--node-port", node];
  const printed = spawnSync(binary, args.map(String), { encoding: "utf8" });
  assert(printed.status === 0, printed.stderr);
  writeFileSync(join(folder, "people"), `driver ${TOKENS.Ada} Ada\ndriver ${TOKENS.Grace} Grace\nobserver ${TOKENS.Observer} Observer\n`, { mode: 0o600 });
  copyFileSync(`${root}configs/roads/practice-course.geojson`, join(folder, "course.geojson"));
  mkdirSync(join(folder, "still"));
  const [, desk, link, vehicle] = printed.stdout.split(/^# demo\/\w+\.yaml$/m);
  const write = (name, config) => {
    const path = join(folder, `${name}.yaml`);
    writeFileSync(path, config);
    return path;
  };
  const frozen = vehicle.replace(/source: \{ synthetic: \{ view: left,[^}]*\} \}/, "source: { directory: { path: still } }");
  assert(frozen !== vehicle || options.cameras === "1", "the config has no left camera");
  return { desk: write("desk", desk), link: write("link", link), vehicle: write("vehicle", vehicle), frozen: write("frozen", frozen) };
}

function start(name, file) {
  const child = spawn(binary, ["run", file], { cwd: folder });
  let output = "";
  const append = (chunk) => (output = (output + chunk).slice(-20_000));
  child.stdout.on("data", append);
  child.stderr.on("data", append);
  const started = { name, child, output: () => output };
  processes.push(started);
  return started;
}

async function stop({ child }) {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

/** Requests control and selects gear D, at standstill: the vehicle refuses a request while it moves. */
async function take(page) {
  await page.waitForFunction(() => Math.abs(window.viaductDesk.state()?.vehicle.speed_mps ?? 1) < 0.05, null, { timeout: APPEAR_MS });
  await page.click("[data-testid=take]");
  await page.waitForFunction(() => window.viaductDesk.state()?.driving.holder?.you === true, null, { timeout: APPEAR_MS });
  for (let place = 0; place < 3; place += 1) await page.keyboard.press("KeyE");
}

/** Drives along the course. On a busy machine the vehicle may stop because pictures or commands are late: then the driver requests control again. */
async function drive(page) {
  await page.waitForFunction(() => window.viaductDesk.map().vehicle && window.viaductDesk.map().lines.some(({ kind }) => kind === "course"), null, { timeout: APPEAR_MS });
  const started = performance.now();
  let [way_m, deviation_max_m] = [0, 0];
  for (let attempt = 1; way_m < WAY_M; attempt += 1) {
    assert(attempt <= 5, `the vehicle stopped ${attempt - 1} times, after ${way_m.toFixed(0)} m`);
    await take(page);
    await page.evaluate(follow, SPEED_MPS);
    await page.waitForFunction((missing) => globalThis.lap.way_m >= missing || globalThis.lap.done || !globalThis.lap.drives(), WAY_M - way_m, { timeout: options.lap ? 600_000 : 60_000, polling: 200 });
    const { way, deviation, still, done } = await page.evaluate(() => ({ way: globalThis.lap.way_m, deviation: globalThis.lap.deviationMax_m, still: globalThis.lap.drives(), done: globalThis.lap.done }));
    assert(deviation < DEVIATION_M, `${deviation.toFixed(2)} m from the course`);
    way_m += way;
    deviation_max_m = Math.max(deviation_max_m, deviation);
    console.log(`  ${way.toFixed(0)} m, at most ${deviation.toFixed(2)} m from the course`);
    if (!still && !done) await page.evaluate(() => globalThis.lap.stop());
    if (done) return console.log(JSON.stringify({ lap_s: (performance.now() - started) / 1_000, attempts: attempt, way_m, deviation_max_m, ...(await figures(page)) }));
  }
}

/** Makes the vehicle move, with a new grant if the drive has ended: after a lap, or because pictures or commands were late. */
async function driveOn(page, speed) {
  if (!(await page.evaluate(() => globalThis.lap.drives() && !globalThis.lap.stopped))) {
    await page.evaluate(() => globalThis.lap.stop());
    await take(page);
    await page.evaluate(follow, SPEED_MPS);
  }
  await until(async () => (await speed()) > 1, "the vehicle does not move");
}

/** Returns the commands, frames and latencies since the page was opened. */
async function figures(page) {
  const { commands, cameras } = await page.evaluate(() => ({ commands: window.viaductDesk.commands().sent, cameras: window.viaductDesk.cameras() }));
  const ofCamera = ({ camera, received, shown, skipped, late, missed, marks_read, marks_failed, glass_all_us }) => {
    const sorted = glass_all_us.toSorted((a, b) => a - b);
    const quantile_ms = (share) => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) / 1_000;
    return { camera, received, shown, skipped, late, missed, marks_read, marks_failed, glass_ms: { n: sorted.length, p50: quantile_ms(0.5), p99: quantile_ms(0.99), max: quantile_ms(1) } };
  };
  return { commands, cameras: cameras.map(ofCamera) };
}

async function pictureIs(page, index, wanted) {
  const accepted = wanted === "live" ? ["live", "late"] : [wanted];
  await page.waitForFunction(([at, states]) => states.includes(document.querySelector(`[data-testid=view-${at}]`)?.dataset.picture), [index, accepted], { timeout: APPEAR_MS });
}

async function metric(port, name) {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const line = (await response.text()).split("\n").find((line) => line.startsWith(`viaduct_component_${name}{`));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

async function until(holds, message, limit_ms = APPEAR_MS) {
  const end = Date.now() + limit_ms;
  while (!(await holds())) {
    assert(Date.now() < end, message);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function listening(port) {
  await until(() => fetch(`http://127.0.0.1:${port}/`).then(() => true, () => false), "the desk does not listen");
}

/** Returns free ports: one for the page, two in a row for UDP, three in a row for the nodes. */
async function ports() {
  const base = await new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
  const room = Math.min(base, 65_520);
  return { page: room, udp: room + 1, node: room + 3 };
}

async function shot(page, name) {
  if (!options.shots) return;
  await page.waitForTimeout(700);
  await page.screenshot({ path: `${options.shots}/${name}.png` });
}
