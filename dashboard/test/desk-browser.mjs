// Opens the driver's desk in Chromium, with the development server, and checks what a driver relies on: pictures and their marks,
// control, gamepad and keyboard, lost links, emergency stop, accessibility.
//
//   node test/desk-browser.mjs [--shots FOLDER] [--page FILE] [--patience 4]
//
// Without Chromium it is skipped.

import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { APPEAR_MS, assert, checkAccessibility, launch, open, PHONE, step, text } from "./harness.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    shots: { type: "string" },
    page: { type: "string", default: `${root}dist-desk/desk.html` },
    /** Factor of the time limits, for a busy machine. */
    patience: { type: "string", default: "4" },
  },
});
const LAPTOP = { width: 1366, height: 768 };
const DESKTOP = { width: 1600, height: 900 };

const browser = await launch(["--disable-gpu"]);
if (options.shots) mkdirSync(options.shots, { recursive: true });
if (!existsSync(options.page)) throw new Error(`there is no ${options.page}: run \`npm run build\` first`);
const { module } = await runnerImport(`${root}dev/desk-server.ts`);
const { desk, server, url } = await module.startDevDesk({ page: options.page, patience: Number(options.patience) });
let failed = false;
try {
  await checkDriver();
  await checkObserver();
} catch (error) {
  failed = true;
  console.error(`FAILED: ${error.message}`);
} finally {
  await browser.close();
  desk.stop();
  server.closeAllConnections();
  server.close();
}
process.exit(failed ? 1 : 0);

async function checkDriver() {
  const { page, complaints } = await open(browser, url, LAPTOP, stubGamepads);
  await step("an unknown token is rejected", async () => {
    await page.waitForSelector("#token");
    await checkAccessibility(page);
    await logIn(page, "wrong");
    await text(page, "login-error", (shown) => /not known/.test(shown));
  });
  await step("a driver logs in", async () => {
    await logIn(page, "driver");
    await page.waitForSelector("[data-testid=login]", { state: "hidden", timeout: APPEAR_MS });
    await text(page, "user", (shown) => shown === "Anna · driver");
  });
  await checkPictures(page);
  await checkDriving(page);
  await checkFrozen(page);
  await checkLostLink(page);
  await checkTakeover(page);
  await checkThemes(page);
  await checkEmergency(page);
  await checkSilentDesk(page);
  await step("no errors in the console, no request to another server", async () => assert(complaints.length === 0, complaints.join("\n")));
  await page.close();
}

