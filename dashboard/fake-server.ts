// A simulated node that conforms to the API: vehicles drive on a street grid and send CAMs by the rules of EN 302 637-2, key figures
// vary. One event runs through its life cycle, and one intersection has lanes, signals and a road sign. For the development of the page
// and for its browser test; it uses the types of the API and nothing of the page.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import type { CounterKpi, EventCollection, EventProperties, FiguresKpi, HopKpi, InfrastructureCollection, InfrastructureFeature, Kpis, LatencyKpi, MessageCollection, MessageFeature, MessageProperties, Problem, RoadMap, SignalState, StationFeature, TopicKpi } from "./src/api";

export interface FakeOptions {
  vehicles: number;
  seed?: number;
  /** `true` if some messages are dropped. */
  drops?: boolean;
  /** `false` for a node without a road network. Default `true`. */
  roads?: boolean;
  /** `false` for a node without events, lanes and signs. Default `true`. */
  objects?: boolean;
  /** `true` for a node with key figures of messages that come back. */
  figures?: boolean;
}

const [CYCLIST, MOTORCYCLE, PASSENGER_CAR, BUS, HEAVY_TRUCK, ROADSIDE_UNIT] = [2, 4, 5, 6, 8, 15] as const;
const CENTRE = { lon: 6.0839, lat: 50.7753 };
const METRES_PER_DEGREE = 111_320;
/** Stages of a round trip and their means in milliseconds. */
const STAGES = [["vehicle_to_interface", 0.2], ["vehicle_interface_out", 0.3], ["vehicle_to_cloud", 19], ["cloud_interface_in", 0.1], ["interface_to_detection", 3.6], ["detection", 43.4], ["detection_to_interface", 0.1], ["cloud_interface_out", 0.1], ["cloud_to_vehicle", 19], ["vehicle_interface_in", 0.1], ["interface_to_benchmark", 0.2]] as const;
const STEP_MS = 50;
const COLUMNS = 10;
const ROWS = 8;
const BLOCK_M = 165;
/** Origin of TimestampIts: 2004-01-01T00:00:00Z less the leap seconds since then. */
const ITS_EPOCH_MS = 1_072_915_200_000 - 5_000;

/** Metres east and north of CENTRE. */
interface Point {
  x: number;
  y: number;
}

interface FakeEvent {
  number: number;
  started_ms: number;
  updates: number;
  messages: number;
  ended_ms: number | undefined;
}

interface Crossing extends Point {
  next: number[];
}

interface Vehicle {
  id: number;
  /** TS 102 894-2, TrafficParticipantType. */
  type: number;
  from: number;
  to: number;
  along_m: number;
  x: number;
  y: number;
  speed_mps: number;
  cruise_mps: number;
  heading_deg: number;
  wait_ms: number;
  sent: { at_ms: number; x: number; y: number; heading_deg: number };
  sentCpm_ms: number;
  counts: Record<string, number>;
  latest: Record<string, MessageProperties>;
  firstSeen: string;
}

interface Listener {
  response: ServerResponse;
  types: Set<string> | undefined;
  station: number | undefined;
}

export class FakeNode {
  readonly #random: () => number;
  readonly #crossings: Crossing[];
  readonly #vehicles: Vehicle[];
  readonly #listeners = new Set<Listener>();
  readonly #started_ms = Date.now();
  readonly #drops: boolean;
  readonly #roads: boolean;
  readonly #objects: boolean;
  readonly #figures: boolean;
  #event: FakeEvent;
  readonly #timer: NodeJS.Timeout;
  #sequence = 0;
  #sent: Record<string, number> = {};
  #second = { at_ms: Date.now(), counts: {} as Record<string, number>, rates: {} as Record<string, number> };
  #last_ms = Date.now();

  constructor(options: FakeOptions) {
    this.#random = generator(options.seed ?? 7);
    this.#drops = options.drops ?? true;
    this.#roads = options.roads ?? true;
    this.#objects = options.objects ?? true;
    this.#figures = options.figures ?? false;
    this.#crossings = streets(this.#random);
    this.#vehicles = Array.from({ length: options.vehicles }, (_, i) => this.#makeVehicle(i));
    this.#event = { number: 0, started_ms: Date.now(), updates: 0, messages: 0, ended_ms: undefined };
    this.#timer = setInterval(() => this.#step(), STEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const { response } of this.#listeners) response.destroy();
  }

