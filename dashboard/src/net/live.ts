// The live stream: a pure reducer of its state, and the EventSource that drives it.

import type { Lost, MessageFeature } from "../api";
import { REOPEN_MS } from "../limits";

export interface LiveState {
  phase: "connecting" | "live" | "reconnecting";
  /** Start of the phase. */
  since_ms: number;
  lastMessage_ms: number | undefined;
  /** `id` of the last event, from which a new stream continues. */
  cursor: string | undefined;
  received: number;
  /** Messages that the server dropped because this page was too slow. */
  lost: number;
  /** Events that do not conform to the API. */
  malformed: number;
  /** Failed attempts since the stream last worked. */
  attempts: number;
}

export type LiveInput =
  | { kind: "open" }
  | { kind: "message"; id: string }
  | { kind: "restarted"; id: string }
  | { kind: "lost"; count: number }
  | { kind: "malformed" }
  | { kind: "broken" };

export function initialLive(now_ms: number): LiveState {
  return {
    phase: "connecting",
    since_ms: now_ms,
    lastMessage_ms: undefined,
    cursor: undefined,
    received: 0,
    lost: 0,
    malformed: 0,
    attempts: 0,
  };
}

export function reduceLive(state: LiveState, input: LiveInput, now_ms: number): LiveState {
  switch (input.kind) {
    case "open":
      return { ...enter(state, "live", now_ms), attempts: 0 };
    case "message":
      return {
        ...enter(state, "live", now_ms),
        lastMessage_ms: now_ms,
        cursor: input.id || state.cursor,
        received: state.received + 1,
      };
    case "restarted":
      return { ...state, cursor: input.id || state.cursor };
    case "lost":
      return { ...state, lost: state.lost + Math.max(0, input.count) };
    case "malformed":
      return { ...state, malformed: state.malformed + 1 };
    case "broken":
      return { ...enter(state, "reconnecting", now_ms), attempts: state.attempts + 1 };
  }
}

export function reopenDelay_ms(attempts: number): number {
  return REOPEN_MS[Math.min(Math.max(attempts, 1), REOPEN_MS.length) - 1] ?? 5_000;
}

export interface LiveEvents {
  onMessage(feature: MessageFeature, now_ms: number): void;
  /** The node has restarted since the last event, with an empty cache. */
  onRestart(): void;
}

export class Live {
  state: LiveState = initialLive(performance.now());
  readonly #events: LiveEvents;

  constructor(events: LiveEvents) {
    this.#events = events;
  }

  open(): void {
    const { cursor } = this.state;
    const source = new EventSource(cursor === undefined ? "/v1/live" : `/v1/live?cursor=${encodeURIComponent(cursor)}`);
    source.addEventListener("open", () => this.#take({ kind: "open" }));
    source.addEventListener("message", (event) => this.#message(event));
    source.addEventListener("restarted", (event: MessageEvent<string>) => {
      this.#take({ kind: "restarted", id: event.lastEventId });
      this.#events.onRestart();
    });
    source.addEventListener("lost", (event: MessageEvent<string>) => {
      const lost = parse<Lost>(event.data);
      this.#take(lost && Number.isFinite(lost.count) ? { kind: "lost", count: lost.count } : { kind: "malformed" });
    });
    source.addEventListener("error", () => {
      this.#take({ kind: "broken" });
      // The browser reconnects after a broken connection, but not after an answer that is no stream.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.open(), reopenDelay_ms(this.state.attempts));
    });
  }

  #message(event: MessageEvent<string>): void {
    const feature = parse<MessageFeature>(event.data);
    if (feature?.properties?.station_id === undefined) return this.#take({ kind: "malformed" });
    this.#take({ kind: "message", id: event.lastEventId });
    this.#events.onMessage(feature, performance.now());
  }

  #take(input: LiveInput): void {
    this.state = reduceLive(this.state, input, performance.now());
  }
}

function enter(state: LiveState, phase: LiveState["phase"], now_ms: number): LiveState {
  return state.phase === phase ? state : { ...state, phase, since_ms: now_ms };
}

function parse<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
