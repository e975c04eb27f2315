// Connects the node's data with the panels and the map. Data updates the state when it arrives; drawing happens once per frame.

import type { EventCollection, InfrastructureCollection, Kpis, MessageCollection, MessageFeature, RoadMap } from "./api";
import { byId, setText } from "./dom";
import { duration, rate } from "./format";
import { KPIS_PERIOD_MS, OBJECTS_PAUSE_MS, OBJECTS_PERIOD_MS, RETRY_MS } from "./limits";
import { StationMap } from "./map/map";
import { Live } from "./net/live";
import { type HastyPoll, type Poll, poll, untilAnswered } from "./net/poll";
import { EventPanel } from "./panels/event";
import { FiguresPanel } from "./panels/figures";
import { LatencyPanel } from "./panels/latency";
import { RatesPanel } from "./panels/rates";
import { StationPanel } from "./panels/station";
import { CachePanel, DropsPanel, TopicsPanel } from "./panels/tables";
import { startSearch } from "./search";
import { readSelection, type Selection, writeSelection } from "./state/address";
import { Events } from "./state/events";
import { latestAges } from "./state/latest";
import { drawnAt, toLonLat } from "./state/motion";
import { Stations } from "./state/stations";
import "./style.css";

const NO_NODE = "No answer from the node.";
const WHAT_TO_DO = "The node does not answer. Check that it is running and that its config has a component of the kind api. The page retries every second.";

const stations = new Stations();
const events = new Events();
const map = new StationMap(stations, events, select);
const live = new Live({ onMessage: takeMessage, onRestart: fill });
const latency = new LatencyPanel(byId("latency"));
const figures = new FiguresPanel(byId("figures"));
const rates = new RatesPanel(byId("rates"));
const topics = new TopicsPanel(byId("topics"));
const drops = new DropsPanel(byId("drops"));
const cache = new CachePanel(byId("cache"));
const station = new StationPanel(byId("station"), {
  onClose: () => select(undefined),
  onObjects: (objects) => void (map.traffic.objects = objects),
});
const event = new EventPanel(byId("event"), {
  onClose: () => select(undefined),
  onStation: (id) => {
    const known = stations.get(id);
    select({ kind: "station", id });
    if (known) map.centreOn(known.lon, known.lat);
  },
});
const search = startSearch({
  select: (id) => select({ kind: "station", id }),
  show: (lon, lat) => map.centreOn(lon, lat),
  known: (id) => stations.get(id),
});

let nodeAnswers: boolean | undefined;
let uptime_s = 0;
/** `true` after the first answer with events. */
let eventsKnown = false;
let filling: readonly Poll[] = [];
let eventsPoll: HastyPoll | undefined;
let infrastructurePoll: HastyPoll | undefined;

start();

function start(): void {
  if (!map.works) map.notice("The map needs WebGL 2, which this browser does not provide. Turn on hardware acceleration, or use another browser. The rest of the page works.", "bad");
  fill();
  live.open();
  poll<Kpis>("/v1/kpis", KPIS_PERIOD_MS, takeKpis, loseKpis);
  const ignore = (): void => undefined;
  eventsPoll = poll<EventCollection>("/v1/events", OBJECTS_PERIOD_MS, takeEvents, ignore, OBJECTS_PAUSE_MS);
  infrastructurePoll = poll<InfrastructureCollection>("/v1/infrastructure", OBJECTS_PERIOD_MS, (answer) => map.infrastructure.update(answer), ignore, OBJECTS_PAUSE_MS);
  requestAnimationFrame(frame);
  setInterval(tick, 250);
  window.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => select(readSelection(location.hash)));
  select(readSelection(location.hash));
}

/** Requests the present state, at the start and after a restart of the node, so that the page is not empty until all stations have sent. */
function fill(): void {
  for (const one of filling) one.stop();
  filling = [
    untilAnswered<MessageCollection>("/v1/latest", RETRY_MS, takeLatest),
    untilAnswered<RoadMap>("/v1/map", RETRY_MS, (roads) => map.roads(roads)),
  ];
}

function takeMessage(feature: MessageFeature, now_ms: number): void {
  stations.apply(feature, now_ms);
  const { type } = feature.properties;
  if (type === "denm") eventsPoll?.soon();
  else if (type === "mapem" || type === "spatem" || type === "ivim") infrastructurePoll?.soon();
}

function takeLatest(latest: MessageCollection): void {
  const now_ms = performance.now();
  for (const { feature, age_ms } of latestAges(latest)) if (!stations.get(feature.properties.station_id)) stations.apply(feature, now_ms - age_ms);
}

function takeEvents(collection: EventCollection): void {
  events.update(collection, performance.now());
  eventsKnown = true;
  showEvent();
}

/** Updates the panel of the selected event, or closes it if the event is no longer visible. */
function showEvent(): void {
  const id = map.events.selected;
  if (id === undefined || !eventsKnown) return;
  const selected = events.get(id, performance.now());
  if (selected) event.show(selected);
  else select(undefined);
}

