import { describe, expect, test } from "vitest";
import type { EventCollection, EventProperties, Kpis, MessageFeature } from "../src/api";
import { ENDED_SHOWN_MS, EXTRAPOLATE_MAX_MS, FADE_FROM_MS, GONE_AFTER_MS, STATIONS_MAX, TRAIL_POINTS, TRAIL_STEP_MS, TREE_CHILDREN_MAX } from "../src/limits";
import { shownChildren } from "../src/panels/tree";
import { readSelection, writeSelection } from "../src/state/address";
import { Drops } from "../src/state/drops";
import { Events } from "../src/state/events";
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

  test("shows missing values as gaps", () => {
    const history = new History(4, 4);
    history.push(1, { a: 1 });
    history.push(2, { b: 2 });
    history.push(3, { a: Number.NaN, b: 3 });
    expect(history.values("a")).toEqual([1, null, null]);
    expect(history.values("b")).toEqual([null, 2, 3]);
    expect(history.values("never")).toEqual([null, null, null]);
    expect(history.last("a")).toBeUndefined();
  });

  test("ignores a row that is not newer", () => {
    const history = new History(4, 4);
    history.push(2, { a: 1 });
    history.push(2, { a: 9 });
    history.push(1, { a: 9 });
    expect(history.values("a")).toEqual([1]);
  });

  test("limits the number of series, and reuses the place of a silent one", () => {
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

  test("Mercator coordinates convert back", () => {
    const [lon, lat] = toLonLat(toMercator(-71.06, 42.36));
    expect(lon).toBeCloseTo(-71.06, 9);
    expect(lat).toBeCloseTo(42.36, 9);
  });

  test("turns in the shorter direction", () => {
    expect(turn(350, 10)).toBe(20);
    expect(turn(10, 350)).toBe(-20);
    expect(turn(0, 180)).toBe(180);
  });

  test("extrapolates with its speed for a limited time", () => {
    const motion = startMotion(AT, 0, 20, 90);
    expect((drawnAt(motion, 500).x - AT.x) / METRE).toBeCloseTo(10, 3);
    expect(drawnAt(motion, 500).y).toBeCloseTo(AT.y, 12);
    expect(drawnAt(motion, 60_000)).toEqual(drawnAt(motion, EXTRAPOLATE_MAX_MS));
  });

  test("north is up", () => {
    expect(drawnAt(startMotion(AT, 0, 20, 0), 500).y).toBeLessThan(AT.y);
  });

  test("the drawn position approaches a report gradually", () => {
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

  test("keeps its speed if a report has none", () => {
    const moving = startMotion(AT, 0, 20, 90);
    const after = reportMotion(moving, AT, 100, undefined, 90);
    expect([after.vx, after.vy]).toEqual([moving.vx, moving.vy]);
    expect(reportMotion(moving, AT, 100, 0, 90).vx).toBe(0);
  });

  test("keeps its heading if a report has none", () => {
    expect(reportMotion(startMotion(AT, 0, 5, 42), AT, 100, 0).heading_deg).toBe(42);
  });
});

describe("Stations", () => {
  test("keeps one entry a station, with its newest position", () => {
    const stations = new Stations();
    stations.apply(received(1, 6, 50), 0);
    stations.apply(received(1, 6.0001, 50), 100);
    stations.apply(received(2, 6, 50), 100);
    expect(stations.size).toBe(2);
    expect(stations.get(1)).toMatchObject({ lon: 6.0001, heard_ms: 100, messages: 2 });
  });

  test("a message without a position keeps a known station alive, and makes no new one", () => {
    const stations = new Stations();
    stations.apply(received(1, 6, 50), 0);
    stations.apply({ ...received(1, 0, 0), geometry: null }, 5_000);
    stations.apply({ ...received(2, 0, 0), geometry: null }, 5_000);
    expect(stations.size).toBe(1);
    expect(stations.get(1)).toMatchObject({ lon: 6, heard_ms: 5_000 });
  });

  test("only awareness messages move a station", () => {
    const stations = new Stations();
    const ofType = (type: string, lon: number): MessageFeature => {
      const feature = received(1, lon, 50);
      return { ...feature, properties: { ...feature.properties, type } };
    };
    stations.apply(ofType("denm", 6.5), 0);
    expect(stations.size).toBe(0);
    stations.apply(ofType("cam", 6), 100);
    for (const type of ["denm", "cpm", "mapem", "ivim", "srem"]) stations.apply(ofType(type, 6.5), 200);
    expect(stations.get(1)).toMatchObject({ lon: 6, heard_ms: 200, messages: 6 });
    expect(stations.get(1)?.properties.type).toBe("cam");
    stations.apply(ofType("vam", 6.1), 300);
    expect(stations.get(1)).toMatchObject({ lon: 6.1 });
  });

  test("a CPM places a station that sends no awareness messages", () => {
    const stations = new Stations();
    const cpm = (lon: number): MessageFeature => {
      const feature = received(1, lon, 50);
      return { ...feature, properties: { ...feature.properties, type: "cpm" } };
    };
    stations.apply(cpm(6), 0);
    stations.apply(cpm(6.1), 100);
    expect(stations.get(1)).toMatchObject({ lon: 6.1, aware: false });
    stations.apply(received(1, 6.2, 50), 200);
    stations.apply(cpm(6.1), 300);
    expect(stations.get(1)).toMatchObject({ lon: 6.2, aware: true });
  });

  test("an unknown station type does not replace a known one", () => {
    const stations = new Stations();
    const cam = received(1, 6, 50);
    const { station_type: _, ...silent } = cam.properties;
    stations.apply(cam, 0);
    stations.apply({ ...cam, properties: silent }, 100);
    stations.apply({ ...cam, properties: { ...silent, station_type: 0 } }, 200);
    expect(stations.get(1)?.properties.station_type).toBe(5);
    stations.apply({ ...cam, properties: { ...silent, station_type: 6 } }, 300);
    expect(stations.get(1)?.properties.station_type).toBe(6);
  });

  test("removes silent stations, whatever the order of arrival", () => {
    const stations = new Stations();
    stations.apply(received(1, 6, 50), 0);
    stations.apply(received(2, 6, 50), 10);
    stations.apply(received(1, 6, 50), GONE_AFTER_MS);
    expect(stations.expire(GONE_AFTER_MS + 11)).toBe(true);
    expect([...stations.all()].map(({ id }) => id)).toEqual([1]);
    expect(stations.expire(GONE_AFTER_MS + 12)).toBe(false);
  });

  test("does not grow without bound", () => {
    const stations = new Stations();
    for (let id = 0; id < STATIONS_MAX + 3; id += 1) stations.apply(received(id, 6, 50), id);
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

test("a tree limits its children and shows the number of further ones", () => {
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
    expect(worst).toEqual({ where: "its/rx/cam → cache", reason: "queue_full", total: 30, rate_hz: 10, kind: "drop" });
    expect(rest).toEqual([{ where: "station", reason: "malformed", total: 4, rate_hz: 0, kind: "drop" }]);
  });

  test("restarts with the node", () => {
    const drops = new Drops();
    drops.update(kpis(100, 50));
    expect(drops.update(kpis(1, 3))[0]?.rate_hz).toBe(0);
  });

  test("a repeated DENM is a repetition, after all drops", () => {
    const drops = new Drops();
    const report = (uptime_s: number, value: number): Kpis => ({
      ...kpis(uptime_s, 0),
      counters: [
        { component: "station", name: "denms_ignored", reason: "denm_repeated", value, rate_hz: 1 },
        { component: "station", name: "dropped", reason: "malformed", value: 4, rate_hz: 0 },
      ],
    });
    drops.update(report(0, 1));
    expect(drops.update(report(2, 5)).map(({ reason, rate_hz, kind }) => [reason, rate_hz, kind])).toEqual([
      ["malformed", 0, "drop"],
      ["denm_repeated", 2, "repetition"],
    ]);
  });

  test("packets that are ignored in normal operation are no drops", () => {
    const counters = [
      ["dropped", "own_packet", "echo"],
      ["dropped", "duplicate", "repetition"],
      ["dropped", "other_link_destination", "not_for_us"],
      ["dropped", "left_area", "not_for_us"],
      ["packets_not_forwarded", "own_position_unknown", "not_for_us"],
      ["packets_not_forwarded", "left_area", "not_for_us"],
      ["packets_not_forwarded", "hops_exhausted", "not_for_us"],
      ["packets_not_forwarded", "buffer_overflow", "drop"],
      ["packets_lost", "own_position_unknown", "drop"],
      ["dropped", "uper_invalid", "drop"],
    ] as const;
    const report: Kpis = { ...kpis(0, 0), counters: counters.map(([name, reason]) => ({ component: "station", name, reason, value: 1, rate_hz: 0 })) };
    const rows = new Drops().update(report);
    for (const [name, reason, kind] of counters) {
      const where = name === "dropped" ? "station" : `station ${name}`;
      expect(rows, `${name} ${reason}`).toContainEqual({ where, reason, total: 1, rate_hz: 0, kind });
    }
    expect(rows.map(({ kind }) => kind === "drop")).toEqual([true, true, true, false, false, false, false, false, false, false]);
  });

  test("a response with success is no drop", () => {
    const counter = { component: "server", name: "responses", value: 3, rate_hz: 1 };
    const report: Kpis = { ...kpis(0, 0), counters: [{ ...counter, reason: "success" }, { ...counter, reason: "client_error" }] };
    expect(new Drops().update(report)).toEqual([{ where: "server responses", reason: "client_error", total: 3, rate_hz: 0, kind: "drop" }]);
  });

  test("lists the drops of a topic that its subscriptions do not explain", () => {
    const report = kpis(0, 5);
    for (const topic of report.topics) topic.dropped = 8;
    expect(new Drops().update(report)).toContainEqual({ where: "its/rx/cam", reason: "no reason given", total: 3, rate_hz: 0, kind: "drop" });
  });
});

test("latestAges uses the node's clock and leaves out old messages", () => {
  const at = (s: number): string => new Date(1_700_000_000_000 + s * 1_000).toISOString();
  const features = [received(1, 6, 50, at(9)), received(2, 6, 50, at(5)), received(3, 6, 50, at(-60)), received(4, 6, 50)];
  const ages = latestAges({ type: "FeatureCollection", features, links: [], numberReturned: 4, timeStamp: at(10) });
  expect(ages.map(({ feature, age_ms }) => [feature.properties.station_id, age_ms])).toEqual([[2, 5_000], [1, 1_000], [4, 0]]);
});

describe("Events", () => {
  const START_MS = 1_700_000_000_000;
  const at = (s: number): string => new Date(START_MS + s * 1_000).toISOString();
  const collection = (now_s: number, ...changes: Partial<EventProperties>[]): EventCollection => ({
    type: "FeatureCollection",
    features: changes.map((change, index) => ({
      type: "Feature",
      id: `1001-${index}`,
      geometry: { type: "Point", coordinates: [6, 50] },
      properties: {
        state: "active", originating_station_id: 1001, sequence_number: index, station_id: 1001, security: "unsecured", cause: 94, sub_cause: 0, cause_text: "stationary vehicle",
        detection_time: at(0), reference_time: at(0), valid_until: at(60), first_received: at(0), last_received: at(0), messages: 1, updates: 0, ...change,
      },
    })),
    links: [],
    numberReturned: changes.length,
    timeStamp: at(now_s),
  });

  test("an active event has its remaining validity by the node's clock", () => {
    const events = new Events();
    events.update(collection(10, {}), 5_000);
    expect(events.visible(7_000)).toMatchObject([{ id: "1001-0", state: "active", opacity: 1, remaining_s: 48, lon: 6, lat: 50 }]);
  });

  test("an event expires between two answers, fades, and disappears", () => {
    const events = new Events();
    events.update(collection(59, {}), 0);
    expect(events.visible(2_000)[0]).toMatchObject({ state: "expired", remaining_s: 0 });
    expect(events.visible(1_000 + ENDED_SHOWN_MS / 2)[0]?.opacity).toBeCloseTo(0.5);
    expect(events.visible(1_001 + ENDED_SHOWN_MS)).toEqual([]);
  });

  test("a cancelled event fades from its end, before the active ones", () => {
    const events = new Events();
    events.update(collection(20, {}, { state: "cancelled", ended_time: at(18) }), 0);
    expect(events.visible(0).map(({ id, state, opacity }) => [id, state, opacity])).toEqual([["1001-1", "cancelled", 0.8], ["1001-0", "active", 1]]);
    expect(events.get("1001-1", 9_000)).toBeUndefined();
  });

  test("an event without a position is not drawn", () => {
    const events = new Events();
    const answer = collection(0, {});
    events.update({ ...answer, features: answer.features.map((feature) => ({ ...feature, geometry: null })) }, 0);
    expect(events.visible(0)).toEqual([]);
  });
});

test("a selection is written to the URL and read back", () => {
  for (const selection of [{ kind: "station", id: 4_294_967_295 }, { kind: "event", id: "1001-7" }] as const) {
    expect(readSelection(writeSelection(selection))).toEqual(selection);
  }
  expect(writeSelection(undefined)).toBe("");
  for (const fragment of ["", "#", "#station=x", "#station=12345678901", "#event=7", "#other=1"]) expect(readSelection(fragment)).toBeUndefined();
});

test("perceivedObjects finds the list and leaves out what has another shape", () => {
  const object = (x: unknown, y: unknown): unknown => ({ position: { xCoordinate: { value: x }, yCoordinate: { value: y } } });
  const cpm = { payload: { cpmContainers: [{}, { containerData: { perceivedObjects: [object(1_250, -300), object("?", 1), null] } }] } };
  expect(perceivedObjects(cpm)).toEqual([{ east_m: 12.5, north_m: -3 }]);
  expect(perceivedObjects(undefined)).toEqual([]);
});

function received(station_id: number, lon: number, lat: number, reception_time?: string): MessageFeature {
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
    node: "n", time: "", uptime_s, types: [], hops: [], figures: [],
    cache: { messages: 0, octets: 0, octets_max: 1, stations: 0, inserted: 0, evicted: 0, rejected: {}, live_clients: 0, stations_evicted: 0, undecodable: 0, events: 0, infrastructure: 0, objects_evicted: 0, objects_skipped: 0 },
    topics: [{ topic: "its/rx/cam", type: "Cam", published: 0, rate_hz: 0, dropped, subscriptions: [{ subscriber: "cache", delivered: 0, queued: 0, dropped: { queue_full: dropped } }] }],
    counters: [
      { component: "station", name: "dropped", reason: "malformed", value: 4, rate_hz: 0 },
      { component: "station", name: "sent", value: 99, rate_hz: 1 },
    ],
  };
}
