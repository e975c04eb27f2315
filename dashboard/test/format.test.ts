import { expect, test } from "vitest";
import { before, bytes, clock, coordinate, count, duration, latency, rate, stationType } from "../src/format";
import { graticule } from "../src/map/graticule";
import { signText } from "../src/map/infrastructure";
import { Roads } from "../src/map/roads";
import { isUnverified, scaleBar, viewOf } from "../src/map/view";
import { KIND_BANDS, kindBand, SPEED_BANDS, speedBand } from "../src/palette";

test("latency has a suitable unit and three figures", () => {
  expect([0.844, 9.996, 99.96, 999, 1_000, 12_345, 2_100_000].map(latency)).toEqual(["0.84 µs", "10.0 µs", "100 µs", "999 µs", "1.00 ms", "12.3 ms", "2.10 s"]);
  expect(latency(undefined)).toBe("–");
  expect(latency(Number.NaN)).toBe("–");
});

test("counts are grouped", () => {
  expect(count(999)).toBe("999");
  expect(count(1_234_567)).toBe("1\u202f234\u202f567");
});

test("small rates have two digits", () => {
  expect([0, 0.04, 0.5, 9.96, 54.32, 1_234].map(rate)).toEqual(["0", "0.04", "0.5", "10.0", "54.3", "1\u202f234"]);
});

test("bytes, durations", () => {
  expect([0, 999, 1_000, 256e6].map(bytes)).toEqual(["0 B", "999 B", "1.00 kB", "256 MB"]);
  expect([0.24, 42, 250, 11_000, 190_000].map(duration)).toEqual(["0.2 s", "42 s", "4 min 10 s", "3 h 03 min", "2 d 4 h"]);
});

test("a time before another", () => {
  expect([12, 0, -4, 4_000, -11_000_000].map(before)).toEqual(["12 ms before", "0 ms before", "4 ms after", "4.0 s before", "3 h 03 min after"]);
});

test("coordinates and times", () => {
  expect(coordinate(-33.5, 186)).toBe("33.500000° S  174.000000° W");
  expect(clock("2026-02-03T04:05:06.123456Z")).toBe("04:05:06.123");
  expect(clock(undefined)).toBe("–");
});

test("station types", () => {
  expect([undefined, 0, 5, 15, 99].map((type) => stationType(type))).toEqual(["unknown", "unknown", "passenger car", "roadside unit", "type 99"]);
  expect([5, 15, 7, 2, 1, 11, 0, 99].map((type) => kindBand(type).label)).toEqual(["car", "roadside", "truck", "two-wheeler", "pedestrian", "bus, tram", "other", "other"]);
  expect(KIND_BANDS).toContain(kindBand(99));
});

test("roads outside the view, and roads too small to be seen, are not in view", () => {
  const road = (...coordinates: number[][]) => ({ type: "Feature" as const, properties: null, geometry: { type: "LineString" as const, coordinates } });
  // Two streets of a town; the second is a long diagonal.
  const roads = new Roads({ type: "FeatureCollection", features: [road([6.08, 50.77], [6.081, 50.77]), road([6.08, 50.77], [6.12, 50.79])] });
  const at = (lng: number, lat: number, zoom: number) => roads.inView(viewOf({ lng, lat }, zoom, 800, 600));
  expect(at(6.08, 50.77, 16)).toBe(true);
  expect(at(6.1, 50.78, 17), "only the diagonal").toBe(true);
  expect(at(6.11, 50.772, 17), "in the box of the diagonal").toBe(false);
  expect(at(6.3, 50.77, 16), "outside the town").toBe(false);
  expect(at(6.1, 50.78, 4), "the town is a dot").toBe(false);
  expect(new Roads().inView(viewOf({ lng: 6.1, lat: 50.78 }, 16, 800, 600))).toBe(false);
});

test("a sign of an unverified message is marked", () => {
  const sign = { kind: "sign", type: "ivim", station_id: 1, last_received: "" } as const;
  expect(signText({ ...sign, texts: ["School"], security: "unsecured" })).toBe("School");
  expect(signText({ ...sign, texts: ["School"], security: "unverified" })).toBe("School · unverified");
  expect(signText({ ...sign, texts: [], security: "unverified" })).toBe("unverified");
  expect(["unsecured", "unknown", "unverified"].map((security) => isUnverified({ security }))).toEqual([false, false, true]);
});

test("speeds fall into bands", () => {
  expect([undefined, 0, 5, 13.9, 30].map((speed) => SPEED_BANDS.indexOf(speedBand(speed)))).toEqual([0, 0, 1, 3, 5]);
});

test("the scale bar is a round length that fits", () => {
  const { pixelsPerMetre } = viewOf({ lng: 6, lat: 50 }, 15, 800, 600);
  const bar = scaleBar(pixelsPerMetre, 110);
  expect([1, 2, 5]).toContain(bar.metres / 10 ** Math.floor(Math.log10(bar.metres)));
  expect(bar.width_px).toBeLessThanOrEqual(110);
  expect(bar.width_px).toBeGreaterThan(40);
});

test("the graticule has round steps, labels and distances above the limit", () => {
  const view = viewOf({ lng: 11.43, lat: 48.766 }, 15, 800, 600);
  const { meridians, parallels } = graticule(view);
  expect(meridians.map(({ label }) => label)).toEqual(["11.425° E", "11.430° E", "11.435° E"]);
  expect(parallels.map(({ label }) => label)).toEqual(["48.765° N", "48.770° N"]);
  const gaps = meridians.slice(1).map(({ at_px }, i) => at_px - (meridians[i]?.at_px ?? 0));
  for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(110);
  for (const { at_px } of parallels) expect(at_px > 0 && at_px < 600).toBe(true);
});

test("the graticule of the whole world ends at its edges", () => {
  const { meridians, parallels } = graticule(viewOf({ lng: 0, lat: 0 }, 0, 1_600, 900));
  expect(meridians.map(({ label }) => label)).toEqual(["100° W", "0°", "100° E"]);
  expect(parallels.length).toBeGreaterThan(0);
  expect(parallels.length).toBeLessThan(5);
});
