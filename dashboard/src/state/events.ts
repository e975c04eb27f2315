// Events of GET /v1/events as the map shows them. Contains no clock: the caller passes the time.

import type { EventCollection, EventFeature, EventProperties, EventState } from "../api";
import { ENDED_SHOWN_MS } from "../limits";
import { type Mercator, toMercator } from "./motion";

export interface MapEvent {
  id: string;
  lon: number;
  lat: number;
  at: Mercator;
  properties: EventProperties;
  /** The state now: an event also expires between two answers. */
  state: EventState;
  /** 1 while the event is active, falling to 0 until an ended one is removed. */
  opacity: number;
  /** Remaining validity in seconds; 0 if the event has ended. */
  remaining_s: number;
}

/** An event with its times by the node's clock. */
interface Known {
  id: string;
  lon: number;
  lat: number;
  at: Mercator;
  properties: EventProperties;
  validUntil_ms: number;
  ended_ms: number;
}

export class Events {
  #known: readonly Known[] = [];
  /** Clock of the node minus clock of the page, in milliseconds. */
  #offset_ms = 0;

  /** Replaces the events. `now_ms` is the page's time at the answer. */
  update(collection: EventCollection, now_ms: number): void {
    this.#known = collection.features.flatMap((feature) => known(feature) ?? []);
    const time = Date.parse(collection.timeStamp);
    if (!Number.isNaN(time)) this.#offset_ms = time - now_ms;
  }

  /** Returns the event with this id, if it is visible. */
  get(id: string, now_ms: number): MapEvent | undefined {
    return this.visible(now_ms).find((event) => event.id === id);
  }

  /** Returns the events with a position that are active or ended a short time ago, the active ones last. */
  visible(now_ms: number): MapEvent[] {
    const events = this.#known.flatMap((one) => present(one, now_ms + this.#offset_ms) ?? []);
    return events.sort((a, b) => a.opacity - b.opacity || a.id.localeCompare(b.id));
  }
}

function known({ id, geometry, properties }: EventFeature): Known | undefined {
  const [lon, lat] = geometry?.coordinates ?? [];
  if (lon === undefined || lat === undefined) return undefined;
  const validUntil_ms = Date.parse(properties.valid_until);
  const ended_ms = properties.ended_time === undefined ? validUntil_ms : Date.parse(properties.ended_time);
  return { id, lon, lat, at: toMercator(lon, lat), properties, validUntil_ms, ended_ms };
}

/** Returns the event at a time of the node's clock, or `undefined` if it ended too long ago. */
function present({ validUntil_ms, ended_ms, ...event }: Known, node_ms: number): MapEvent | undefined {
  const expired = event.properties.state === "active" && node_ms > validUntil_ms;
  const state = expired ? "expired" : event.properties.state;
  const active = state === "active";
  const opacity = active ? 1 : 1 - Math.max(0, node_ms - ended_ms) / ENDED_SHOWN_MS;
  if (!(opacity > 0)) return undefined;
  return { ...event, state, opacity, remaining_s: active ? Math.max(0, validUntil_ms - node_ms) / 1_000 : 0 };
}
