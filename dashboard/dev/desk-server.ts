// A development aid: a desk with a simulated vehicle and link, for the page's tests and for work on the page. It speaks the protocol
// of docs/reference/teleop-desk-websocket.md. Control and the stages of a stop follow the rules of crates/teleop/src/driving; the
// decelerations are simplified.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { readFileSync } from "node:fs";
import { type WebSocket, WebSocketServer } from "ws";
import { encodeFrame } from "../src/desk/protocol/frame";
import { type ClientMessage, type Command, type DeskState, type DrivingState, PATH, PROTOCOL_VERSION, SUBPROTOCOL } from "../src/desk/protocol/messages";
import { PLACES, Scenes } from "./scene";
import { courseLines, SimulatedVehicle } from "./vehicle";

export interface DevLink {
  connected: boolean;
  rtt_ms: number;
  jitter_ms: number;
  /** 0 to 1. */
  loss: number;
}

const TOKENS: Readonly<Record<string, { name: string; role: "driver" | "observer"; may: string[] }>> = {
  driver: { name: "Anna", role: "driver", may: ["drive", "take_over", "emergency_stop"] },
  second: { name: "Jonas", role: "driver", may: ["drive", "take_over", "emergency_stop"] },
  observer: { name: "Control room", role: "observer", may: ["emergency_stop"] },
};
const TIMING = { command_hz: 100, state_hz: 20, late_ms: 200, freeze_ms: 300, latency_limit_ms: 200, hold_ms: 100, ramp_ms: 150, stop_ms: 300 };
/** Time without any command after which a grant ends at standstill. */
const READY_SILENCE_MAX_MS = 5_000;
/** Time for the first command of a driver who has taken over a moving vehicle, if `stop_ms` is shorter. */
const FIRST_COMMAND_MAX_MS = 1_000;
const DEADLINE_MS = 250;
const STATE_MS = 50;
const PERIOD_MS = 100;
const ENCODE_MS = 12;
const STEERING_MAX_RAD = 0.55;
/** Camera whose pictures the driver needs: without them the speed limit is 0. */
const MAIN_CAMERA = 0;
const SPEED_MAX_MPS = 13.9;
/** Latency that allows 50 km/h: the limit is this way divided by the latency. */
const LATENCY_WAY_M = 2.78;
const UNSENT_OCTETS_MAX = 400_000;
const TAI_MINUS_UTC_US = 37_000_000;

/** The control of one driver. Times are those of `performance.now()`. */
interface Grant {
  /** `undefined` for a driver at another desk, who needs no supervision. */
  client: Client | undefined;
  name: string;
  since_ms: number;
  /** Last command. */
  commanded_ms: number | undefined;
  /** Last command with the dead-man control held. */
  driven_ms: number | undefined;
  /** First command with the dead-man control released, since it was held. */
  released_ms: number | undefined;
}

interface Client {
  id: number;
  socket: WebSocket;
  who: { name: string; role: string; may: string[] } | undefined;
}

export interface DevDeskOptions {
  /** Number of cameras, 1 to 4. */
  cameras?: number;
  /** Quality of the JPEGs, 1 to 100. */
  quality?: number;
  /** Factor of all time limits, for tests on a busy machine. */
  patience?: number;
}

