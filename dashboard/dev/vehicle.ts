// The simulated vehicle of the development server. It follows a closed course whatever the driver steers, because its pictures do not
// show where it is on the road.

import type { Command, Gear } from "../src/desk/protocol/messages";

const STRAIGHT_M = 120;
const RADIUS_M = 40;
const CURVE_M = Math.PI * RADIUS_M;
const LAP_M = 2 * (STRAIGHT_M + CURVE_M);
const WHEELBASE_M = 2.7;
const ACCELERATION_MPS2 = 2;
const BRAKING_MPS2 = 4;
const ROLLING_MPS2 = 0.25;
/** Deceleration above the speed limit, and while no driver has an effect. */
const GENTLE_BRAKING_MPS2 = 2;
const ORIGIN = { lat_deg: 52.2726, lon_deg: 10.5267 };
const EARTH_RADIUS_M = 6_371_000;

/** `heading` is mathematical: counterclockwise from east. */
interface Pose {
  east_m: number;
  north_m: number;
  heading: number;
}

export class SimulatedVehicle {
  /** Way along the course. */
  way_m = 20;
  speed_mps = 0;
  steering_rad = 0;
  gear: Gear = "P";

  /** `command` is `undefined` if the vehicle brakes because no driver has an effect. */
  step(elapsed_s: number, command: Command | undefined, limit_mps: number): void {
    if (command && this.speed_mps === 0) this.gear = command.gear;
    this.#accelerate(elapsed_s, command, limit_mps);
    this.way_m += this.speed_mps * elapsed_s;
    this.steering_rad = Math.atan(WHEELBASE_M * curveAt(this.way_m));
  }

  get curve_per_m(): number {
    return curveAt(this.way_m);
  }

  get position(): { lat_deg: number; lon_deg: number; heading_deg: number } {
    const { east_m, north_m, heading } = poseAt(this.way_m);
    const [lat_deg, lon_deg] = toGlobal(east_m, north_m);
    return { lat_deg, lon_deg, heading_deg: (((90 - (heading * 180) / Math.PI) % 360) + 360) % 360 };
  }

  #accelerate(elapsed_s: number, command: Command | undefined, limit_mps: number): void {
    const forward = this.gear === "D" ? 1 : this.gear === "R" ? -1 : 0;
    const wanted = command === undefined ? -GENTLE_BRAKING_MPS2 : command.accelerator * ACCELERATION_MPS2 * Math.abs(forward) - command.brake * BRAKING_MPS2 - ROLLING_MPS2;
    const size_mps = Math.max(0, Math.min(Math.abs(this.speed_mps) + wanted * elapsed_s, Math.max(limit_mps, Math.abs(this.speed_mps) - GENTLE_BRAKING_MPS2 * elapsed_s)));
    this.speed_mps = size_mps * (this.speed_mps < 0 || forward < 0 ? -1 : 1);
  }
}

/** Returns the course and its lane as lines of the map. */
export function courseLines(): { kind: string; points: [number, number][] }[] {
  const points = Array.from({ length: 241 }, (_, index) => {
    const { east_m, north_m } = poseAt((index / 240) * LAP_M);
    return toGlobal(east_m, north_m);
  });
  return [
    { kind: "lane", points },
    { kind: "course", points },
  ];
}

/** The course: two straights and two left curves, counterclockwise. */
function poseAt(way_m: number): Pose {
  const along_m = wrap(way_m, LAP_M);
  const pose = halfLap(wrap(along_m, LAP_M / 2));
  return along_m < LAP_M / 2 ? pose : { east_m: -pose.east_m, north_m: -pose.north_m, heading: pose.heading + Math.PI };
}

function halfLap(along_m: number): Pose {
  if (along_m < STRAIGHT_M) return { east_m: along_m - STRAIGHT_M / 2, north_m: -RADIUS_M, heading: 0 };
  const angle = (along_m - STRAIGHT_M) / RADIUS_M;
  return { east_m: STRAIGHT_M / 2 + RADIUS_M * Math.sin(angle), north_m: -RADIUS_M * Math.cos(angle), heading: angle };
}

function curveAt(way_m: number): number {
  return wrap(way_m, LAP_M / 2) < STRAIGHT_M ? 0 : 1 / RADIUS_M;
}

function toGlobal(east_m: number, north_m: number): [number, number] {
  const degrees = 180 / Math.PI;
  return [ORIGIN.lat_deg + (north_m / EARTH_RADIUS_M) * degrees, ORIGIN.lon_deg + (east_m / (EARTH_RADIUS_M * Math.cos(ORIGIN.lat_deg / degrees))) * degrees];
}

function wrap(value: number, period: number): number {
  return ((value % period) + period) % period;
}
