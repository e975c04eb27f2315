// The vehicle's track in local metres: a pure model of the map.

import { TRACK_POINTS, TRACK_STEP_M } from "../limits";
import type { DeskState, MapLines } from "../protocol/messages";

export interface Point {
  east_m: number;
  north_m: number;
}

export interface LocalLine {
  kind: MapLines["lines"][number]["kind"];
  points: Point[];
}

const EARTH_RADIUS_M = 6_371_000;

type Position = NonNullable<DeskState["position"]>;

export class Track {
  #origin: Position | undefined;
  #lines: MapLines["lines"] = [];
  local: LocalLine[] = [];
  points: Point[] = [];
  vehicle: (Point & { heading_deg: number | null }) | undefined;

  setLines({ lines }: MapLines): void {
    this.#lines = lines;
    this.#project();
  }

  take(position: DeskState["position"]): void {
    if (position === null) {
      this.vehicle = undefined;
      return;
    }
    if (this.#origin === undefined) {
      this.#origin = position;
      this.#project();
    }
    const at = this.#local(position.lat_deg, position.lon_deg);
    this.vehicle = { ...at, heading_deg: position.heading_deg };
    this.#extend(at);
  }

  #extend(at: Point): void {
    const last = this.points.at(-1);
    if (last && Math.hypot(at.east_m - last.east_m, at.north_m - last.north_m) < TRACK_STEP_M) return;
    this.points.push(at);
    if (this.points.length > TRACK_POINTS) this.points.shift();
  }

  #project(): void {
    if (this.#origin === undefined) return;
    this.local = this.#lines.map(({ kind, points }) => ({ kind, points: points.map(([lat_deg, lon_deg]) => this.#local(lat_deg, lon_deg)) }));
  }

  /** Equirectangular projection around the first position: exact to millimetres within a kilometre. */
  #local(lat_deg: number, lon_deg: number): Point {
    const origin = this.#origin as Position;
    const radians = Math.PI / 180;
    const lonDifference_deg = ((((lon_deg - origin.lon_deg + 180) % 360) + 360) % 360) - 180;
    return {
      east_m: lonDifference_deg * radians * EARTH_RADIUS_M * Math.cos(origin.lat_deg * radians),
      north_m: (lat_deg - origin.lat_deg) * radians * EARTH_RADIUS_M,
    };
  }
}