async function checkPictures(page) {
  await step("four cameras are live, and their marks are read", () =>
    page.waitForFunction(() => window.viaductDesk.cameras().length === 4 && window.viaductDesk.cameras().every(({ picture, marks_read }) => picture.picture !== "frozen" && marks_read > 8), null, { timeout: APPEAR_MS }),
  );
  await step("every mark was read, and the glass-to-glass latency is at least that of the link", async () => {
    for (const { camera, marks_failed, glass_all_us } of await cameras(page)) {
      assert(marks_failed === 0, `camera ${camera}: ${marks_failed} marks failed`);
      // The first samples depend on the first estimate of the desk's clock, which a busy machine makes worse.
      const sorted = [...glass_all_us].sort((a, b) => a - b);
      const median_us = sorted[Math.floor(sorted.length / 2)];
      assert(median_us > 19_000, `camera ${camera}: ${median_us} us`);
    }
  });
  await step("age, number and misses are shown on each view", async () => {
    for (const index of [0, 1, 2, 3]) await text(page, `view-${index}`, (shown) => /\d+ ms/.test(shown) && /#\d+/.test(shown) && /\d+ missed/.test(shown));
  });
  await step("the map has the vehicle and the plot has points", () => page.waitForFunction(() => window.viaductDesk.map().points > 0 && window.viaductDesk.trend() > 4, null, { timeout: APPEAR_MS }));
}

async function checkDriving(page) {
  await step("control is granted, and no command has effect before the dead-man control is held", async () => {
    await page.click("[data-testid=take]");
    await drivingIs(page, "ready");
    await text(page, "hint", (shown) => /dead-man/.test(shown));
    await page.keyboard.down("KeyW");
    await page.waitForTimeout(500);
    assert(desk.vehicle.speed_mps === 0 && desk.lastCommand.accelerator === 0, "the vehicle moves");
    await page.keyboard.up("KeyW");
    await text(page, "hint", (shown) => /^Hold/.test(shown));
  });
  await step("keys drive the vehicle", async () => {
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("KeyE");
    await until(() => desk.lastCommand.gear === "D", "the gear is not selected");
    await page.keyboard.down("Space");
    await page.keyboard.down("ArrowUp");
    await drivingIs(page, "driving");
    await until(() => desk.vehicle.speed_mps > 1, "the vehicle does not move");
    await page.keyboard.down("ArrowLeft");
    await until(() => desk.lastCommand.steering > 0.3, "no steering");
    await page.keyboard.up("ArrowLeft");
  });
  await step("at least 50 commands arrive per second", async () => {
    const [before, started] = [desk.received.command, performance.now()];
    await page.waitForTimeout(1_500);
    const rate_hz = ((desk.received.command - before) * 1_000) / (performance.now() - started);
    console.log(`    ${rate_hz.toFixed(0)} commands/s`);
    assert(rate_hz > 50, `${rate_hz.toFixed(0)} per second`);
  });
  await step("a release of the dead-man key while the vehicle moves ends control after `stop_ms`", async () => {
    // Fast enough to move still when the time is over.
    await until(() => desk.vehicle.speed_mps > 6, "the vehicle is too slow");
    const released = performance.now();
    await page.keyboard.up("Space");
    await drivingIs(page, "ramp");
    assert(desk.driving.holder === "Anna", "control ended at once");
    await until(() => desk.driving.state === "stopped", "control has not ended");
    const { stop_ms } = await page.evaluate(() => window.viaductDesk.session().welcome.timing);
    assert(performance.now() - released > stop_ms - 50, "control ended before the time was over");
    assert(desk.vehicle.speed_mps > 0 && desk.driving.reason === "dead_man", `${desk.driving.reason} at ${desk.vehicle.speed_mps} m/s`);
    await drivingIs(page, "stopped");
    await text(page, "holder", (shown) => shown === "nobody");
    await text(page, "driving", (shown) => /dead-man control released/.test(shown));
  });
  await step("after that, the dead-man key has no effect without a new grant", async () => {
    await page.keyboard.down("Space");
    await until(() => desk.vehicle.speed_mps === 0, "the vehicle still moves");
    assert(desk.driving.state === "stopped", desk.driving.state);
    await page.keyboard.up("ArrowUp");
  });
  await step("nor with one, until the key was released: a repetition of the key is no press", async () => {
    await page.click("[data-testid=take]");
    await drivingIs(page, "ready");
    // `down` of a key that is held is a repetition.
    for (let repetition = 0; repetition < 3; repetition += 1) {
      await page.waitForTimeout(150);
      await page.keyboard.down("Space");
    }
    await page.waitForTimeout(150);
    assert(!desk.lastCommand.dead_man && desk.driving.state === "ready", "the held key has an effect");
    await page.keyboard.up("Space");
    await page.waitForTimeout(100);
    await page.keyboard.down("Space");
    await drivingIs(page, "driving");
  });
  await step("a release of the dead-man key at standstill keeps control", async () => {
    await page.keyboard.up("Space");
    await drivingIs(page, "ready");
    const { stop_ms } = await page.evaluate(() => window.viaductDesk.session().welcome.timing);
    await page.waitForTimeout(stop_ms + 200);
    assert(desk.driving.state === "ready" && desk.driving.holder === "Anna", desk.driving.state);
    await text(page, "hint", (shown) => /^Hold/.test(shown));
  });
  await step("a gamepad drives the vehicle", async () => {
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("KeyE");
    await setPad(page, { axes: [0, 0, 0, 0], buttons: { 5: 1 } });
    await drivingIs(page, "driving");
    await setPad(page, { axes: [-0.6, 0, 0, 0], buttons: { 5: 1, 7: 0.9 } });
    await until(() => desk.lastCommand.steering > 0.2 && desk.lastCommand.accelerator > 0.8 && desk.lastCommand.input === "gamepad", "no command of the gamepad");
    await until(() => desk.vehicle.speed_mps > 4, "the vehicle does not move");
    await setPad(page, { axes: [-0.05, 0, 0, 0], buttons: { 5: 1, 7: 0.5 } });
  });
  await shot(page, "drive-1366");
  await step("axe-core finds nothing while driving", () => checkAccessibility(page));
}

/** Makes the vehicle move. Control may have ended: axe-core blocks the page, on a busy machine for longer than `stop_ms`. */
async function driveOn(page) {
  if (desk.driving.holder !== "Anna") {
    await setPad(page, { axes: [0, 0, 0, 0], buttons: {} });
    await until(() => desk.vehicle.speed_mps === 0, "the vehicle still moves");
    await page.click("[data-testid=take]");
    await drivingIs(page, "ready");
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("KeyE");
    await setPad(page, { axes: [0, 0, 0, 0], buttons: { 5: 1 } });
    await drivingIs(page, "driving");
    await setPad(page, { axes: [-0.05, 0, 0, 0], buttons: { 5: 1, 7: 0.5 } });
  }
  await until(() => desk.vehicle.speed_mps > 1 && desk.driving.state === "driving", "the vehicle does not move");
}

async function checkFrozen(page) {
  await step("a camera without frames is marked as frozen, the others are not", async () => {
    desk.frozen.add(1);
    await picture(page, 1, "frozen");
    await text(page, "veil-1", (shown) => /FROZEN/.test(shown) && /no new frames/.test(shown));
    const [front] = await cameras(page);
    assert(front.picture.picture !== "frozen" || front.picture.reason !== "no_frames", "the front view is frozen, too");
    assert(!(await page.getByTestId("alarm").isVisible()), "there is an alarm, although the main camera is live");
  });
  await shot(page, "frozen");
  await step("it is live again with the next frame", async () => {
    desk.frozen.clear();
    await picture(page, 1, "live");
  });
  await step("a frozen main camera raises an alarm and stops the vehicle, and control is kept", async () => {
    await driveOn(page);
    desk.frozen.add(0);
    await text(page, "alarm", (shown) => /main camera is frozen: the speed limit is 0/.test(shown));
    await text(page, "limit", (shown) => /^0\b/.test(shown.trim()) && /frozen camera/.test(shown));
    await picture(page, 0, "frozen");
    await until(() => desk.vehicle.speed_mps === 0, "the vehicle still moves");
    assert(desk.driving.state === "driving" && desk.driving.holder === "Anna", desk.driving.state);
  });
  await step("with new pictures of the main camera the vehicle drives on", async () => {
    desk.frozen.clear();
    await picture(page, 0, "live");
    await page.waitForSelector("[data-testid=alarm]", { state: "hidden", timeout: APPEAR_MS });
    await until(() => desk.vehicle.speed_mps > 1, "the vehicle does not move");
  });
  await step("a camera that repeats one picture is marked as frozen", async () => {
    desk.repeating.add(3);
    await text(page, "veil-3", (shown) => /the same picture/.test(shown));
    desk.repeating.clear();
    await picture(page, 3, "live");
  });
  await step("pictures that cannot be decoded are counted", async () => {
    desk.damaged.set(2, 3);
    await page.waitForFunction(() => window.viaductDesk.cameras()[2].decode_errors > 0, null, { timeout: APPEAR_MS });
    await text(page, "view-2", (shown) => /\d not decoded/.test(shown));
  });
  await step("the report has counts and latencies", async () => {
    await until(() => desk.lastReport?.cameras[2].decode_errors > 0 && desk.lastReport.cameras[0].glass_us.length > 0, "no report");
    for (const { received, shown, skipped, late, older, decode_errors } of await cameras(page)) {
      const rest = received - shown - skipped - late - older - decode_errors;
      assert(rest >= 0 && rest <= 3, `${received} received, ${shown} shown, ${skipped} skipped, ${late} late, ${older} older, ${decode_errors} not decoded`);
    }
  });
  await step("messages that are not valid are counted, not fatal", async () => {
    desk.sendRaw("{");
    desk.sendRaw('{"type":"state"}');
    desk.sendRaw('{"type":"later_version"}');
    await page.waitForFunction(() => window.viaductDesk.counts().malformed === 2, null, { timeout: APPEAR_MS });
  });
}

async function checkLostLink(page) {
  await page.setViewportSize(DESKTOP);
  await step("keys 1 to 4 and L change the layout", async () => {
    await page.keyboard.press("Digit2");
    await page.waitForSelector("[data-testid=view-1].main");
    await page.keyboard.press("Digit1");
    await page.keyboard.press("KeyL");
    await page.waitForSelector('#views[data-layout="grid"]');
    await page.keyboard.press("KeyL");
  });
  await shot(page, "drive-1600");
  await step("a lost link stops the vehicle and marks all views", async () => {
    await driveOn(page);
    desk.link.connected = false;
    await text(page, "alarm", (shown) => /link to the vehicle is lost/.test(shown));
    await drivingIs(page, "stopped");
    for (const index of [0, 1, 2, 3]) await picture(page, index, "frozen");
    await text(page, "holder", (shown) => shown === "nobody");
  });
  await shot(page, "link-lost");
  await step("after the link has returned, held controls have no effect without a new grant", async () => {
    desk.link.connected = true;
    await picture(page, 0, "live");
    const speed = desk.vehicle.speed_mps;
    await page.waitForTimeout(500);
    assert(desk.driving.state === "stopped" && desk.vehicle.speed_mps <= speed, "the vehicle drives");
  });
  await step("nor does a new grant, before the controls were released", async () => {
    await until(() => desk.vehicle.speed_mps === 0, "the vehicle still moves");
    await page.click("[data-testid=take]");
    await drivingIs(page, "ready");
    await text(page, "hint", (shown) => /^Release/.test(shown));
    await page.waitForTimeout(300);
    assert(!desk.lastCommand.dead_man && desk.vehicle.speed_mps === 0, "the vehicle drives");
    await setPad(page, { axes: [0, 0, 0, 0], buttons: {} });
    await setPad(page, { axes: [0, 0, 0, 0], buttons: { 5: 1 } });
    await drivingIs(page, "driving");
  });
  await step("a gamepad that is unplugged releases the dead-man control", async () => {
    await setPad(page, undefined);
    await drivingIs(page, "ready");
    await page.click("[data-testid=release]");
    await drivingIs(page, "idle");
  });
}

async function checkTakeover(page) {
  desk.driveByOther("Jonas");
  await step("a takeover needs a reason and a confirmation", async () => {
    await text(page, "holder", (shown) => shown === "Jonas");
    await until(() => desk.vehicle.speed_mps > 1, "the other driver does not drive");
    await page.click("[data-testid=force]");
    await text(page, "takeover-text", (shown) => /Jonas is in control \(driving\), speed \d+ km\/h/.test(shown));
    await page.click("[data-testid=takeover-confirm]");
    assert(desk.received.take_over === undefined, "sent without a reason");
  });
  await page.setViewportSize(LAPTOP);
  await shot(page, "takeover");
  await step("axe-core finds nothing in the dialog", () => checkAccessibility(page));
  await step("a confirmed takeover gets control", async () => {
    // axe-core blocks the page, on a busy machine for longer than the desk may be silent. Then the page closes the dialog.
    await page.waitForTimeout(500);
    if (!(await page.getByTestId("takeover-reason").isVisible())) await page.click("[data-testid=force]");
    await page.fill("[data-testid=takeover-reason]", "driver does not answer");
    await page.click("[data-testid=takeover-confirm]");
    await text(page, "holder", (shown) => shown === "Anna (you)");
    await text(page, "events", (shown) => /took over: driver does not answer/.test(shown));
  });
  await step("another driver's request can be refused or granted", async () => {
    desk.requestByOther("Jonas");
    await text(page, "request", (shown) => /Jonas requests control/.test(shown));
    await shot(page, "request");
    await page.click("[data-testid=refuse]");
    await page.waitForSelector("[data-testid=request]", { state: "hidden" });
    desk.requestByOther("Jonas");
    await page.click("[data-testid=grant]");
    await text(page, "holder", (shown) => shown === "Jonas");
  });
  await step("a steering wheel is set up by moving it", () => setUpWheel(page));
}

async function setUpWheel(page) {
  const rest = { id: "Test wheel (Vendor: 046d Product: c24f)", mapping: "", axes: [0, 1, 1, 1], buttons: {} };
  await setPad(page, rest);
  await page.click("[data-testid=devices]");
  await page.click("[data-testid=mapping-start]");
  await text(page, "mapping-step", (shown) => /every pedal once/.test(shown));
  await page.click("[data-testid=mapping-start]");
  for (const moved of [{ axes: [-1, 1, 1, 1] }, { axes: [0, 1, -1, 1] }, { axes: [0, 1, 1, -1] }, { buttons: { 4: 1 } }, { buttons: { 9: 1 } }]) {
    await setPad(page, { ...rest, ...moved });
    await page.waitForTimeout(120);
    await setPad(page, rest);
    await page.waitForTimeout(120);
  }
  await text(page, "mapping-list", (shown) => /steering\s*axis 0\s*accelerator\s*axis 2\s*brake\s*axis 3\s*dead-man\s*button 4\s*emergency stop\s*button 9/.test(shown));
  await shot(page, "controls");
  await checkAccessibility(page);
  await page.click("[data-testid=mapping-close]");
  await page.waitForTimeout(200);
  await setPad(page, { ...rest, axes: [-0.5, 1, 0, 1] });
  await page.waitForFunction(() => Math.abs(window.viaductDesk.commands().controls.steering - 0.5) < 0.01 && Math.abs(window.viaductDesk.commands().controls.accelerator - 0.5) < 0.01, null, { timeout: APPEAR_MS });
  await setPad(page, undefined);
}

async function checkThemes(page) {
  for (const theme of ["light", "dark"]) {
    await step(`axe-core finds nothing in the ${theme} theme`, async () => {
      if ((await page.evaluate(() => window.viaductDesk.theme())) !== theme) await page.click("[data-testid=theme]");
      await checkAccessibility(page);
    });
    await shot(page, theme);
  }
}

async function checkEmergency(page) {
  await step("an emergency stop works without the grant and is confirmed", async () => {
    await page.keyboard.press("Backspace");
    await until(() => desk.driving.reason === "emergency_stop", "no emergency stop");
    await page.waitForSelector('[data-testid=emergency][data-status="confirmed"]', { timeout: APPEAR_MS });
    await drivingIs(page, "stopped");
  });
  await shot(page, "emergency");
}

async function checkSilentDesk(page) {
  await step("a desk that sends no state counts as lost, although it answers and sends pictures", async () => {
    desk.stateless = true;
    await text(page, "alarm", (shown) => /No connection to the desk/.test(shown));
    await text(page, "connection", (shown) => /desk silent/.test(shown));
    for (const index of [0, 1, 2, 3]) await picture(page, index, "frozen");
    // The alarm stays, and the stop that was confirmed before is not reported as undelivered.
    await page.waitForTimeout(1_500);
    assert(await page.getByTestId("alarm").isVisible(), "the alarm has disappeared");
    assert((await page.getByTestId("emergency").getAttribute("data-status")) === "confirmed", "the emergency stop is no longer confirmed");
    desk.stateless = false;
    await page.waitForSelector("[data-testid=alarm]", { state: "hidden", timeout: APPEAR_MS });
    await picture(page, 0, "live");
  });
  await step("a silent desk marks everything as not current", async () => {
    desk.silent = true;
    await text(page, "alarm", (shown) => /No connection to the desk/.test(shown));
    for (const index of [0, 1, 2, 3]) await picture(page, index, "frozen");
    await text(page, "speed", (shown) => /–/.test(shown));
  });
  await shot(page, "desk-silent");
  await step("the page connects and logs in again by itself", async () => {
    desk.silent = false;
    desk.closeAll();
    await page.waitForFunction(() => window.viaductDesk.session().phase === "open", null, { timeout: APPEAR_MS });
    await picture(page, 0, "live");
    await page.waitForSelector("[data-testid=alarm]", { state: "hidden", timeout: APPEAR_MS });
  });
}

/** The narrow page of an observer: nothing wider than the screen, and nothing that controls the vehicle but the emergency stop. */
async function checkObserver() {
  const { page, complaints } = await open(browser, `${url}#token=observer`, PHONE);
  await step("390 px: the token of the address logs in, and disappears from it", async () => {
    await text(page, "user", (shown) => shown === "Control room · observer");
    assert(!page.url().includes("token"), page.url());
  });
  await step("390 px: an observer sees pictures and cannot drive", async () => {
    await picture(page, 0, "live");
    for (const id of ["take", "force", "release", "devices", "inputs"]) assert(!(await page.getByTestId(id).isVisible()), id);
  });
  await step("390 px: the page fits", async () => {
    const widest = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(widest <= PHONE.width, `the page is ${widest} px wide`);
  });
  await step("390 px: axe-core finds nothing", () => checkAccessibility(page));
  await step("390 px: an observer stops the vehicle in an emergency", async () => {
    desk.driveByOther("Jonas");
    await text(page, "holder", (shown) => shown === "Jonas");
    await page.click("[data-testid=emergency]");
    await until(() => desk.driving.reason === "emergency_stop" && desk.driving.holder === undefined, "no emergency stop");
    await page.waitForSelector('[data-testid=emergency][data-status="confirmed"]', { timeout: APPEAR_MS });
  });
  if (options.shots) await page.screenshot({ path: `${options.shots}/phone.png`, fullPage: true });
  await step("390 px: no errors in the console", async () => assert(complaints.length === 0, complaints.join("\n")));
  await page.close();
}

async function logIn(page, token) {
  await page.fill("[data-testid=token]", token);
  await page.click("[data-testid=login-submit]");
}

function cameras(page) {
  return page.evaluate(() => window.viaductDesk.cameras());
}

/** Waits for the state of a view. On a busy machine a live picture may be late. */
async function picture(page, index, wanted) {
  const accepted = wanted === "live" ? ["live", "late"] : [wanted];
  await page.waitForFunction(([at, states]) => states.includes(document.querySelector(`[data-testid=view-${at}]`)?.dataset.picture), [index, accepted], { timeout: APPEAR_MS });
}

function drivingIs(page, state) {
  return page.waitForSelector(`[data-testid=driving][data-state=${state}]`, { timeout: APPEAR_MS });
}

/** Runs in the page: a gamepad that the test sets. */
function stubGamepads() {
  globalThis.testPad = undefined;
  navigator.getGamepads = () => [null, globalThis.testPad ?? null];
}

async function setPad(page, pad) {
  await page.evaluate((wanted) => {
    if (!wanted) {
      globalThis.testPad = undefined;
      return;
    }
    const { id = "Test pad (STANDARD GAMEPAD Vendor: 045e Product: 028e)", mapping = "standard", axes = [0, 0, 0, 0], buttons = {} } = wanted;
    globalThis.testPad = { id, mapping, axes, index: 1, connected: true, buttons: Array.from({ length: 17 }, (_, at) => ({ value: buttons[at] ?? 0, pressed: (buttons[at] ?? 0) > 0.5 })) };
  }, pad);
  await page.waitForTimeout(60);
}

async function until(holds, message) {
  const end = Date.now() + APPEAR_MS;
  while (!holds()) {
    assert(Date.now() < end, message);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function shot(page, name) {
  if (!options.shots) return;
  await page.waitForTimeout(700);
  await page.screenshot({ path: `${options.shots}/${name}.png` });
}
