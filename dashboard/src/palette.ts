// Colours that carry a meaning. test/palette.test.ts simulates deuteranopia, protanopia and tritanopia and checks the distances:
// hops, kinds of stations and speeds differ clearly in every case. Speeds also rise in lightness.

import type { EventState, SignalState } from "./api";

export interface Band {
  label: string;
  colour: string;
}

/** Upper bounds in km/h; the last band has none. */
const SPEED_BOUNDS_KMH = [2, 20, 40, 60, 90] as const;
export const SPEED_BANDS: readonly Band[] = [
  { label: "standing", colour: "#835a5c" },
  { label: "≤ 20", colour: "#795fd8" },
  { label: "≤ 40", colour: "#368ab1" },
  { label: "≤ 60", colour: "#00dabc" },
  { label: "≤ 90", colour: "#aae74a" },
  { label: "> 90 km/h", colour: "#fdeca7" },
];

/** Returns the band of a speed; an unknown speed counts as standing. */
export function speedBand(speed_mps: number | undefined): Band {
  const kmh = (speed_mps ?? 0) * 3.6;
  const index = SPEED_BOUNDS_KMH.findIndex((bound) => kmh <= bound);
  return SPEED_BANDS[index === -1 ? SPEED_BANDS.length - 1 : index] as Band;
}

const CAR = { label: "car", colour: "#1bcdfc" };
const BUS = { label: "bus, tram", colour: "#faa85c" };
const TRUCK = { label: "truck", colour: "#f2e700" };
const TWO_WHEELER = { label: "two-wheeler", colour: "#467355" };
const ON_FOOT = { label: "pedestrian", colour: "#805891" };
const ROADSIDE = { label: "roadside", colour: "#a74e00" };
const OTHER = { label: "other", colour: "#a3bfb1" };
export const KIND_BANDS: readonly Band[] = [CAR, BUS, TRUCK, TWO_WHEELER, ON_FOOT, ROADSIDE, OTHER];

/** TS 102 894-2, TrafficParticipantType. */
export const ROADSIDE_UNIT = 15;
const BAND_OF_TYPE: Readonly<Record<number, Band>> = {
  1: ON_FOOT,
  2: TWO_WHEELER,
  3: TWO_WHEELER,
  4: TWO_WHEELER,
  5: CAR,
  6: BUS,
  7: TRUCK,
  8: TRUCK,
  9: TRUCK,
  11: BUS,
  12: TWO_WHEELER,
  13: ON_FOOT,
  14: TRUCK,
  [ROADSIDE_UNIT]: ROADSIDE,
};

/** Returns the band of a station type. */
export function kindBand(stationType = 0): Band {
  return BAND_OF_TYPE[stationType] ?? OTHER;
}

/** Colours of hops and of message types. */
export const LINES = ["#1ee3ff", "#ff8900", "#3c9781", "#ffe685", "#8b59a1", "#c92512", "#7153e8", "#c3f0cb"] as const;

/** Returns the colour of the line with this index; the colours repeat after the last one. */
export function line(index: number): string {
  return LINES[index % LINES.length] as string;
}

/** Colours of events. The symbol also differs: an ended event is crossed out. */
export const EVENT_COLOURS: Readonly<Record<EventState, string>> = { active: "#ff7a45", cancelled: "#a9b6c6", negated: "#a9b6c6", expired: "#a9b6c6" };

/** Outline of stations whose newest message was signed and not verified; the outline is also dashed. */
export const UNVERIFIED = "#e69f00";

const STOP = "#ff5d52";
const CAUTION = "#ffc53d";
const GO = "#2fd6a3";
const OFF = "#8a97aa";
/** Colours of signals; green tends to blue, as real signals do, so that red and green differ with colour blindness. */
export const SIGNAL_COLOURS: Readonly<Record<SignalState, string>> = {
  unavailable: OFF,
  dark: OFF,
  stop_then_proceed: STOP,
  stop_and_remain: STOP,
  pre_movement: CAUTION,
  permissive_movement_allowed: GO,
  protected_movement_allowed: GO,
  permissive_clearance: CAUTION,
  protected_clearance: CAUTION,
  caution_conflicting_traffic: CAUTION,
};
export const SIGNAL_UNKNOWN = OFF;

/** Returns the colour with an opacity of 0 to 1. */
export function withAlpha(hex: string, alpha: number): string {
  return `${hex}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
}
