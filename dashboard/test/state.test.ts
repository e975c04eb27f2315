import { describe, expect, test } from "vitest";
import type { Kpis, MessageFeature } from "../src/api";
import { EXTRAPOLATE_MAX_MS, FADE_FROM_MS, GONE_AFTER_MS, STATIONS_MAX, TRAIL_POINTS, TRAIL_STEP_MS, TREE_CHILDREN_MAX } from "../src/limits";
import { shownChildren } from "../src/panels/tree";
import { Drops } from "../src/state/drops";
import { latestAges } from "../src/state/latest";
import { drawnAt, mercatorPerMetre, reportMotion, startMotion, toLonLat, toMercator, turn } from "../src/state/motion";
import { perceivedObjects } from "../src/state/perceived";
import { History } from "../src/state/ring";
import { stack } from "../src/state/stack";
import { freshness, Stations, Trail } from "../src/state/stations";

describe("History", () => {
  test("keeps the newest rows of each series", () => {
    const history = new History(3, 4);
    for (let t = 1; t <= 5; t += 1) history.push(t, { a: t * 10 });
    expect(history.times()).toEqual([3, 4, 5]);
    expect(history.values("a")).toEqual([30, 40, 50]);
    expect(history.last("a")).toBe(50);
  });

  test("shows what is missing as a gap", () => {
    const history = new History(4, 4);
    history.push(1, { a: 1 });
    history.push(2, { b: 2 });
    history.push(3, { a: Number.NaN, b: 3 });
    expect(history.values("a")).toEqual([1, null, null]);
    expect(history.values("b")).toEqual([null, 2, 3]);
    expect(history.values("never")).toEqual([null, null, null]);
    expect(history.last("a")).toBeUndefined();
  });

  test("ignores a row whose time does not go on", () => {
    const history = new History(4, 4);
    history.push(2, { a: 1 });
    history.push(2, { a: 9 });
    history.push(1, { a: 9 });
    expect(history.values("a")).toEqual([1]);
  });

  test("has room for so many series, and gives a silent one's place away", () => {
    const history = new History(2, 1);
    history.push(1, { a: 1, b: 1 });
    expect(history.names).toEqual(["a"]);
    for (let t = 2; t <= 6; t += 1) history.push(t, {});
    history.push(7, { b: 7 });
    expect(history.names).toEqual(["b"]);
  });
});

describe("motion", () => {
  const AT = toMercator(6.08, 50.77);
  const METRE = mercatorPerMetre(AT.y);

  test("Mercator goes there and back", () => {
    const [lon, lat] = toLonLat(toMercator(-71.06, 42.36));
    expect(lon).toBeCloseTo(-71.06, 9);
    expect(lat).toBeCloseTo(42.36, 9);
  });

  test("turns the short way", () => {
    expect(turn(350, 10)).toBe(20);
    expect(turn(10, 350)).toBe(-20);
    expect(turn(0, 180)).toBe(180);
  });

  test("goes on with its speed, but not for ever", () => {
    const motion = startMotion(AT, 0, 20, 90);
    expect((drawnAt(motion, 500).x - AT.x) / METRE).toBeCloseTo(10, 3);
    expect(drawnAt(motion, 500).y).toBeCloseTo(AT.y, 12);
    expect(drawnAt(motion, 60_000)).toEqual(drawnAt(motion, EXTRAPOLATE_MAX_MS));
  });

  test("north is up", () => {
    expect(drawnAt(startMotion(AT, 0, 20, 0), 500).y).toBeLessThan(AT.y);
  });

  test("a report changes nothing at once and everything soon", () => {
    const before = startMotion(AT, 0, 10, 90);
    const reported = { x: AT.x + 9 * METRE, y: AT.y + 2 * METRE };
    const after = reportMotion(before, reported, 1_000, 0, 100);
    expect(drawnAt(after, 1_000).x).toBeCloseTo(drawnAt(before, 1_000).x, 14);
    expect(drawnAt(after, 1_000).heading_deg).toBeCloseTo(90, 9);
    expect(drawnAt(after, 3_000).x).toBeCloseTo(reported.x, 12);
    expect(drawnAt(after, 3_000).heading_deg).toBeCloseTo(100, 3);
  });

  test("a large error is a jump", () => {
    const far = { x: AT.x + 500 * METRE, y: AT.y };
    expect(drawnAt(reportMotion(startMotion(AT, 0), far, 100), 100).x).toBe(far.x);
  });

  test("keeps its speed when a report has none", () => {
    const moving = startMotion(AT, 0, 20, 90);
    const after = reportMotion(moving, AT, 100, undefined, 90);
    expect([after.vx, after.vy]).toEqual([moving.vx, moving.vy]);
    expect(reportMotion(moving, AT, 100, 0, 90).vx).toBe(0);
  });

  test("keeps its heading when a report has none", () => {
    expect(reportMotion(startMotion(AT, 0, 5, 42), AT, 100, 0).heading_deg).toBe(42);
  });
});

