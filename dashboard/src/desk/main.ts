// Connects the desk with views, instruments and controls. Messages update the state when they arrive; pictures are drawn once per
// frame of the screen, commands are sent by a timer, texts change ten times a second.

import { byId, el, setHidden, setText } from "../dom";
import { RELEASED_CONTROLS, type Controls } from "./input/controls";
import { Driver, type DriverFacts } from "./input/driver";
import { Emergency, type EmergencyStatus } from "./input/emergency";
import { Gamepads } from "./input/gamepads";
import { Keyboard } from "./input/keyboard";
import type { Pad, PadControls } from "./input/mapping";
import { startTicker, TickMeter } from "./input/ticker";
import { listenToKeys } from "./keys";
import { REPORT_PERIOD_MS, TEXT_PERIOD_MS, TICK_MS, TREND_PERIOD_MS } from "./limits";
import { Connection, nowPage_us } from "./net/connection";
import { isSilent, type Session } from "./net/session";
import { Cluster } from "./panels/cluster";
import { ControlPanel } from "./panels/control";
import { EventList } from "./panels/events";
import { LinkPanel } from "./panels/link";
import { Login } from "./panels/login";
import { MapPanel } from "./panels/map";
import { MappingDialog } from "./panels/mapping";
import { Views } from "./panels/views";
import type { Command, DeskError, DeskState } from "./protocol/messages";
import { PATH } from "./protocol/messages";
import { age, alarmText, blockedText } from "./texts";
import { ThemeSwitch } from "./theme";
import "./style.css";

const EMERGENCY_TEXTS: Readonly<Record<EmergencyStatus, string>> = {
  ready: "",
  sent: "sent, not confirmed yet",
  confirmed: "confirmed: the vehicle stops",
  undelivered: "not delivered: no connection",
};

// First: the plot takes its colours.
const theme = new ThemeSwitch(byId("theme"), restyle);
const connection = new Connection(deskUrl(), takeTokenOfAddress(), {
  onSession: takeSession,
  onState: takeState,
  onFrame: (frame) => views.take(frame),
  onMap: (lines) => map.setLines(lines),
  onEvent: (event) => events.add(event),
  onError: takeError,
});
const views = new Views(connection.clock);
const cluster = new Cluster();
const link = new LinkPanel();
const map = new MapPanel();
const events = new EventList();
const control = new ControlPanel((message) => connection.send(message));
const login = new Login(() => connection);
const keyboard = new Keyboard();
const gamepads = new Gamepads();
const mapping = new MappingDialog(gamepads);
const driver = new Driver();
const emergency = new Emergency();
const meter = new TickMeter(performance.now());

/** Newest state of the desk; `undefined` while the desk is silent. */
let state: DeskState | undefined;
let controls: Controls = RELEASED_CONTROLS;
let input: Command["input"] = "none";
let device = "";
let padEmergency = false;
let commandsSent = 0;

start();

function start(): void {
  connection.start();
  requestAnimationFrame(frame);
  startTicker(TICK_MS, tick);
  setInterval(write, TEXT_PERIOD_MS);
  setInterval(() => link.addPoint(performance.now() / 1_000, state, views.glass_ms), TREND_PERIOD_MS);
  setInterval(report, REPORT_PERIOD_MS);
  listenToKeys(keyboard, { emergency: stopNow, shift, toggleLayout, chooseView: (place) => views.choose(place), drives: () => state?.driving.holder?.you === true });
  byId("emergency").addEventListener("click", stopNow);
  byId("layout").addEventListener("click", toggleLayout);
  // Space and the arrows are driving keys: a button must not keep the focus after a click.
  document.addEventListener("click", (event) => (event.target as Element).closest<HTMLElement>("main button")?.blur());
}

function frame(): void {
  requestAnimationFrame(frame);
  views.draw(deskLost(), state?.clock.offset_us ?? undefined);
}

/** Reads the controls and sends a command. */
function tick(): void {
  const now_ms = performance.now();
  const elapsed_s = Math.min(0.1, meter.tick(now_ms) / 1_000);
  connection.watch(now_ms);
  if (state && deskLost()) forgetState();
  const pad = gamepads.current();
  mapping.step(pad);
  readControls(pad, elapsed_s);
  const command = driver.step(controls, driverFacts(), input, nowPage_us(), deskNow_us());
  if (command && connection.sendCommand(command)) commandsSent += 1;
  const driving = state?.driving;
  if (emergency.step(driving?.state, driving?.reason ?? null, connection.session.phase === "open", now_ms)) connection.send({ type: "emergency_stop" });
}

function readControls(pad: Pad | undefined, elapsed_s: number): void {
  const fromPad = mapping.open ? undefined : gamepads.read(pad);
  const fromKeys = keyboard.step(elapsed_s);
  // The device whose dead-man control is held keeps the vehicle.
  const usesPad = fromPad !== undefined && !fromKeys.deadMan && (fromPad.deadMan || !keyboard.active);
  controls = usesPad ? fromPad : fromKeys;
  input = usesPad ? (gamepads.isWheel ? "wheel" : "gamepad") : "keyboard";
  device = deviceText(pad, fromPad, usesPad);
  if (fromPad?.emergency === true && !padEmergency) stopNow();
  padEmergency = fromPad?.emergency ?? false;
}

