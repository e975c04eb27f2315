// Joins what comes from the node with what the page shows. State is written when data comes; drawing happens once a frame.

import type { Kpis, MessageCollection, RoadMap } from "./api";
import { byId, setText } from "./dom";
import { duration, rate } from "./format";
import { KPIS_PERIOD_MS, RETRY_MS } from "./limits";
import { StationMap } from "./map/map";
import { Live } from "./net/live";
import { type Poll, poll, untilAnswered } from "./net/poll";
import { LatencyPanel } from "./panels/latency";
import { RatesPanel } from "./panels/rates";
import { StationPanel } from "./panels/station";
import { CachePanel, DropsPanel, TopicsPanel } from "./panels/tables";
import { startSearch } from "./search";
import { latestAges } from "./state/latest";
import { drawnAt, toLonLat } from "./state/motion";
import { Stations } from "./state/stations";
import "./style.css";

const NO_NODE = "No answer from the node.";
const WHAT_TO_DO = "The node does not answer. Is it running, and does its config list a component of the kind api? Asking again every second.";

const stations = new Stations();
const map = new StationMap(stations, select);
const live = new Live({ onMessage: (feature, now_ms) => stations.apply(feature, now_ms), onRestart: fill });
const latency = new LatencyPanel(byId("latency"));
const rates = new RatesPanel(byId("rates"));
const topics = new TopicsPanel(byId("topics"));
const drops = new DropsPanel(byId("drops"));
const cache = new CachePanel(byId("cache"));
const station = new StationPanel(byId("station"), {
  onClose: () => select(undefined),
  onObjects: (objects) => void (map.traffic.objects = objects),
});
const search = startSearch({ select, show: (lon, lat) => map.centreOn(lon, lat), known: (id) => stations.get(id) });

let nodeAnswers: boolean | undefined;
let uptime_s = 0;
let filling: readonly Poll[] = [];

start();

function start(): void {
  if (!map.works) map.notice("The map needs WebGL 2, and this browser does not offer it: turn on hardware acceleration, or use another browser. Everything else works.", "bad");
  fill();
  live.open();
  poll<Kpis>("/v1/kpis", KPIS_PERIOD_MS, takeKpis, loseKpis);
  requestAnimationFrame(frame);
  setInterval(tick, 250);
  window.addEventListener("keydown", onKey);
}

/** What the node knows already, so that the page is not empty until everybody has spoken: at the start, and when the node is back. */
function fill(): void {
  for (const one of filling) one.stop();
  filling = [untilAnswered<MessageCollection>("/v1/latest", RETRY_MS, takeLatest), untilAnswered<RoadMap>("/v1/map", RETRY_MS, (roads) => map.roads(roads))];
}

function takeLatest(latest: MessageCollection): void {
  const now_ms = performance.now();
  for (const { feature, age_ms } of latestAges(latest)) if (!stations.get(feature.properties.station_id)) stations.apply(feature, now_ms - age_ms);
}

function takeKpis(kpis: Kpis): void {
  const time_s = now_s();
  if (nodeAnswers === false || kpis.uptime_s < uptime_s) fill();
  nodeAnswers = true;
  uptime_s = kpis.uptime_s;
  byId("facts").classList.remove("stale");
  latency.update(kpis, time_s);
  rates.update(kpis, time_s);
  topics.update(kpis);
  const drops_hz = drops.update(kpis);
  cache.update(kpis);
  setText(byId("node"), kpis.node);
  setText(byId("uptime"), duration(kpis.uptime_s));
  setText(byId("message-rate"), rate(kpis.types.reduce((sum, { rate_hz }) => sum + rate_hz, 0)));
  setText(byId("drop-rate"), rate(drops_hz));
  byId("drop-rate").dataset["level"] = drops_hz > 0 ? "bad" : "";
  document.title = `${kpis.node} · Viaduct`;
}

function loseKpis(): void {
  nodeAnswers = false;
  byId("facts").classList.add("stale");
  const time_s = now_s();
  latency.error(WHAT_TO_DO, time_s);
  rates.error(NO_NODE, time_s);
  for (const panel of [topics, drops, cache]) panel.error(NO_NODE);
}

function select(id: number | undefined): void {
  if (id === map.traffic.selected) return;
  map.traffic.selected = id;
  map.traffic.objects = [];
  search.clear();
  if (id === undefined) station.close();
  else {
    station.open(id);
    map.uncoverSelected();
  }
}

function frame(now_ms: number): void {
  map.frame(now_ms);
  requestAnimationFrame(frame);
}

/** What changes with time alone; also runs where frames do not, in a hidden tab. */
function tick(): void {
  const now_ms = performance.now();
  stations.expire(now_ms);
  setText(byId("stations-count"), String(stations.size));
  byId("stations-count").title = stations.displaced > 0 ? `${stations.displaced} left the map to make room for others` : "";
  showConnection(now_ms);
  if (!map.works) return;
  if (stations.size > 0 || nodeAnswers === undefined) map.notice("");
  else if (nodeAnswers) map.notice("No station heard in the last ten seconds. A station appears with its first message that has a position.");
  else map.notice(WHAT_TO_DO, "bad");
}

function showConnection(now_ms: number): void {
  const { phase, lastMessage_ms, lost, received, malformed } = live.state;
  const box = byId("connection");
  box.dataset["phase"] = phase;
  setText(byId("connection-text"), phase);
  const age = lastMessage_ms === undefined ? "" : duration((now_ms - lastMessage_ms) / 1_000);
  setText(byId("connection-age"), lost > 0 ? `${age} · ${lost} lost` : age);
  box.title = `Live stream: ${received} messages, the last one ${age || "–"} ago; ${lost} left out because this page was too slow; ${malformed} malformed`;
}

function onKey(event: KeyboardEvent): void {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "Escape") {
    select(undefined);
    if (typing) event.target.blur();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    search.focus();
  } else if (event.key === "f") {
    map.fit();
  }
}

/** Wall clock that never goes back. */
function now_s(): number {
  return (performance.timeOrigin + performance.now()) / 1_000;
}

declare global {
  interface Window {
    /** What the page knows, for tests and the console; changing it changes nothing. */
    viaduct: {
      stations(): { id: number; lon: number; lat: number; heard_ms: number }[];
      /** Pixels from the left upper corner of the map. */
      whereDrawn(id: number): { x: number; y: number } | undefined;
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
  whereDrawn: (id: number) => map.traffic.whereDrawn(id),
  hops: () => structuredClone(latency.hops),
  samples: () => ({ latency: latency.samples, rates: rates.samples }),
  live: () => ({ ...live.state }),
});
