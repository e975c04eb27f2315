// Colours that carry meaning. All sets can be told apart with any common colour vision: the speeds rise in lightness, the kinds
// and the lines are Okabe and Ito's set adapted to a dark ground.

export interface Band {
  label: string;
  colour: string;
}

/** Upper bounds in km/h; the last band has none. */
const SPEED_BOUNDS_KMH = [2, 20, 40, 60, 90] as const;
export const SPEED_BANDS: readonly Band[] = [
  { label: "standing", colour: "#6d7b90" },
  { label: "≤ 20", colour: "#4a7fe0" },
  { label: "≤ 40", colour: "#2fa4c9" },
  { label: "≤ 60", colour: "#4fc795" },
  { label: "≤ 90", colour: "#b5dc5c" },
  { label: "> 90 km/h", colour: "#fff07a" },
];

export function speedBand(speed_mps: number | undefined): Band {
  const kmh = (speed_mps ?? 0) * 3.6;
  const index = SPEED_BOUNDS_KMH.findIndex((bound) => kmh <= bound);
  return SPEED_BANDS[index === -1 ? SPEED_BANDS.length - 1 : index] as Band;
}

const CAR = { label: "car", colour: "#56b4e9" };
const BUS = { label: "bus, tram", colour: "#e69f00" };
const TRUCK = { label: "truck", colour: "#f0e442" };
const TWO_WHEELER = { label: "two-wheeler", colour: "#2fc79b" };
const ON_FOOT = { label: "pedestrian", colour: "#d88bb8" };
const ROADSIDE = { label: "roadside", colour: "#f5793a" };
const OTHER = { label: "other", colour: "#9aa7b8" };
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

export function kindBand(stationType = 0): Band {
  return BAND_OF_TYPE[stationType] ?? OTHER;
}

export const LINES = ["#56b4e9", "#e69f00", "#2fc79b", "#d88bb8", "#f0e442", "#f5793a", "#8f9bff", "#b8c4d4", "#b9855a"] as const;

export function line(index: number): string {
  return LINES[index % LINES.length] as string;
}

export function withAlpha(hex: string, alpha: number): string {
  return `${hex}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
}