describe("Stations", () => {
  test("keeps one entry a station, with its newest position", () => {
    const stations = new Stations();
    stations.apply(heard(1, 6, 50), 0);
    stations.apply(heard(1, 6.0001, 50), 100);
    stations.apply(heard(2, 6, 50), 100);
    expect(stations.size).toBe(2);
    expect(stations.get(1)).toMatchObject({ lon: 6.0001, heard_ms: 100, messages: 2 });
  });

  test("a message without a position keeps a known station alive, and makes no new one", () => {
    const stations = new Stations();
    stations.apply(heard(1, 6, 50), 0);
    stations.apply({ ...heard(1, 0, 0), geometry: null }, 5_000);
    stations.apply({ ...heard(2, 0, 0), geometry: null }, 5_000);
    expect(stations.size).toBe(1);
    expect(stations.get(1)).toMatchObject({ lon: 6, heard_ms: 5_000 });
  });

  test("an unknown station type does not replace a known one", () => {
    const stations = new Stations();
    const cam = heard(1, 6, 50);
    const { station_type: _, ...silent } = cam.properties;
    stations.apply(cam, 0);
    stations.apply({ ...cam, properties: silent }, 100);
    stations.apply({ ...cam, properties: { ...silent, station_type: 0 } }, 200);
    expect(stations.get(1)?.properties.station_type).toBe(5);
    stations.apply({ ...cam, properties: { ...silent, station_type: 6 } }, 300);
    expect(stations.get(1)?.properties.station_type).toBe(6);
  });

  test("forgets who is silent, whatever the order of arrival", () => {
    const stations = new Stations();
    stations.apply(heard(1, 6, 50), 0);
    stations.apply(heard(2, 6, 50), 10);
    stations.apply(heard(1, 6, 50), GONE_AFTER_MS);
    expect(stations.expire(GONE_AFTER_MS + 11)).toBe(true);
    expect([...stations.all()].map(({ id }) => id)).toEqual([1]);
    expect(stations.expire(GONE_AFTER_MS + 12)).toBe(false);
  });

  test("does not grow without bound", () => {
    const stations = new Stations();
    for (let id = 0; id < STATIONS_MAX + 3; id += 1) stations.apply(heard(id, 6, 50), id);
    expect(stations.size).toBe(STATIONS_MAX);
    expect(stations.displaced).toBe(3);
    expect(stations.get(0)).toBeUndefined();
  });

  test("freshness falls from 1 to 0", () => {
    expect(freshness(0, FADE_FROM_MS)).toBe(1);
    expect(freshness(0, (FADE_FROM_MS + GONE_AFTER_MS) / 2)).toBeCloseTo(0.5);
    expect(freshness(0, GONE_AFTER_MS + 1)).toBe(0);
  });

  test("a trail thins out and wraps", () => {
    const trail = new Trail();
    for (let i = 0; i < 100; i += 1) trail.add(i, -i, (i * TRAIL_STEP_MS) / 2);
    expect(trail.length).toBe(TRAIL_POINTS);
    const xs = Array.from({ length: trail.length }, (_, i) => trail.points[trail.offset(i)]);
    expect(xs).toEqual(Array.from({ length: TRAIL_POINTS }, (_, i) => 98 - 2 * (TRAIL_POINTS - 1 - i)));
  });
});

