// The WebSocket to the desk. It opens again by itself, and logs in again with the token of the last successful login.

import { PING_PERIOD_MS, UNSENT_OCTETS_MAX } from "../limits";
import { type Frame, type FrameFault, parseFrame } from "../protocol/frame";
import { type ClientMessage, type Command, type DeskEvent, type DeskState, type DeskError, type MapLines, parseServerMessage, PROTOCOL_VERSION, type ServerMessage, SUBPROTOCOL } from "../protocol/messages";
import { DeskClock } from "./clock";
import { initialSession, isDead, reduceSession, reopenDelay_ms, type Session, type SessionInput } from "./session";

export interface ConnectionEvents {
  onSession(session: Session): void;
  onState(state: DeskState): void;
  onFrame(frame: Frame): void;
  onMap(map: MapLines): void;
  onEvent(event: DeskEvent): void;
  onError(error: DeskError): void;
}

export interface ConnectionCounts {
  /** Messages that do not conform to the protocol. */
  malformed: number;
  /** Commands not sent because earlier ones were still waiting. */
  withheld: number;
  /** Binary messages rejected, by reason. */
  frameFaults: Partial<Record<FrameFault, number>>;
}

/** Inputs that no panel shows. */
const INPUTS_NOT_SHOWN: ReadonlySet<SessionInput["kind"]> = new Set(["opening", "heard", "state"]);

export class Connection {
  session: Session = initialSession(performance.now());
  readonly clock = new DeskClock();
  readonly counts: ConnectionCounts = { malformed: 0, withheld: 0, frameFaults: {} };
  readonly #url: string;
  readonly #events: ConnectionEvents;
  #socket: WebSocket | undefined;
  #token: string | undefined;
  #pings = 0;

  constructor(url: string, token: string | undefined, events: ConnectionEvents) {
    this.#url = url;
    this.#token = token;
    this.#events = events;
  }

  start(): void {
    this.#open();
    setInterval(() => this.#ping(), PING_PERIOD_MS);
  }

  login(token: string): void {
    this.#token = token;
    this.#take({ kind: "login" });
    this.send({ type: "login", version: PROTOCOL_VERSION, token });
  }

  /** Forgets the token and opens a new connection, which waits for a login. */
  logout(): void {
    this.#token = undefined;
    this.#take({ kind: "logout" });
    this.#reopen();
  }

  send(message: ClientMessage): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends a command unless earlier ones are still waiting: it would only arrive late. */
  sendCommand(command: Command): boolean {
    if ((this.#socket?.bufferedAmount ?? 0) > UNSENT_OCTETS_MAX) {
      this.counts.withheld += 1;
      return false;
    }
    return this.send(command);
  }

  /** Replaces a connection that is silent, and an attempt to connect or to log in that takes too long. */
  watch(now_ms: number): void {
    if (isDead(this.session, now_ms)) this.#reopen();
  }

  #open(): void {
    const socket = new WebSocket(this.#url, SUBPROTOCOL);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => socket === this.#socket && this.#receive(data as string | ArrayBuffer));
    socket.addEventListener("close", () => socket === this.#socket && this.#closed());
    this.#socket = socket;
    this.#take({ kind: "opening" });
  }

  #reopen(): void {
    const old = this.#socket;
    this.#socket = undefined;
    old?.close();
    this.#closed();
  }

  #closed(): void {
    this.#socket = undefined;
    this.#take({ kind: "closed" });
    if (this.session.phase !== "refused") setTimeout(() => this.#socket ?? this.#open(), reopenDelay_ms(this.session.attempts));
  }

  #receive(data: string | ArrayBuffer): void {
    if (typeof data === "string") this.#receiveText(data);
    else this.#receiveFrame(data);
  }

  #receiveFrame(data: ArrayBuffer): void {
    const frame = parseFrame(data);
    this.#take({ kind: "heard" });
    if (typeof frame === "string") this.counts.frameFaults[frame] = (this.counts.frameFaults[frame] ?? 0) + 1;
    else this.#events.onFrame(frame);
  }

  #receiveText(data: string): void {
    let message: ServerMessage | undefined;
    try {
      message = parseServerMessage(data);
    } catch (error) {
      this.counts.malformed += 1;
      // Once: a message may repeat many times a second.
      if (this.counts.malformed === 1) console.warn("message of the desk rejected", error);
      return;
    }
    if (message) this.#dispatch(message);
  }

  #dispatch(message: ServerMessage): void {
    const now_us = nowPage_us();
    switch (message.type) {
      case "hello":
        this.clock.reset();
        this.clock.begin(message.time_us, now_us);
        this.#take({ kind: "hello", hello: message });
        if (this.#token !== undefined || message.login === "none") this.login(this.#token ?? "");
        return;
      case "welcome":
        this.#take({ kind: "welcome", welcome: message });
        return this.#ping();
      case "pong":
        this.clock.take(message.page_us, message.time_us, now_us);
        return this.#take({ kind: "heard" });
      case "state":
        this.#take({ kind: "state" });
        return this.#events.onState(message);
      case "map":
        return this.#events.onMap(message);
      case "event":
        return this.#events.onEvent(message);
      case "error":
        if (message.reply_to === "login") this.#token = undefined;
        this.#take({ kind: "error", error: message });
        return this.#events.onError(message);
    }
  }

  #ping(): void {
    if (this.session.phase !== "open") return;
    this.#pings = (this.#pings + 1) % 2 ** 32;
    this.send({ type: "ping", seq: this.#pings, page_us: nowPage_us() });
  }

  #take(input: SessionInput): void {
    const before = this.session;
    this.session = reduceSession(before, input, performance.now());
    if (!INPUTS_NOT_SHOWN.has(input.kind)) this.#events.onSession(this.session);
  }
}

/** Returns the time of the page: microseconds since it was opened. */
export function nowPage_us(): number {
  return Math.round(performance.now() * 1_000);
}