function deviceText(pad: Pad | undefined, fromPad: PadControls | undefined, usesPad: boolean): string {
  if (usesPad && pad) return pad.id.replace(/\s*\((STANDARD GAMEPAD|Vendor).*$/i, "");
  if (pad && !fromPad) return "Keyboard; the connected device has no mapping: Controls";
  return "Keyboard";
}

function driverFacts(): DriverFacts {
  return {
    granted: state?.driving.holder?.you === true,
    attentive: document.visibilityState === "visible" && document.hasFocus() && document.querySelector("dialog[open]") === null,
    speed_mps: state?.vehicle.speed_mps ?? null,
    gear: state?.vehicle.gear ?? null,
  };
}

function stopNow(): void {
  if (connection.session.welcome?.may.includes("emergency_stop") !== true) return;
  driver.stop();
  emergency.press(performance.now());
  writeEmergency();
}

function shift(by: number): void {
  driver.shift(by, driverFacts());
}

function toggleLayout(): void {
  views.layout = views.layout === "focus" ? "grid" : "focus";
}

function takeSession(session: Session): void {
  login.show(session);
  control.welcome = session.welcome;
  document.body.dataset["role"] = session.welcome?.role ?? "none";
  if (session.phase !== "open") forgetState();
  if (session.welcome === undefined) return;
  views.set(session.welcome);
  cluster.steeringMax_rad = session.welcome.vehicle.steering_max_rad;
  link.latencyLimit_ms = session.welcome.timing.latency_limit_ms;
  setText(byId("vehicle"), session.welcome.vehicle.name);
}

function takeState(next: DeskState): void {
  state = next;
  map.take(next.position);
}

function takeError({ code, text, reply_to }: DeskError): void {
  // The login dialog shows its own errors.
  if (reply_to !== "login") events.add({ time_us: deskNow_us() ?? 0, level: "warning", code, text });
}

/** Without a connection nothing that was shown is current. */
function forgetState(): void {
  state = undefined;
  map.take(null);
}

function deskLost(): boolean {
  return isSilent(connection.session, performance.now());
}

function write(): void {
  views.write();
  cluster.showVehicle(state?.vehicle);
  const facts = driverFacts();
  const { blocked, gear } = driver;
  cluster.showInput({ controls, drives: blocked === undefined, hint: blockedText(blocked, gear), device: `${device}${facts.granted ? ` · ${meter.rate_hz.toFixed(0)} commands/s` : ""}`, gear, granted: facts.granted });
  link.show(state, views.glass_ms);
  control.show(state);
  map.draw();
  writeClock();
  writeConnection();
  writeEmergency();
  writeAlarm();
}

function writeClock(): void {
  const { offset_us, uncertainty_us } = state?.clock ?? { offset_us: null, uncertainty_us: null };
  const sign = (offset_us ?? 0) < 0 ? "−" : "+";
  setText(byId("clock"), offset_us === null ? "–" : `${sign}${(Math.abs(offset_us) / 1_000).toFixed(1)} ± ${((uncertainty_us ?? 0) / 1_000).toFixed(1)} ms`);
}

function writeConnection(): void {
  const { phase, hello } = connection.session;
  const lost = deskLost();
  const texts = { connecting: "connecting", login: "log in", authenticating: "logging in", open: lost ? "desk silent" : "desk", refused: "refused" };
  byId("connection").dataset["phase"] = phase === "open" && !lost ? "live" : "reconnecting";
  setText(byId("connection-text"), texts[phase]);
  const round_trip_us = connection.clock.round_trip_us;
  setText(byId("connection-age"), phase === "open" && !lost && round_trip_us !== undefined ? age(round_trip_us / 1_000) : "");
  byId("connection").title = `${hello?.desk ?? "desk"}: round trip between this page and the desk`;
}

function writeEmergency(): void {
  const button = byId("emergency");
  setHidden(button, connection.session.welcome?.may.includes("emergency_stop") !== true);
  button.dataset["status"] = emergency.status;
  if (emergency.status === "ready") {
    if (!byId("emergency-text").querySelector("kbd")) byId("emergency-text").replaceChildren(el("kbd", {}, "Backspace"));
  } else setText(byId("emergency-text"), EMERGENCY_TEXTS[emergency.status]);
}

function writeAlarm(): void {
  const text = alarmText(connection.session, deskLost(), state);
  setText(byId("alarm"), text);
  setHidden(byId("alarm"), text === "");
}

function report(): void {
  if (connection.session.phase !== "open") return;
  const cameras = views.cameras.map((camera) => camera.report(views.isFrozen(camera.index)));
  connection.send({ type: "report", command_hz: Math.round(meter.rate_hz), command_gap_max_ms: Math.round(meter.gapMax_ms), malformed: connection.counts.malformed, cameras });
}

function restyle(): void {
  link.restyle();
  map.draw();
}

function deskNow_us(): number | undefined {
  return connection.clock.at(nowPage_us());
}

function deskUrl(): string {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${PATH}`;
}

/** Returns the token of an address like `http://desk/#token=...`, and removes it from the address. */
function takeTokenOfAddress(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token ?? undefined;
}

/** Read access for tests and the console. */
const access = {
  session: () => connection.session,
  state: () => state,
  counts: () => connection.counts,
  cameras: () =>
    views.cameras.map((camera) => ({ ...camera.counts(views.isFrozen(camera.index)), missed: camera.missed, picture: views.picture(camera.index), glass_all_us: [...camera.glass.samples] })),
  commands: () => ({ sent: commandsSent, rate_hz: meter.rate_hz, gapMax_ms: meter.gapMax_ms, blocked: driver.blocked, controls }),
  clock: () => ({ desk_us: deskNow_us(), uncertainty_us: connection.clock.uncertainty_us }),
  map: () => ({ lines: map.track.local, vehicle: map.track.vehicle, points: map.track.points.length }),
  trend: () => link.points,
  theme: () => theme.theme,
};

declare global {
  interface Window {
    viaductDesk: typeof access;
  }
}
window.viaductDesk = access;