  /** Cancels the event, and triggers a new one `pause_ms` later. */
  cancelEvent(pause_ms = 12_000): void {
    this.#event.ended_ms = Date.now();
    this.#event.messages += 1;
    this.#sendDenm();
    setTimeout(() => {
      this.#event = { number: this.#event.number + 1, started_ms: Date.now(), updates: 0, messages: 0, ended_ms: undefined };
    }, pause_ms).unref();
  }

  /** Moves the event. */
  updateEvent(): void {
    this.#event.updates += 1;
    this.#event.messages += 1;
    this.#sendDenm();
  }

  /** Returns `true` if the request was for the API. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const url = new URL(request.url ?? "/", "http://node");
    const station = /^\/v1\/stations\/(\d+)$/.exec(url.pathname);
    if (url.pathname === "/v1/live") this.#live(url, response);
    else if (url.pathname === "/v1/latest") json(response, this.#latest());
    else if (url.pathname === "/v1/kpis") json(response, this.#kpis());
    else if (url.pathname === "/v1/map") json(response, this.#map());
    else if (url.pathname === "/v1/events") json(response, this.#eventCollection());
    else if (url.pathname === "/v1/infrastructure") json(response, this.#infrastructure());
    else if (station) this.#station(Number(station[1]), response);
    else return false;
    return true;
  }

  #live(url: URL, response: ServerResponse): void {
    const station = url.searchParams.get("station");
    const listener: Listener = {
      response,
      types: url.searchParams.has("type") ? new Set(url.searchParams.get("type")?.split(",")) : undefined,
      station: station === null ? undefined : Number(station),
    };
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": start\n\n");
    this.#listeners.add(listener);
    response.on("close", () => this.#listeners.delete(listener));
  }

  #latest(): MessageCollection {
    const features = this.#vehicles.flatMap((vehicle) => {
      const latest = vehicle.latest["cam"];
      return latest ? [this.#feature(vehicle, latest)] : [];
    });
    return { type: "FeatureCollection", features, links: [], numberReturned: features.length, timeStamp: new Date().toISOString() };
  }

  #station(id: number, response: ServerResponse): void {
    const vehicle = this.#vehicles.find((one) => one.id === id);
    const newest = vehicle?.latest["cam"];
    if (!vehicle || !newest) {
      const problem: Problem = { type: "about:blank", title: "Not Found", status: 404, detail: `station ${id} is not in the cache` };
      json(response, problem, 404);
      return;
    }
    const { geometry, properties } = this.#feature(vehicle, newest);
    const { station_id, station_type, speed_mps, heading_deg } = properties;
    const answer: StationFeature = {
      type: "Feature",
      id,
      geometry,
      properties: {
        station_id,
        ...(station_type === undefined ? {} : { station_type }),
        first_seen: vehicle.firstSeen,
        last_seen: newest.reception_time ?? vehicle.firstSeen,
        ...(speed_mps === undefined ? {} : { speed_mps }),
        ...(heading_deg === undefined ? {} : { heading_deg }),
        messages: vehicle.counts,
        latest: vehicle.latest,
      },
    };
    json(response, answer);
  }

  #map(): RoadMap {
    if (!this.#roads) return { type: "FeatureCollection", features: [] };
    const features = this.#crossings.flatMap((crossing, index) =>
      crossing.next.filter((other) => other > index).map((other) => ({
        type: "Feature" as const,
        geometry: { type: "LineString" as const, coordinates: [lonLat(crossing), lonLat(this.#crossing(other))] },
        properties: { name: `street ${index}-${other}` },
      })),
    );
    return { type: "FeatureCollection", features };
  }

  #eventCollection(): EventCollection {
    const now_ms = Date.now();
    const { number, started_ms, updates, messages, ended_ms } = this.#event;
    const [lon, lat] = lonLat(eventPlace(updates));
    const properties: EventProperties = {
      state: ended_ms === undefined ? "active" : "cancelled", originating_station_id: 1001, sequence_number: number, station_id: 1001, security: updates === 0 ? "unverified" : "unsecured",
      cause: 94, sub_cause: 2, cause_text: "stationary vehicle", information_quality: 3, awareness_distance_m: updates % 2 === 0 ? 200 : 100, traffic_direction: "all",
      detection_time: time(started_ms), reference_time: time(started_ms + updates), valid_until: time(started_ms + 600_000),
      ...(ended_ms === undefined ? {} : { ended_time: time(ended_ms) }),
      first_received: time(started_ms), last_received: time(now_ms), messages: messages + 1, updates,
      zone: { type: "LineString", coordinates: [[lon, lat], lonLat({ x: eventPlace(updates).x - 30, y: eventPlace(updates).y - 4 })] },
    };
    const features = this.#objects ? [{ type: "Feature" as const, id: `1001-${number}`, geometry: { type: "Point" as const, coordinates: [lon, lat] }, properties }] : [];
    return { type: "FeatureCollection", features, links: [], numberReturned: features.length, timeStamp: time(now_ms) };
  }

  #infrastructure(): InfrastructureCollection {
    const features = this.#objects ? intersection(this.#crossing(Math.floor(ROWS / 2) * COLUMNS + 4), Date.now()) : [];
    return { type: "FeatureCollection", features, links: [], numberReturned: features.length, timeStamp: time(Date.now()) };
  }

  #kpis(): Kpis {
    const total = Object.values(this.#sent).reduce((sum, n) => sum + n, 0);
    const rate = Object.values(this.#second.rates).reduce((sum, n) => sum + n, 0);
    const held = Math.min(total, 120_000);
    const types = Object.keys(this.#sent).map((type) => ({ type, count: this.#sent[type] ?? 0, rate_hz: this.#second.rates[type] ?? 0 }));
    return {
      node: "roadside-fake",
      time: new Date().toISOString(),
      uptime_s: (Date.now() - this.#started_ms) / 1_000,
      cache: {
        messages: held,
        octets: held * 1_130,
        octets_max: 256_000_000,
        stations: this.#vehicles.filter((vehicle) => vehicle.latest["cam"]).length,
        ...(total > 0 ? { oldest: new Date(this.#started_ms).toISOString(), newest: new Date().toISOString() } : {}),
        inserted: total,
        evicted: total - held,
        rejected: {},
        live_clients: this.#listeners.size,
        stations_evicted: 0,
        undecodable: 0,
        events: this.#objects ? 1 : 0,
        infrastructure: this.#objects ? 2 : 0,
        objects_evicted: 0,
        objects_skipped: 0,
      },
      types,
      topics: this.#topics(total, rate),
      hops: total === 0 ? [] : this.#hops(total, rate),
      counters: this.#counters(total, rate),
      figures: this.#figures ? [this.#keyFigures()] : [],
    };
  }

  /** Key figures like those of the case study of mqtt_client. */
  #keyFigures(): FiguresKpi {
    const latency = (mean_ms: number): LatencyKpi => ({ mean_ms, median_ms: mean_ms * 0.98, min_ms: mean_ms * 0.8, max_ms: mean_ms * 1.9, sd_ms: mean_ms * 0.08, p95_ms: mean_ms * 1.15, p99_ms: mean_ms * 1.4 });
    const stages = STAGES.map(([name, mean_ms]) => ({
      name,
      is_communication: name === "vehicle_to_cloud" || name === "cloud_to_vehicle",
      recent_ms: mean_ms * (1 + 0.1 * Math.sin(Date.now() / 7_000 + mean_ms) + 0.15 * (this.#random() - 0.5)),
      latency: latency(mean_ms),
    }));
    const total_ms = STAGES.reduce((sum, [, ms]) => sum + ms, 0);
    return {
      topic: "figures/window",
      of: "objects",
      count: 600,
      window: 600,
      stages,
      total: latency(total_ms),
      total_recent_ms: total_ms,
      total_quantiles_ms: Array.from({ length: 101 }, (_, i) => total_ms * (0.85 + 0.25 * (i / 100) ** 2 + (i === 100 ? 0.3 : 0))),
      communication_ms: 19,
      clock_offset: { offset_ms: -3.21, error_ms: 17.4 },
      loss: { sent: 600, missing: 2, late: 1 },
    };
  }

  #hops(total: number, rate: number): HopKpi[] {
    const hop = (from: string, to: string, median_us: number, spread: number): HopKpi => {
      const wave = 1 + 0.12 * Math.sin(Date.now() / 9_000 + median_us) + 0.1 * (this.#random() - 0.5);
      const p50 = median_us * wave;
      const p99 = p50 * spread * (1 + 0.5 * this.#random() ** 3);
      const max = p99 * (1.3 + 2 * this.#random() ** 4);
      return {
        hop: to, from, to, count: total, rate_hz: rate,
        recent: { count: Math.round(rate), p50_us: p50, p99_us: p99, max_us: max },
        total: { count: total, p50_us: median_us, p99_us: median_us * spread, p999_us: median_us * spread * 2.2, max_us: median_us * spread * 7, mean_us: median_us * 1.1 },
      };
    };
    return [
      hop("reception", "geonet", 6.8, 3.2),
      hop("geonet", "security", 148, 2.1),
      hop("security", "its/rx/cam", 21, 3.6),
      hop("its/rx/cam", "cache", 3.1, 5.5),
      hop("its/rx/cam", "uplink", 1_850, 2.6),
    ];
  }

  #topics(total: number, rate: number): TopicKpi[] {
    const topic = (name: string, type: string, share: number, subscribers: string[], dropped = 0): TopicKpi => ({
      topic: name, type, published: Math.round(total * share), rate_hz: rate * share, dropped,
      subscriptions: subscribers.map((subscriber, i) => ({
        subscriber, delivered: Math.round(total * share), queued: Math.floor(this.#random() * 3), dropped: i === 0 && dropped > 0 ? { queue_full: dropped } : {},
      })),
    });
    const of = (type: string): number => (total === 0 ? 0 : (this.#sent[type] ?? 0) / total);
    return [
      topic("access/rx", "viaduct.AccessFrame", 1.02, ["its_station"]),
      topic("its/rx/cam", "viaduct.its.Cam", of("cam"), ["cache", "uplink"], this.#drops ? Math.floor(total / 400) : 0),
      topic("its/rx/cpm", "viaduct.its.Cpm", of("cpm"), ["cache", "uplink"]),
      topic("its/rx/denm", "viaduct.its.Denm", of("denm"), ["cache", "uplink"]),
      topic("its/tx/spatem", "viaduct.its.Spatem", 0, ["its_station"]),
      topic("pose", "foxglove.LocationFix", 0.05, ["its_station"]),
    ];
  }

  #counters(total: number, rate: number): CounterKpi[] {
    const counters: CounterKpi[] = [{ component: "its_station", name: "received", value: total, rate_hz: rate }];
    if (!this.#drops || total === 0) return counters;
    return [
      ...counters,
      { component: "its_station", name: "dropped", reason: "duplicate", value: Math.floor(total / 55), rate_hz: rate / 55 },
      { component: "its_station", name: "dropped", reason: "own_packet", value: Math.floor(total / 80), rate_hz: rate / 80 },
      { component: "its_station", name: "denms_ignored", reason: "denm_repeated", value: this.#event.messages, rate_hz: 1 },
      { component: "its_station", name: "dropped", reason: "certificate_unknown", value: 3, rate_hz: 0 },
      { component: "its_station", name: "dropped", reason: "malformed_header", value: 1, rate_hz: 0 },
    ];
  }

  #step(): void {
    const now_ms = Date.now();
    const elapsed_ms = Math.min(500, now_ms - this.#last_ms);
    this.#last_ms = now_ms;
    for (const vehicle of this.#vehicles) {
      if (vehicle.type !== ROADSIDE_UNIT) this.#drive(vehicle, elapsed_ms);
      this.#speak(vehicle, now_ms);
    }
    if (now_ms - this.#second.at_ms >= 1_000) {
      this.#repeatEvent();
      const scale = 1_000 / (now_ms - this.#second.at_ms);
      const rates = Object.fromEntries(Object.entries(this.#second.counts).map(([type, n]) => [type, n * scale]));
      this.#second = { at_ms: now_ms, counts: {}, rates };
    }
  }

  #drive(vehicle: Vehicle, elapsed_ms: number): void {
    if (vehicle.wait_ms > 0) vehicle.wait_ms -= elapsed_ms;
    const from = this.#crossing(vehicle.from);
    const to = this.#crossing(vehicle.to);
    const length_m = Math.hypot(to.x - from.x, to.y - from.y);
    const left_m = length_m - vehicle.along_m;
    const wanted = vehicle.wait_ms > 0 ? 0 : Math.min(vehicle.cruise_mps, 4 + left_m * 0.22, 4 + vehicle.along_m * 0.3);
    const change = wanted - vehicle.speed_mps;
    vehicle.speed_mps += Math.sign(change) * Math.min(Math.abs(change), (2.6 * elapsed_ms) / 1_000);
    vehicle.along_m += (vehicle.speed_mps * elapsed_ms) / 1_000;
    if (vehicle.along_m >= length_m) this.#turn(vehicle, length_m);
    const a = this.#crossing(vehicle.from);
    const b = this.#crossing(vehicle.to);
    const bearing = Math.atan2(b.x - a.x, b.y - a.y);
    const length = Math.hypot(b.x - a.x, b.y - a.y);
    // On the right-hand lane.
    vehicle.x = a.x + ((b.x - a.x) * vehicle.along_m) / length + 3 * Math.cos(bearing);
    vehicle.y = a.y + ((b.y - a.y) * vehicle.along_m) / length - 3 * Math.sin(bearing);
    const wantedDeg = (bearing * 180) / Math.PI;
    const turn = ((((wantedDeg - vehicle.heading_deg) % 360) + 540) % 360) - 180;
    vehicle.heading_deg = (vehicle.heading_deg + turn * Math.min(1, elapsed_ms / 220) + 360) % 360;
  }

  #turn(vehicle: Vehicle, length_m: number): void {
    const choices = this.#crossing(vehicle.to).next.filter((next) => next !== vehicle.from);
    const next = choices[Math.floor(this.#random() * choices.length)] ?? vehicle.from;
    vehicle.along_m -= length_m;
    vehicle.from = vehicle.to;
    vehicle.to = next;
    if (this.#random() < 0.22) vehicle.wait_ms = 2_000 + 6_000 * this.#random();
  }

  /** Repeats the DENM of the event once a second. */
  #repeatEvent(): void {
    if (!this.#objects) return;
    this.#event.messages += 1;
    this.#sendDenm();
  }

  /** Sends the DENM with the position of the event, which is not that of its sender. */
  #sendDenm(): void {
    const sender = this.#vehicles[0];
    if (sender) this.#send(sender, "denm", this.#denm(sender, Date.now()), eventPlace(this.#event.updates));
  }

  /** EN 302 637-2, 6.1.3: after 4 m, 4 degrees or 1 s, and never sooner than 100 ms. */
  #speak(vehicle: Vehicle, now_ms: number): void {
    const { sent } = vehicle;
    const since_ms = now_ms - sent.at_ms;
    const moved = Math.hypot(vehicle.x - sent.x, vehicle.y - sent.y) > 4 || Math.abs(vehicle.heading_deg - sent.heading_deg) > 4;
    if (since_ms >= 1_000 || (since_ms >= 100 && moved)) {
      vehicle.sent = { at_ms: now_ms, x: vehicle.x, y: vehicle.y, heading_deg: vehicle.heading_deg };
      this.#send(vehicle, "cam", this.#cam(vehicle, now_ms));
    }
    if (vehicle.id % 4 === 1 && now_ms - vehicle.sentCpm_ms >= 500) {
      vehicle.sentCpm_ms = now_ms;
      this.#send(vehicle, "cpm", this.#cpm(vehicle, now_ms));
    }
  }

  #send(vehicle: Vehicle, type: string, message: unknown, place: Point = vehicle): void {
    const now_ms = Date.now();
    const properties: MessageProperties = {
      direction: "received", type, edition: type === "cam" ? "1.4.1" : "2.1.1", station_id: vehicle.id, station_type: vehicle.type,
      link_address: `02-00-00-00-${hex(vehicle.id >> 8)}-${hex(vehicle.id)}`, geonet_address: `14-00-02-00-00-00-${hex(vehicle.id >> 8)}-${hex(vehicle.id)}`,
      receiver: "its_station", access: "itsg5", security: "unsecured", ...(vehicle.id % 3 === 0 ? { security: "unverified", signer_digest: "0d3a1d0ddf3f5b7d" } : {}),
      reception_time: new Date(now_ms).toISOString().replace("Z", "213Z"), generation_time: new Date(now_ms - 4 - Math.floor(this.#random() * 9)).toISOString().replace("Z", "000Z"),
      heading_deg: vehicle.heading_deg, speed_mps: vehicle.speed_mps, message,
    };
    vehicle.counts[type] = (vehicle.counts[type] ?? 0) + 1;
    vehicle.latest[type] = properties;
    this.#sent[type] = (this.#sent[type] ?? 0) + 1;
    this.#second.counts[type] = (this.#second.counts[type] ?? 0) + 1;
    this.#sequence += 1;
    const event = `id: ${this.#started_ms.toString(16)}-${this.#sequence}\nevent: message\ndata: ${JSON.stringify(this.#feature(vehicle, properties, place))}\n\n`;
    for (const { response, types, station } of this.#listeners) {
      if ((types && !types.has(type)) || (station !== undefined && station !== vehicle.id)) continue;
      response.write(event);
    }
  }

  /** Returns the feature as in the live stream, without the message. */
  #feature(vehicle: Vehicle, { message: _, ...properties }: MessageProperties, place: Point = vehicle): MessageFeature {
    return { type: "Feature", id: this.#sequence, geometry: { type: "Point", coordinates: [...lonLat(place), 173.4] }, properties };
  }

  #cam(vehicle: Vehicle, now_ms: number): unknown {
    return {
      header: { protocolVersion: 2, messageId: 2, stationId: vehicle.id },
      cam: {
        generationDeltaTime: (now_ms - ITS_EPOCH_MS) % 65_536,
        camParameters: {
          basicContainer: { stationType: vehicle.type, referencePosition: { ...place(vehicle), positionConfidenceEllipse: { semiMajorAxisLength: 140, semiMinorAxisLength: 90, semiMajorAxisOrientation: 0 } } },
          highFrequencyContainer: {
            basicVehicleContainerHighFrequency: {
              heading: { headingValue: Math.round(vehicle.heading_deg * 10), headingConfidence: 10 },
              speed: { speedValue: Math.round(vehicle.speed_mps * 100), speedConfidence: 5 },
              driveDirection: "forward",
              vehicleLength: { vehicleLengthValue: vehicle.type === BUS ? 120 : 42, vehicleLengthConfidenceIndication: "noTrailerPresent" },
              vehicleWidth: vehicle.type === BUS ? 25 : 18,
              longitudinalAcceleration: { value: vehicle.wait_ms > 0 ? -9 : 3, confidence: 102 },
              curvature: { curvatureValue: 1023, curvatureConfidence: "unavailable" },
              curvatureCalculationMode: "yawRateUsed",
              yawRate: { yawRateValue: 0, yawRateConfidence: "degSec-000-05" },
            },
          },
          lowFrequencyContainer: {
            basicVehicleContainerLowFrequency: {
              vehicleRole: vehicle.type === BUS ? "publicTransport" : "default",
              exteriorLights: "00",
              pathHistory: Array.from({ length: 4 }, (_, i) => ({ pathPosition: { deltaLatitude: -310 - i * 97, deltaLongitude: 122 + i * 41, deltaAltitude: 12_800 }, pathDeltaTime: 50 })),
            },
          },
        },
      },
    };
  }

  #cpm(vehicle: Vehicle, now_ms: number): unknown {
    const near = this.#vehicles.filter((other) => other !== vehicle && Math.hypot(other.x - vehicle.x, other.y - vehicle.y) < 110).slice(0, 24);
    return {
      header: { protocolVersion: 2, messageId: 14, stationId: vehicle.id },
      payload: {
        managementContainer: { referenceTime: now_ms - ITS_EPOCH_MS, referencePosition: referencePosition(vehicle) },
        cpmContainers: [
          { containerId: 1, containerData: { orientationAngle: { value: Math.round(vehicle.heading_deg * 10), confidence: 10 } } },
          {
            containerId: 5,
            containerData: {
              numberOfPerceivedObjects: near.length,
              perceivedObjects: near.map((other) => ({
                objectId: other.id % 65_536,
                measurementDeltaTime: -42,
                position: { xCoordinate: { value: Math.round((other.x - vehicle.x) * 100), confidence: 25 }, yCoordinate: { value: Math.round((other.y - vehicle.y) * 100), confidence: 25 } },
                classification: [{ objectClass: { vehicleSubClass: other.type }, confidence: 87 }],
              })),
            },
          },
        ],
      },
    };
  }

  #denm(vehicle: Vehicle, now_ms: number): unknown {
    return {
      header: { protocolVersion: 2, messageId: 1, stationId: vehicle.id },
      denm: {
        management: { actionId: { originatingStationId: vehicle.id, sequenceNumber: 12 }, detectionTime: now_ms - ITS_EPOCH_MS, referenceTime: now_ms - ITS_EPOCH_MS, eventPosition: referencePosition(vehicle), validityDuration: 60, stationType: vehicle.type },
        situation: { informationQuality: 3, eventType: { ccAndScc: { stationaryVehicle94: 0 } } },
      },
    };
  }

  #makeVehicle(index: number): Vehicle {
    const random = this.#random;
    const from = Math.floor(random() * this.#crossings.length);
    const { x, y, next } = this.#crossing(from);
    const type = index % 20 === 7 ? ROADSIDE_UNIT : index % 11 === 3 ? BUS : index % 13 === 5 ? HEAVY_TRUCK : index % 17 === 9 ? MOTORCYCLE : index % 19 === 4 ? CYCLIST : PASSENGER_CAR;
    const fixed = type === ROADSIDE_UNIT;
    return {
      id: 1001 + index, type, from, to: next[Math.floor(random() * next.length)] ?? from, along_m: random() * 120, x: fixed ? x + 9 : x, y: fixed ? y + 9 : y,
      speed_mps: 0, cruise_mps: fixed ? 0 : type === CYCLIST ? 5 : 8 + 12 * random() + (index % 6 === 0 ? 9 : 0), heading_deg: 0, wait_ms: 0,
      sent: { at_ms: Date.now() - Math.floor(random() * 1_000), x, y, heading_deg: 0 }, sentCpm_ms: Date.now() - Math.floor(random() * 500), counts: {}, latest: {}, firstSeen: new Date().toISOString(),
    };
  }

  #crossing(index: number): Crossing {
    return this.#crossings[index] as Crossing;
  }
}

/** Starts the node, with the built page if its folder is given. Port 0 selects a free port. */
export async function startFakeServer(options: FakeOptions & { port: number; page?: string }): Promise<{ url: string; server: Server; node: FakeNode }> {
  const node = new FakeNode(options);
  const server = createServer((request, response) => {
    if (!node.handle(request, response)) void servePage(options.page, request, response);
  });
  await new Promise<void>((resolve) => server.listen(options.port, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;
  return { url: `http://127.0.0.1:${port}/`, server, node };
}

const MIME: Record<string, string> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

async function servePage(folder: string | undefined, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = normalize(new URL(request.url ?? "/", "http://node").pathname);
  const file = folder === undefined || path.includes("..") ? undefined : await readFile(join(folder, path === "/" ? "index.html" : path)).catch(() => undefined);
  response.writeHead(file ? 200 : 404, { "content-type": MIME[extname(path) || ".html"] ?? "application/octet-stream" });
  response.end(file);
}

/** Returns a grid of streets, slightly irregular, with some missing. */
function streets(random: () => number): Crossing[] {
  const crossings = Array.from({ length: COLUMNS * ROWS }, (_, i): Crossing => {
    const column = (i % COLUMNS) - (COLUMNS - 1) / 2;
    const row = Math.floor(i / COLUMNS) - (ROWS - 1) / 2;
    const bend = 0.06 * column * row;
    return { x: (column + 0.34 * (random() - 0.5) + bend * 0.3) * BLOCK_M, y: (row + 0.34 * (random() - 0.5) + 0.05 * column) * BLOCK_M, next: [] };
  });
  const join = (a: number, b: number): void => {
    crossings[a]?.next.push(b);
    crossings[b]?.next.push(a);
  };
  crossings.forEach((_, i) => {
    const edge = i < COLUMNS || i >= COLUMNS * (ROWS - 1);
    if ((i + 1) % COLUMNS !== 0 && (edge || random() > 0.14)) join(i, i + 1);
    if (i + COLUMNS < crossings.length && (i % COLUMNS === 0 || (i + 1) % COLUMNS === 0 || random() > 0.2)) join(i, i + COLUMNS);
  });
  return crossings;
}

function lonLat({ x, y }: { x: number; y: number }): [number, number] {
  return [CENTRE.lon + x / (METRES_PER_DEGREE * Math.cos((CENTRE.lat * Math.PI) / 180)), CENTRE.lat + y / METRES_PER_DEGREE];
}

/** Returns the position without its confidence ellipse, whose members have other names in a CAM than in a CPM or DENM. */
function place(vehicle: Vehicle): object {
  const [lon, lat] = lonLat(vehicle);
  return { latitude: Math.round(lat * 1e7), longitude: Math.round(lon * 1e7), altitude: { altitudeValue: 17_340, altitudeConfidence: "alt-002-00" } };
}

function referencePosition(vehicle: Vehicle): unknown {
  return { ...place(vehicle), positionConfidenceEllipse: { semiMajorConfidence: 140, semiMinorConfidence: 90, semiMajorOrientation: 0 } };
}

function time(unix_ms: number): string {
  return new Date(unix_ms).toISOString().replace("Z", "000Z");
}

/** Returns the position of the event: each update moves it. */
function eventPlace(updates: number): Point {
  return { x: -260 + 90 * (updates % 3), y: 120 };
}

const SIGNAL_CYCLE: readonly SignalState[] = ["stop_and_remain", "pre_movement", "protected_movement_allowed", "protected_clearance"];

/** Returns an intersection of four arms with signals, and a speed limit with its zone. */
function intersection(centre: Point, now_ms: number): InfrastructureFeature[] {
  const common = { station_id: 1008, security: "unsecured", last_received: time(now_ms) };
  const mapem = { ...common, type: "mapem", region: 49, intersection: 12 };
  const name = "intersection-49-12";
  const features: InfrastructureFeature[] = [
    { type: "Feature", id: name, geometry: { type: "Point", coordinates: lonLat(centre) }, properties: { ...mapem, kind: "intersection", name: "Fake Street" } },
  ];
  for (let arm = 0; arm < 4; arm += 1) {
    const place = (along: number, right: number): [number, number] => {
      const angle = (arm * Math.PI) / 2;
      return lonLat({ x: centre.x + along * Math.sin(angle) + right * Math.cos(angle), y: centre.y + along * Math.cos(angle) - right * Math.sin(angle) });
    };
    const state = SIGNAL_CYCLE[(Math.floor(now_ms / 4_000) + (arm % 2) * 2) % 4] as SignalState;
    const line = (coordinates: [number, number][]): InfrastructureFeature["geometry"] => ({ type: "LineString", coordinates });
    const lane = 2 * arm + 1;
    // Traffic on the right: seen outwards, the ingress lane is on the left.
    features.push(
      { type: "Feature", id: `${name}-lane-${lane}`, geometry: line([place(14, -2), place(75, -2)]), properties: { ...mapem, kind: "lane", lane, lane_type: "vehicle", direction: "ingress", width_m: 3.5 } },
      { type: "Feature", id: `${name}-lane-${lane + 1}`, geometry: line([place(14, 2), place(75, 2)]), properties: { ...mapem, kind: "lane", lane: lane + 1, lane_type: "vehicle", direction: "egress", width_m: 3.5 } },
      { type: "Feature", id: `${name}-stop-${lane}-0`, geometry: line([place(14, -3.75), place(14, -0.25)]), properties: { ...mapem, kind: "stop_line", lane, signal_group: (arm % 2) + 1, signal_state: state } },
      { type: "Feature", id: `${name}-connection-${lane}-${arm}`, geometry: line([place(14, -2), place(-14, -2)]), properties: { ...mapem, kind: "connection", lane, to_lane: ((arm + 2) % 4) * 2 + 2, signal_group: (arm % 2) + 1, signal_state: state } },
    );
  }
  const ivim = { ...common, type: "ivim", information: 5, signs: [{ catalogue: "iso_14823", code: "regulatory 557", value: "30 km/h" }], texts: ["School"] };
  const at = (x: number, y: number): [number, number] => lonLat({ x: centre.x + x, y: centre.y + y });
  features.push(
    { type: "Feature", id: "information-1008-5", geometry: { type: "Point", coordinates: at(40, 30) }, properties: { ...ivim, kind: "sign" } },
    { type: "Feature", id: "information-1008-5-zone-0", geometry: { type: "Polygon", coordinates: [[at(25, -12), at(110, -12), at(110, 12), at(25, 12), at(25, -12)]] }, properties: { ...ivim, kind: "zone", zone: 1, roles: ["relevance"] } },
  );
  return features;
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": status === 200 ? "application/json" : "application/problem+json" });
  response.end(JSON.stringify(body));
}

function hex(value: number): string {
  return (value & 0xff).toString(16).padStart(2, "0");
}

/** Returns a random generator (mulberry32): small, seeded, good enough to place cars. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
