// Texts of numbers: three figures with a suitable unit.

/** Returns a latency with its unit: 0.84 µs, 12.3 µs, 1.25 ms, 2.10 s */
export function latency(us: number | undefined): string {
  if (us === undefined || !Number.isFinite(us)) return "–";
  if (us < 1_000) return `${figures(us)} µs`;
  if (us < 1_000_000) return `${figures(us / 1_000)} ms`;
  return `${figures(us / 1_000_000)} s`;
}

/** Returns the value with three significant figures, without an exponent. */
export function figures(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** Returns the number with narrow spaces between groups of three digits: 1234567 -> "1 234 567" */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function rate(hz: number): string {
  if (hz >= 99.95) return count(hz);
  return hz >= 9.95 || hz === 0 ? hz.toFixed(hz === 0 ? 0 : 1) : hz.toFixed(hz < 0.095 ? 2 : 1);
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? size.toFixed(0) : figures(size)} ${units[unit] ?? ""}`;
}

/** Returns a duration in its largest units: 8.2 s, 4 min 10 s, 3 h 02 min, 2 d 4 h */
export function duration(s: number): string {
  const pad = (n: number): string => String(Math.floor(n)).padStart(2, "0");
  if (s < 60) return `${s < 10 ? Math.max(0, s).toFixed(1) : Math.floor(s)} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ${pad(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${pad((s % 3_600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`;
}

/** Returns the distance between two times: 12 ms before, 3 h 02 min before, 4.0 s after */
export function before(ms: number): string {
  const size = Math.abs(ms);
  return `${size < 1_000 ? `${size} ms` : duration(size / 1_000)} ${ms < 0 ? "after" : "before"}`;
}

export function coordinate(lat: number, lon: number): string {
  const lonFolded = ((((lon + 180) % 360) + 360) % 360) - 180;
  return `${Math.abs(lat).toFixed(6)}° ${lat < 0 ? "S" : "N"}  ${Math.abs(lonFolded).toFixed(6)}° ${lonFolded < 0 ? "W" : "E"}`;
}

/** Returns the time of day of an RFC 3339 time, in UTC, with milliseconds. */
export function clock(rfc3339: string | undefined): string {
  const match = rfc3339 === undefined ? null : /T(\d\d:\d\d:\d\d)(\.\d{1,3})?/.exec(rfc3339);
  return match ? `${match[1]}${match[2] ?? ""}` : "–";
}

/** TS 102 894-2, TrafficParticipantType: the index is the value. */
const STATION_TYPES = [
  "unknown",
  "pedestrian",
  "cyclist",
  "moped",
  "motorcycle",
  "passenger car",
  "bus",
  "light truck",
  "heavy truck",
  "trailer",
  "special vehicle",
  "tram",
  "light VRU vehicle",
  "animal",
  "agricultural vehicle",
  "roadside unit",
] as const;

export function stationType(type = 0): string {
  return STATION_TYPES[type] ?? `type ${type}`;
}
