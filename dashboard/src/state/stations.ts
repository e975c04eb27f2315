// The stations that sent messages recently. Contains no clock and no drawing: `apply` takes features, `expire` removes silent stations.
//
// Only awareness messages (CAM, VAM) move a station. The position of a DENM is that of its event, and the position of a MAPEM or
// IVIM that of an intersection or sign. A CPM has the position of its sender, which places a station that sends no CAM or VAM.

import type { MessageFeature, MessageProperties } from "../api";
import { FADE_FROM_MS, GONE_AFTER_MS, STATIONS_MAX, TRAIL_POINTS, TRAIL_STEP_MS } from "../limits";
import { type Motion, reportMotion, startMotion, toMercator } from "./motion";

export interface Station {
  id: number;
  lon: number;
  lat: number;
  properties: MessageProperties;
  motion: Motion;
  heard_ms: number;
  /** Messages since the page was opened. */
  messages: number;
  /** `true` once a CAM or VAM was received: from then on a CPM does not move the station. */
  aware: boolean;
  trail: Trail;
}

/** A ring of the last positions: x, y, x, y, ... */
export class Trail {
  readonly points = new Float64Array(TRAIL_POINTS * 2);
  #head = 0;
  #last_ms = -Infinity;
  length = 0;

  add(x: number, y: number, now_ms: number): void {
    if (now_ms - this.#last_ms < TRAIL_STEP_MS) return;
    this.#last_ms = now_ms;
    this.points[this.#head * 2] = x;
    this.points[this.#head * 2 + 1] = y;
    this.#head = (this.#head + 1) % TRAIL_POINTS;
    this.length = Math.min(this.length + 1, TRAIL_POINTS);
  }

  /** Returns the index in `points` of the i-th point, oldest first. */
  offset(i: number): number {
    return ((this.#head - this.length + i + TRAIL_POINTS) % TRAIL_POINTS) * 2;
  }

  clear(): void {
    this.length = 0;
  }
}

export class Stations {
  readonly #byId = new Map<number, Station>();
  /** Stations removed to make room for others. */
  displaced = 0;

  get size(): number {
    return this.#byId.size;
  }

  get(id: number): Station | undefined {
    return this.#byId.get(id);
  }

  /** Returns the stations, the one silent for longest first. */
  all(): IterableIterator<Station> {
    return this.#byId.values();
  }

  /** Updates a station with a message. A message without the station's own position only refreshes a known station. */
  apply(feature: MessageFeature, now_ms: number): void {
    const properties = withoutUnknown(feature.properties);
    const id = properties.station_id;
    const known = this.#byId.get(id);
    const aware = AWARENESS_TYPES.has(properties.type);
    const places = aware || (properties.type === "cpm" && known?.aware !== true);
    const [lon, lat] = (places ? feature.geometry?.coordinates : undefined) ?? [];
    if (lon === undefined || lat === undefined) {
      if (known) this.#touch(known, now_ms);
      return;
    }
    const at = toMercator(lon, lat);
    if (!known) {
      const motion = startMotion(at, now_ms, properties.speed_mps, properties.heading_deg);
      const station: Station = { id, lon, lat, properties, motion, heard_ms: now_ms, messages: 1, aware, trail: new Trail() };
      station.trail.add(at.x, at.y, now_ms);
      this.#byId.set(id, station);
      this.#makeRoom();
      return;
    }
    known.motion = reportMotion(known.motion, at, now_ms, properties.speed_mps, properties.heading_deg);
    if (known.motion.offset_x === 0 && known.motion.offset_y === 0 && (known.lon !== lon || known.lat !== lat)) known.trail.clear();
    known.trail.add(at.x, at.y, now_ms);
    known.lon = lon;
    known.lat = lat;
    known.aware ||= aware;
    // Properties that a message lacks remain: a CPM has no station type.
    known.properties = { ...known.properties, ...properties };
    this.#touch(known, now_ms);
  }

  /** Removes stations that have been silent for too long. Returns `true` if one was removed. */
  expire(now_ms: number): boolean {
    const before = this.#byId.size;
    for (const [id, station] of this.#byId) {
      if (now_ms - station.heard_ms <= GONE_AFTER_MS) break;
      this.#byId.delete(id);
    }
    return this.#byId.size !== before;
  }

  /** Moves a station to the end, so that the map is ordered by the last message. */
  #touch(station: Station, now_ms: number): void {
    station.heard_ms = now_ms;
    station.messages += 1;
    this.#byId.delete(station.id);
    this.#byId.set(station.id, station);
  }

  #makeRoom(): void {
    if (this.#byId.size <= STATIONS_MAX) return;
    const longestSilent = this.#byId.keys().next().value;
    if (longestSilent === undefined) return;
    this.#byId.delete(longestSilent);
    this.displaced += 1;
  }
}

/** Types of messages whose position moves their sender. */
const AWARENESS_TYPES: ReadonlySet<string> = new Set(["cam", "vam"]);

/** Removes the station type 0, which is "unknown" (TS 102 894-2). */
function withoutUnknown(properties: MessageProperties): MessageProperties {
  if (properties.station_type !== 0) return properties;
  const { station_type: _, ...known } = properties;
  return known;
}

/** Returns 1 while a station is fresh, falling to 0 until it is removed. */
export function freshness(heard_ms: number, now_ms: number): number {
  const age_ms = now_ms - heard_ms;
  if (age_ms <= FADE_FROM_MS) return 1;
  return Math.max(0, 1 - (age_ms - FADE_FROM_MS) / (GONE_AFTER_MS - FADE_FROM_MS));
}