function takeKpis(kpis: Kpis): void {
  const time_s = now_s();
  if (nodeAnswers === false || kpis.uptime_s < uptime_s) fill();
  nodeAnswers = true;
  uptime_s = kpis.uptime_s;
  byId("facts").classList.remove("stale");
  latency.update(kpis, time_s);
  figures.update(kpis, time_s);
  rates.update(kpis, time_s);
  topics.update(kpis);
  const { drops_hz, repetitions_hz } = drops.update(kpis);
  cache.update(kpis);
  setText(byId("node"), kpis.node);
  setText(byId("uptime"), duration(kpis.uptime_s));
  setText(byId("message-rate"), rate(kpis.types.reduce((sum, { rate_hz }) => sum + rate_hz, 0)));
  setText(byId("drop-rate"), rate(drops_hz));
  byId("drop-rate").dataset["level"] = drops_hz > 0 ? "bad" : "";
  setText(byId("repetition-rate"), rate(repetitions_hz));
  document.title = `${kpis.node} · Viaduct`;
}

function loseKpis(): void {
  nodeAnswers = false;
  byId("facts").classList.add("stale");
  const time_s = now_s();
  latency.error(WHAT_TO_DO, time_s);
  figures.error(NO_NODE, time_s);
  rates.error(NO_NODE, time_s);
  for (const panel of [topics, drops, cache]) panel.error(NO_NODE);
}

function select(selection: Selection | undefined): void {
  const id = selection?.kind === "station" ? selection.id : undefined;
  const eventId = selection?.kind === "event" ? selection.id : undefined;
  if (id === map.traffic.selected && eventId === map.events.selected) return;
  map.traffic.selected = id;
  map.traffic.objects = [];
  map.events.selected = eventId;
  history.replaceState(null, "", writeSelection(selection) || location.pathname);
  search.clear();
  if (id === undefined) station.close();
  else station.open(id);
  if (eventId === undefined) event.close();
  else showEvent();
  map.uncoverSelected();
}

function frame(now_ms: number): void {
  map.frame(now_ms);
  requestAnimationFrame(frame);
}

/** Updates the parts of the page that depend on time only. Also runs in a hidden tab, in which there are no frames. */
function tick(): void {
  const now_ms = performance.now();
  stations.expire(now_ms);
  showEvent();
  const visible = events.visible(now_ms).filter(({ state }) => state === "active").length;
  setText(byId("stations-count"), String(stations.size));
  setText(byId("events-count"), String(visible));
  byId("stations-count").title = stations.displaced > 0 ? `${stations.displaced} stations removed to make room for others` : "";
  showConnection(now_ms);
  if (!map.works) return;
  const empty = stations.size === 0 && visible === 0 && map.infrastructure.size === 0;
  if (!empty || nodeAnswers === undefined) map.notice("");
  else if (nodeAnswers) map.notice("No station has sent a message in the last ten seconds. A station appears with its first message that has its position.");
  else map.notice(WHAT_TO_DO, "bad");
}

function showConnection(now_ms: number): void {
  const { phase, lastMessage_ms, lost, received, malformed } = live.state;
  const box = byId("connection");
  box.dataset["phase"] = phase;
  setText(byId("connection-text"), phase);
  const age = lastMessage_ms === undefined ? "" : duration((now_ms - lastMessage_ms) / 1_000);
  setText(byId("connection-age"), lost > 0 ? `${age} · ${lost} lost` : age);
  box.title = `Live stream: ${received} messages, the last one ${age || "–"} ago; ${lost} lost because this page was too slow; ${malformed} malformed`;
}

function onKey(pressed: KeyboardEvent): void {
  const typing = pressed.target instanceof HTMLInputElement;
  if (pressed.key === "Escape") {
    select(undefined);
    if (typing) pressed.target.blur();
  } else if (typing || pressed.ctrlKey || pressed.metaKey || pressed.altKey) {
    return;
  } else if (pressed.key === "/") {
    pressed.preventDefault();
    search.focus();
  } else if (pressed.key === "f") {
    map.fit();
  }
}

/** Returns the wall clock in seconds; it never goes back. */
function now_s(): number {
  return (performance.timeOrigin + performance.now()) / 1_000;
}

declare global {
  interface Window {
    /** State of the page for tests and the console. It cannot be changed through this object. */
    viaduct: {
      stations(): { id: number; lon: number; lat: number; heard_ms: number }[];
      events(): { id: string; state: string; lon: number; lat: number; opacity: number }[];
      infrastructure(): { counts: Record<string, number>; signals: string[] };
      /** Pixels from the upper left corner of the map. */
      whereDrawn(id: number): { x: number; y: number } | undefined;
      whereEventDrawn(id: string): { x: number; y: number } | undefined;
      hasGraticule(): boolean;
      hops(): unknown;
      samples(): { latency: number; rates: number };
      live(): unknown;
    };
  }
}

window.viaduct = Object.freeze({
  stations: () =>
    [...stations.all()].map(({ id, motion, heard_ms }) => {
      const [lon, lat] = toLonLat(drawnAt(motion, performance.now()));
      return { id, lon, lat, heard_ms };
    }),
  events: () => events.visible(performance.now()).map(({ id, state, lon, lat, opacity }) => ({ id, state, lon, lat, opacity })),
  infrastructure: () => ({ counts: map.infrastructure.counts(), signals: map.infrastructure.signals() }),
  whereDrawn: (id: number) => map.traffic.whereDrawn(id),
  whereEventDrawn: (id: string) => map.events.whereDrawn(id),
  hasGraticule: () => map.hasGraticule,
  hops: () => structuredClone(latency.hops),
  samples: () => ({ latency: latency.samples, rates: rates.samples }),
  live: () => ({ ...live.state }),
});
