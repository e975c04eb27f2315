// Position of a vehicle between two of its messages: dead reckoning from the last one, plus a correction that decays. So a small
// error causes no jump, and a large one no lasting lag.
//
// Contains no clock; positions are Web Mercator in [0, 1], x to the east, y to the south.

import { EXTRAPOLATE_MAX_MS, GLIDE_MAX_M, GLIDE_TAU_MS } from "../limits";

export interface Mercator {
  x: number;
  y: number;
}

export interface Motion {
  /** Last reported position, and the time of the report. */
  x: number;
  y: number;
  at_ms: number;
  /** Velocity in Mercator units per millisecond. */
  vx: number;
  vy: number;
  heading_deg: number | undefined;
  /** Drawn minus reported position at `at_ms`; decays. */
  offset_x: number;
  offset_y: number;
  offset_deg: number;
}

const EARTH_CIRCUMFERENCE_M = 40_075_016.686;

export function toMercator(lon: number, lat: number): Mercator {
  const sin = Math.sin((lat * Math.PI) / 180);
  return { x: lon / 360 + 0.5, y: 0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI) };
}

export function toLonLat({ x, y }: Mercator): [number, number] {
  return [(x - 0.5) * 360, (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI];
}

/** Returns the Mercator units in one metre at this y. */
export function mercatorPerMetre(y: number): number {
  return Math.cosh((0.5 - y) * 2 * Math.PI) / EARTH_CIRCUMFERENCE_M;
}

/** Returns the shortest turn from one heading to another, in (-180, 180]. */
export function turn(from_deg: number, to_deg: number): number {
  const difference = (((to_deg - from_deg) % 360) + 360) % 360;
  return difference > 180 ? difference - 360 : difference;
}

export function startMotion(at: Mercator, now_ms: number, speed_mps?: number, heading_deg?: number): Motion {
  const v = velocity(at.y, speed_mps, heading_deg);
  return { ...at, at_ms: now_ms, ...v, heading_deg, offset_x: 0, offset_y: 0, offset_deg: 0 };
}

/** Returns the motion after a new report. It continues from the drawn position; missing values (a CPM has no speed) remain. */
export function reportMotion(motion: Motion, at: Mercator, now_ms: number, speed_mps?: number, heading_deg?: number): Motion {
  const drawn = drawnAt(motion, now_ms);
  const next = startMotion(at, now_ms, speed_mps, heading_deg ?? motion.heading_deg);
  if (speed_mps === undefined) {
    next.vx = motion.vx;
    next.vy = motion.vy;
  }
  const jump_m = Math.hypot(drawn.x - at.x, drawn.y - at.y) / mercatorPerMetre(at.y);
  if (jump_m > GLIDE_MAX_M) return next;
  next.offset_x = drawn.x - at.x;
  next.offset_y = drawn.y - at.y;
  if (drawn.heading_deg !== undefined && next.heading_deg !== undefined) {
    next.offset_deg = turn(next.heading_deg, drawn.heading_deg);
  }
  return next;
}

export function drawnAt(motion: Motion, now_ms: number): Mercator & { heading_deg: number | undefined } {
  const age_ms = Math.max(0, now_ms - motion.at_ms);
  const ahead_ms = Math.min(age_ms, EXTRAPOLATE_MAX_MS);
  const left = Math.exp(-age_ms / GLIDE_TAU_MS);
  return {
    x: motion.x + motion.vx * ahead_ms + motion.offset_x * left,
    y: motion.y + motion.vy * ahead_ms + motion.offset_y * left,
    heading_deg: motion.heading_deg === undefined ? undefined : motion.heading_deg + motion.offset_deg * left,
  };
}

function velocity(y: number, speed_mps?: number, heading_deg?: number): { vx: number; vy: number } {
  if (speed_mps === undefined || heading_deg === undefined) return { vx: 0, vy: 0 };
  const unitsPerMs = (speed_mps / 1_000) * mercatorPerMetre(y);
  const heading = (heading_deg * Math.PI) / 180;
  return { vx: Math.sin(heading) * unitsPerMs, vy: -Math.cos(heading) * unitsPerMs };
}