export class DevDesk {
  link: DevLink = { connected: true, rtt_ms: 38, jitter_ms: 6, loss: 0.003 };
  readonly vehicle = new SimulatedVehicle();
  /** Cameras that send nothing. */
  readonly frozen = new Set<number>();
  /** Cameras that repeat one picture with new frame numbers. */
  readonly repeating = new Set<number>();
  /** Cameras whose next frames are no JPEG; the number counts down. */
  readonly damaged = new Map<number, number>();
  /** The desk sends nothing at all. */
  silent = false;
  /** The desk sends everything but `state`. */
  stateless = false;
  /** Messages received, by type. */
  readonly received: Record<string, number> = {};
  lastReport: Extract<ClientMessage, { type: "report" }> | undefined;
  lastCommand: Command | undefined;
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOL });
  readonly #scenes: Scenes;
  readonly #cameras: number;
  readonly #timing: typeof TIMING;
  readonly #deadline_ms: number;
  readonly #clients = new Set<Client>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #kept = new Map<number, Uint8Array<ArrayBuffer>>();
  #frame = 0;
  #missed: number[] = [0, 0, 0, 0];
  #state: DrivingState = "idle";
  #reason: string | null = "no_driver";
  #since_us = now_us();
  #holder: Grant | undefined;
  #request: { id: number; name: string; client: Client | undefined } | undefined;
  #refused = 0;
  #seq = 0;
  #ids = 0;

  constructor({ cameras = 4, quality = 75, patience = 1 }: DevDeskOptions = {}) {
    this.#cameras = cameras;
    const { late_ms, freeze_ms, hold_ms, ramp_ms, stop_ms } = TIMING;
    this.#timing = { ...TIMING, late_ms: late_ms * patience, freeze_ms: freeze_ms * patience, hold_ms: hold_ms * patience, ramp_ms: ramp_ms * patience, stop_ms: stop_ms * patience };
    this.#deadline_ms = DEADLINE_MS * patience;
    this.#scenes = new Scenes(quality);
    this.#timers.push(setInterval(() => this.#step(), STATE_MS).unref(), setInterval(() => this.#capture(), PERIOD_MS).unref());
  }

  stop(): void {
    this.#timers.forEach(clearInterval);
    for (const { socket } of this.#clients) socket.terminate();
  }

  /** Returns `true` if the request was for the desk. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    if (new URL(request.url ?? "/", "http://desk").pathname !== PATH) return false;
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => this.#accept(webSocket));
    return true;
  }

  /** Another driver, at another desk, gets control. */
  driveByOther(name: string, state: DrivingState = "driving"): void {
    this.#holder = grantOf(undefined, name);
    this.#enter(state, null);
  }

  /** Another driver requests control. */
  requestByOther(name: string): void {
    this.#request = { id: ++this.#ids, name, client: undefined };
  }

  closeAll(): void {
    for (const { socket } of this.#clients) socket.close(1001);
  }

  /** Sends any text to all clients. */
  sendRaw(text: string): void {
    for (const { socket } of this.#clients) socket.send(text);
  }

  get driving(): { state: DrivingState; reason: string | null; holder: string | undefined } {
    return { state: this.#state, reason: this.#reason, holder: this.#holder?.name };
  }

  #accept(socket: WebSocket): void {
    const client: Client = { id: ++this.#ids, socket, who: undefined };
    this.#clients.add(client);
    socket.on("close", () => this.#leave(client));
    socket.on("message", (data) => this.#receive(client, JSON.parse(String(data)) as ClientMessage));
    send(client, { type: "hello", version: PROTOCOL_VERSION, desk: "desk-1 (simulated)", login: "token", time_us: now_us() });
  }

  #leave(client: Client): void {
    this.#clients.delete(client);
    if (this.#request?.client === client) this.#request = undefined;
  }

  #receive(client: Client, message: ClientMessage): void {
    this.received[message.type] = (this.received[message.type] ?? 0) + 1;
    if (message.type === "login") return this.#login(client, message.token);
    if (client.who === undefined) return refuse(client, "login_required", "Log in first.", message.type);
    if (message.type === "ping") return void (this.silent || send(client, { type: "pong", seq: message.seq, page_us: message.page_us, time_us: now_us() }));
    if (message.type === "report") this.lastReport = message;
    else if (message.type === "command") this.#command(client, message);
    else this.#control(client, message);
  }

  #login(client: Client, token: string): void {
    const who = Object.hasOwn(TOKENS, token) ? TOKENS[token] : undefined;
    if (who === undefined) return refuse(client, "login_failed", "This token is not known to the desk.", "login");
    client.who = who;
    const cameras = PLACES.slice(0, this.#cameras).map((place, camera) => ({ camera, name: place, place, period_us: PERIOD_MS * 1_000 }));
    const vehicle = { name: "vehicle-1", steering_max_rad: STEERING_MAX_RAD, speed_max_mps: SPEED_MAX_MPS };
    send(client, { type: "welcome", session: `s-${client.id}`, ...who, vehicle, cameras, timing: this.#timing });
    send(client, { type: "map", lines: courseLines() });
    this.#event("info", "login", `${who.name} logged in as ${who.role}`);
  }

  #control(client: Client, message: Exclude<ClientMessage, { type: "login" | "ping" | "report" | "command" }>): void {
    const who = client.who;
    if (who === undefined) return;
    const right = RIGHTS[message.type];
    if (right !== undefined && !who.may.includes(right)) return refuse(client, "not_permitted", "You may not do this.", message.type);
    switch (message.type) {
      case "request_control":
        return this.#requestControl(client, who.name);
      case "release_control":
        return this.#release(client, who.name);
      case "take_over":
        return this.#takeOver(client, who.name, message.reason);
      case "answer_request":
        return this.#answer(client, message.id, message.grant);
      case "emergency_stop":
        return this.#emergencyStop(who.name);
    }
  }

  #requestControl(client: Client, name: string): void {
    if (this.#holder?.client === client) return;
    if (this.#holder === undefined) {
      if (!this.link.connected) return refuse(client, "link", "The link to the vehicle is down.", "request_control");
      if (!this.#stands) return refuse(client, "moving", "The vehicle still moves. Wait until it stands.", "request_control");
      return this.#grant(client, "requested");
    }
    if (this.#request && this.#request.client !== client) return refuse(client, "busy", "The request of another driver waits for an answer.", "request_control");
    this.#request = { id: ++this.#ids, name, client };
    this.#event("info", "request", `${name} requests control`);
  }

  #release(client: Client, name: string): void {
    if (this.#request?.client === client) this.#request = undefined;
    else if (this.#holder?.client !== client) refuse(client, "not_holder", "You do not have control.", "release_control");
    else this.#end(this.#stands ? "idle" : "stopped", "released", `${name} released control`);
  }

  #takeOver(client: Client, name: string, reason: string): void {
    if (this.#holder === undefined) return this.#requestControl(client, name);
    if (this.#holder.client === client) return;
    if (!this.link.connected) return refuse(client, "link", "The link to the vehicle is down.", "take_over");
    this.#event("warning", "take_over", `${name} took over: ${reason}`);
    this.#grant(client, "taken_over");
  }

  #answer(client: Client, id: number, grant: boolean): void {
    if (this.#holder?.client !== client) return refuse(client, "not_holder", "You do not have control.", "answer_request");
    const request = this.#request;
    if (request?.id !== id) return refuse(client, "no_request", "No request waits for an answer.", "answer_request");
    this.#request = undefined;
    if (!grant) return this.#event("info", "refused", `The request of ${request.name} was refused`);
    if (request.client) this.#grant(request.client, "handed over");
    else this.driveByOther(request.name, "ready");
  }

  /** Without the link the stop does not arrive at the vehicle, and nothing confirms it. */
  #emergencyStop(name: string): void {
    if (!this.link.connected || (this.#state === "stopped" && this.#reason === "emergency_stop")) return;
    this.#end("stopped", "emergency_stop", `Emergency stop by ${name}`);
  }

  #grant(client: Client, code: string): void {
    this.#holder = grantOf(client, client.who?.name ?? "");
    this.#request = undefined;
    this.lastCommand = undefined;
    if (this.#stands) this.#enter("ready", "dead_man");
    else this.#enter("hold", "taken_over");
    this.#event("info", code, `${this.#holder.name} is in control`);
  }

  #end(state: "idle" | "stopped", reason: string, text: string): void {
    this.#holder = undefined;
    this.#request = undefined;
    this.#enter(state, reason);
    this.#event(state === "idle" ? "info" : "alarm", reason, text);
  }

  #command(client: Client, command: Command): void {
    const grant = this.#holder;
    if (grant?.client !== client) {
      this.#refused += 1;
      return;
    }
    if (!this.link.connected) return;
    const now_ms = performance.now();
    this.lastCommand = command;
    grant.commanded_ms = now_ms;
    if (command.emergency) return this.#emergencyStop(grant.name);
    if (command.dead_man) {
      grant.driven_ms = now_ms;
      grant.released_ms = undefined;
      this.#enter("driving", null);
    } else grant.released_ms ??= now_ms;
    this.#supervise(now_ms);
  }

  get #stands(): boolean {
    return this.vehicle.speed_mps === 0;
  }

  #enter(state: DrivingState, reason: string | null): void {
    if (this.#state === state && this.#reason === reason) return;
    this.#state = state;
    this.#reason = reason;
    this.#since_us = now_us();
  }

  #step(): void {
    this.#supervise(performance.now());
    this.vehicle.step(STATE_MS / 1_000, this.#actuation(), this.#limit()[0]);
    if (this.#holder === undefined && this.#stands) this.vehicle.gear = "P";
    if (!this.silent && !this.stateless) for (const client of this.#clients) if (client.who) send(client, { type: "state", ...this.#stateFor(client) });
  }

  /** Returns the command that the vehicle obeys; `undefined`: it brakes. */
  #actuation(): Command | undefined {
    if (this.#state !== "driving" && this.#state !== "hold") return undefined;
    if (this.#holder?.client === undefined) return { ...IDLE_COMMAND, accelerator: this.vehicle.speed_mps < 7.5 ? 0.6 : 0.12, gear: "D" };
    const command = this.lastCommand ?? { ...IDLE_COMMAND, gear: this.vehicle.gear };
    return this.#state === "hold" ? { ...command, accelerator: 0 } : command;
  }

  /** Processes the time: the stages of a stop, as `Driving::supervise` in crates/teleop/src/driving/mod.rs. */
  #supervise(now_ms: number): void {
    const grant = this.#holder;
    if (grant?.client === undefined) return;
    if (this.#state === "ready") this.#superviseAtStandstill(grant, now_ms);
    else if (grant.driven_ms === undefined) this.#superviseTakeover(grant, now_ms);
    else this.#superviseDrive(grant, now_ms - grant.driven_ms, now_ms);
  }

  #superviseAtStandstill({ since_ms, commanded_ms = since_ms }: Grant, now_ms: number): void {
    if (!this.link.connected) this.#stop("link_lost");
    else if (now_ms - commanded_ms > READY_SILENCE_MAX_MS) this.#end("idle", "driver_lost", "Control ended: no commands from the driver");
  }

  #superviseDrive(grant: Grant, silence_ms: number, now_ms: number): void {
    const { hold_ms, ramp_ms, stop_ms } = this.#timing;
    const [reason, released] = [this.#cause(grant), grant.released_ms !== undefined];
    const released_ms = now_ms - (grant.released_ms ?? now_ms);
    if (released && this.#stands) this.#enter("ready", "dead_man");
    else if (silence_ms >= stop_ms || released_ms >= stop_ms) this.#stop(reason);
    else if (released || silence_ms >= ramp_ms) this.#enter("ramp", reason);
    else if (silence_ms >= hold_ms) this.#enter("hold", reason);
  }

  /** A new driver of a moving vehicle has not held the dead-man control yet. The vehicle brakes. */
  #superviseTakeover(grant: Grant, now_ms: number): void {
    const { ramp_ms, stop_ms } = this.#timing;
    const elapsed_ms = now_ms - grant.since_ms;
    const [silence_ms, most_ms] = grant.commanded_ms === undefined ? [elapsed_ms, Math.max(stop_ms, FIRST_COMMAND_MAX_MS)] : [now_ms - grant.commanded_ms, stop_ms];
    if (silence_ms >= most_ms) this.#stop(this.#cause(grant));
    else if (this.#stands) this.#enter("ready", "dead_man");
    else if (elapsed_ms >= ramp_ms) this.#enter("ramp", "taken_over");
  }

  /** Returns the reason why the vehicle is not driven. */
  #cause({ released_ms }: Grant): keyof typeof STOP_TEXTS {
    if (released_ms !== undefined) return "dead_man";
    return this.link.connected ? "driver_lost" : "link_lost";
  }

  #stop(reason: keyof typeof STOP_TEXTS): void {
    this.#end("stopped", reason, STOP_TEXTS[reason]);
  }

  #limit(): [number, DeskState["vehicle"]["limit_reason"]] {
    if (this.#holder === undefined) return [0, "not_driving"];
    if (this.frozen.has(MAIN_CAMERA)) return [0, "camera"];
    const latency_s = (this.link.rtt_ms + ENCODE_MS + 20) / 1_000;
    const byLatency_mps = LATENCY_WAY_M / latency_s;
    return byLatency_mps < SPEED_MAX_MPS ? [byLatency_mps, "latency"] : [SPEED_MAX_MPS, "vehicle"];
  }

  #stateFor(client: Client): DeskState {
    const [speed_limit_mps, limit_reason] = this.#limit();
    const up = this.link.connected;
    const you = this.#holder?.client === client;
    const jitter_ms = Math.random() * this.link.jitter_ms;
    return {
      seq: (this.#seq += 1),
      time_us: now_us(),
      vehicle: { age_ms: up ? this.link.rtt_ms / 2 : 4_000, speed_mps: this.vehicle.speed_mps, speed_limit_mps, limit_reason, steering_rad: this.vehicle.steering_rad, gear: this.vehicle.gear, hazard_lights: this.#state === "stopped" },
      position: up ? this.vehicle.position : null,
      driving: {
        state: this.#state,
        reason: this.#reason,
        since_us: this.#since_us,
        holder: this.#holder ? { name: this.#holder.name, you } : null,
        request: this.#request ? { id: this.#request.id, name: this.#request.name, you: this.#request.client === client } : null,
      },
      link: up
        ? { connected: true, rtt_ms: this.link.rtt_ms + jitter_ms, one_way_ms: (this.link.rtt_ms + jitter_ms) / 2, loss: this.link.loss * (0.7 + 0.6 * Math.random()), rate_mbps: this.#cameras * 1.72 + Math.random() * 0.2, missed: sum(this.#missed) }
        : { connected: false, rtt_ms: null, one_way_ms: null, loss: null, rate_mbps: 0, missed: sum(this.#missed) },
      command: { age_ms: you && up ? this.link.rtt_ms / 2 + Math.random() * 10 : null, seq: this.lastCommand?.seq ?? null, refused: this.#refused },
      clock: { offset_us: 0, uncertainty_us: Math.round(this.link.rtt_ms * 20) },
    };
  }

  #capture(): void {
    this.#frame += 1;
    for (let camera = 0; camera < this.#cameras; camera += 1) {
      const capture_us = now_us();
      if (!this.link.connected || this.silent || this.frozen.has(camera)) continue;
      // The frames of this simulation are lost a little less often than packets.
      if (Math.random() < this.link.loss / 4) this.#missed[camera] = (this.#missed[camera] ?? 0) + 1;
      else setTimeout(() => this.#deliver(camera, this.#frame, capture_us), ENCODE_MS + this.link.rtt_ms / 2 + Math.random() * this.link.jitter_ms);
    }
  }

  #deliver(camera: number, number: number, capture_us: number): void {
    if (!this.link.connected || this.silent) return;
    const listeners = [...this.#clients].filter(({ who, socket }) => who && socket.bufferedAmount < UNSENT_OCTETS_MAX);
    if (listeners.length === 0) return;
    const picture = this.#picture(camera, number, capture_us);
    const flags = { mark: !this.repeating.has(camera), reduced: camera > 0 && this.link.loss > 0.04, repaired: false };
    const message = encodeFrame({ camera, flags, number, missed: this.#missed[camera] ?? 0, capture_us, arrival_us: now_us(), deadline_us: capture_us + this.#deadline_ms * 1_000, width_px: 640, height_px: 480, uncertainty_us: 800, picture });
    for (const { socket } of listeners) socket.send(message);
  }

  #picture(camera: number, frame: number, time_us: number): Uint8Array<ArrayBuffer> {
    const damages = this.damaged.get(camera) ?? 0;
    if (damages > 0) {
      this.damaged.set(camera, damages - 1);
      return Uint8Array.of(0xff, 0xd8, 1, 2, 3);
    }
    const kept = this.#kept.get(camera);
    if (this.repeating.has(camera) && kept) return kept;
    const place = PLACES[camera] ?? "front";
    const picture = this.#scenes.picture(place, this.vehicle.way_m, place === "front" ? this.vehicle.curve_per_m : 0, { camera, frame, time_us });
    this.#kept.set(camera, picture);
    return picture;
  }

  #event(level: "info" | "warning" | "alarm", code: string, text: string): void {
    for (const client of this.#clients) if (client.who) send(client, { type: "event", time_us: now_us(), level, code, text });
  }
}

/** Permission that a control message needs; the others need none. */
const RIGHTS: Readonly<Partial<Record<ClientMessage["type"], string>>> = { request_control: "drive", take_over: "take_over", emergency_stop: "emergency_stop" };

const STOP_TEXTS = {
  dead_man: "Stopped: the dead-man control was released while the vehicle moved",
  driver_lost: "Stopped: no commands from the driver",
  link_lost: "Stopped: link to the vehicle lost",
} as const;

const IDLE_COMMAND: Command = { type: "command", seq: 0, page_us: 0, time_us: null, steering: 0, accelerator: 0, brake: 0, gear: "P", dead_man: false, emergency: false, input: "none" };

/** Serves a built page and the desk on a free port. */
export async function startDevDesk(options: DevDeskOptions & { page: string }): Promise<{ desk: DevDesk; server: Server; url: string }> {
  const desk = new DevDesk(options);
  const server = createServer((request, response) => {
    const found = request.url?.split(/[?#]/)[0] === "/";
    response.writeHead(found ? 200 : 404, { "content-type": "text/html; charset=utf-8" }).end(found ? readFileSync(options.page) : "");
  });
  server.on("upgrade", (request, socket, head) => desk.upgrade(request, socket, head as Buffer) || socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { desk, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

function grantOf(client: Client | undefined, name: string): Grant {
  return { client, name, since_ms: performance.now(), commanded_ms: undefined, driven_ms: undefined, released_ms: undefined };
}

function refuse(client: Client, code: string, text: string, reply_to: string): void {
  send(client, { type: "error", code, text, fatal: false, reply_to });
}

function send({ socket }: Client, message: object): void {
  socket.send(JSON.stringify(message));
}

/** Microseconds since 1970-01-01 TAI. */
function now_us(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1_000) + TAI_MINUS_UTC_US;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