test("a tree shows so many children and says how many more there are", () => {
  const list = Array.from({ length: TREE_CHILDREN_MAX + 3 }, (_, i) => i);
  expect(shownChildren(list).entries).toHaveLength(TREE_CHILDREN_MAX);
  expect(shownChildren(list).more).toBe(3);
  expect(shownChildren({ a: 1 })).toEqual({ entries: [["a", 1]], more: 0 });
});

test("stack sums upwards and keeps gaps", () => {
  expect(stack([[1, null, null], [2, 3, null]])).toEqual([[1, 0, null], [3, 3, null]]);
  expect(stack([])).toEqual([]);
});

describe("Drops", () => {
  test("lists each place and reason once, with the rate of the window", () => {
    const drops = new Drops();
    drops.update(kpis(0, 10));
    const [worst, ...rest] = drops.update(kpis(2, 30));
    expect(worst).toEqual({ where: "its/rx/cam → cache", reason: "queue_full", total: 30, rate_hz: 10 });
    expect(rest).toEqual([{ where: "station", reason: "malformed", total: 4, rate_hz: 0 }]);
  });

  test("starts anew when the node did", () => {
    const drops = new Drops();
    drops.update(kpis(100, 50));
    expect(drops.update(kpis(1, 3))[0]?.rate_hz).toBe(0);
  });

  test("names what a topic dropped beyond its subscriptions' reasons", () => {
    const report = kpis(0, 5);
    for (const topic of report.topics) topic.dropped = 8;
    expect(new Drops().update(report)).toContainEqual({ where: "its/rx/cam", reason: "no reason given", total: 3, rate_hz: 0 });
  });
});

test("latestAges counts by the node's clock and leaves out who is gone", () => {
  const at = (s: number): string => new Date(1_700_000_000_000 + s * 1_000).toISOString();
  const features = [heard(1, 6, 50, at(9)), heard(2, 6, 50, at(5)), heard(3, 6, 50, at(-60)), heard(4, 6, 50)];
  const ages = latestAges({ type: "FeatureCollection", features, links: [], numberReturned: 4, timeStamp: at(10) });
  expect(ages.map(({ feature, age_ms }) => [feature.properties.station_id, age_ms])).toEqual([[2, 5_000], [1, 1_000], [4, 0]]);
});

test("perceivedObjects finds the list and leaves out what has another shape", () => {
  const object = (x: unknown, y: unknown): unknown => ({ position: { xCoordinate: { value: x }, yCoordinate: { value: y } } });
  const cpm = { payload: { cpmContainers: [{}, { containerData: { perceivedObjects: [object(1_250, -300), object("?", 1), null] } }] } };
  expect(perceivedObjects(cpm)).toEqual([{ east_m: 12.5, north_m: -3 }]);
  expect(perceivedObjects(undefined)).toEqual([]);
});

function heard(station_id: number, lon: number, lat: number, reception_time?: string): MessageFeature {
  return {
    type: "Feature",
    id: 1,
    geometry: { type: "Point", coordinates: [lon, lat] },
    properties: {
      direction: "received", type: "cam", edition: "1.4.1", station_id, station_type: 5, receiver: "its_station", access: "udp", security: "none",
      ...(reception_time === undefined ? {} : { reception_time }),
    },
  };
}

function kpis(uptime_s: number, dropped: number): Kpis {
  return {
    node: "n", time: "", uptime_s, types: [], hops: [],
    cache: { messages: 0, octets: 0, octets_max: 1, stations: 0, inserted: 0, evicted: 0, rejected: {}, live_clients: 0, stations_evicted: 0, undecodable: 0 },
    topics: [{ topic: "its/rx/cam", type: "Cam", published: 0, rate_hz: 0, dropped, subscriptions: [{ subscriber: "cache", delivered: 0, queued: 0, dropped: { queue_full: dropped } }] }],
    counters: [
      { component: "station", name: "dropped", reason: "malformed", value: 4, rate_hz: 0 },
      { component: "station", name: "sent", value: 99, rate_hz: 1 },
    ],
  };
}
