// The map of the page: the base map, the canvas above it, and the controls around it.

import type { Map as MapLibre } from "maplibre-gl";
import type { RoadMap } from "../api";
import { byId, el, setHidden, setText } from "../dom";
import { coordinate } from "../format";
import { KIND_BANDS, SPEED_BANDS } from "../palette";
import type { Selection } from "../state/address";
import type { Events } from "../state/events";
import { toLonLat } from "../state/motion";
import type { Stations } from "../state/stations";
import { boundsOf, createBasemap, pointsOf, showRoads } from "./basemap";
import { MapCanvas } from "./canvas";
import { EventsLayer } from "./events";
import { drawGraticule } from "./graticule";
import { InfrastructureLayer } from "./infrastructure";
import { Roads } from "./roads";
import { type Colouring, Traffic } from "./traffic";
import { scaleBar, type View, viewOf } from "./view";

/** Room between the selected object and its panel. */
const CLEARANCE_PX = 110;
/** Width of the page up to which the panel lies below the map's objects instead of beside them. */
const NARROW_PX = 560;

/** Time in which further objects count as the first ones. */
const FIRST_OBJECTS_MS = 1_500;
/** Height of the panel on a narrow page, as part of the map's height. */
const NARROW_PANEL = 0.62;

export class StationMap {
  readonly traffic = new Traffic();
  readonly events = new EventsLayer();
  readonly infrastructure = new InfrastructureLayer();
  readonly #canvas: MapCanvas;
  readonly #stations: Stations;
  readonly #eventStates: Events;
  readonly #map: MapLibre | undefined;
  readonly #section: HTMLElement;
  readonly #onSelect: (selection: Selection | undefined) => void;
  #size = { width: 1, height: 1 };
  #roads = new Roads();
  #pointerInside = false;
  /** `true` once the first objects or the reader have determined the view. */
  #fitted = false;
  /** Time at which the first object appeared. */
  #found_ms: number | undefined;

  constructor(stations: Stations, events: Events, onSelect: (selection: Selection | undefined) => void) {
    this.#stations = stations;
    this.#eventStates = events;
    this.#onSelect = onSelect;
    this.#section = byId("map").parentElement as HTMLElement;
    this.#canvas = new MapCanvas(byId("traffic") as HTMLCanvasElement);
    this.#map = tryBasemap(byId("map"));
    this.#tools();
    this.#pointer();
    new ResizeObserver(([entry]) => {
      if (entry) this.#size = { width: entry.contentRect.width, height: entry.contentRect.height };
    }).observe(this.#section);
    this.colourBy("speed");
    const reduced = matchMedia("(prefers-reduced-motion: reduce)");
    const follow = (): void => void (this.traffic.smooth = !reduced.matches);
    reduced.addEventListener("change", follow);
    follow();
  }

  get works(): boolean {
    return this.#map !== undefined;
  }

  /** Returns `true` if no road is in view, so that a graticule is drawn. */
  get hasGraticule(): boolean {
    const view = this.#view();
    return view === undefined || !this.#roads.inView(view);
  }

  roads(roads: RoadMap): void {
    if (!this.#map) return;
    this.#roads = new Roads(roads);
    showRoads(this.#map, roads);
    const bounds = boundsOf(pointsOf(roads));
    if (bounds && !this.#fitted && this.#stations.size === 0) this.#map.fitBounds(bounds, { padding: 30, duration: 0 });
  }

  /** Shows all stations and events; if there are none, all infrastructure. */
  fit(duration_ms = 500): void {
    const points = [...this.#stations.all()].map(({ lon, lat }) => [lon, lat] as const);
    for (const { lon, lat } of this.#eventStates.visible(performance.now())) points.push([lon, lat]);
    if (points.length === 0) for (const [x, y] of this.infrastructure.points()) points.push(toLonLat({ x, y }));
    const bounds = boundsOf(points);
    const narrow = this.#size.width <= NARROW_PX;
    const padding = narrow ? { top: 40, bottom: 90, left: 50, right: 24 } : { top: 46, bottom: 62, left: 62, right: 46 };
    if (bounds) this.#map?.fitBounds(bounds, { padding, maxZoom: 17, duration: this.traffic.smooth ? duration_ms : 0 });
  }

  /** Moves a position to the middle of the part of the map that the panel leaves free. */
  centreOn(lon: number, lat: number): void {
    const map = this.#map;
    const duration = this.traffic.smooth ? 500 : 0;
    const { width, height } = this.#covered();
    this.#fitted = true;
    map?.easeTo({ center: [lon, lat], zoom: Math.max(map.getZoom(), 15.5), offset: [-width / 2, -height / 2], duration });
  }

  /** Moves the map as far as necessary for the selected object to be beside its panel. */
  uncoverSelected(): void {
    const at = this.selectedAt();
    if (!at) return;
    const { width, height } = this.#covered();
    const right_px = width > 0 ? at.x - (this.#size.width - width - CLEARANCE_PX) : 0;
    const below_px = height > 0 ? at.y - (this.#size.height - height - CLEARANCE_PX / 2) : 0;
    if (right_px > 0 || below_px > 0) {
      this.#map?.panBy([Math.max(0, right_px), Math.max(0, below_px)], { duration: this.traffic.smooth ? 300 : 0 });
    }
  }

  /** Returns the position of the selected object on the canvas, in pixels. */
  selectedAt(): { x: number; y: number } | undefined {
    if (this.traffic.selected !== undefined) return this.traffic.whereDrawn(this.traffic.selected);
    return this.events.selected === undefined ? undefined : this.events.whereDrawn(this.events.selected);
  }

  colourBy(colouring: Colouring): void {
    this.traffic.colouring = colouring;
    const bands = colouring === "speed" ? SPEED_BANDS : KIND_BANDS;
    byId("legend").replaceChildren(...bands.map(({ label, colour }) => el("li", {}, el("i", { style: `background:${colour}` }), label)));
    for (const button of this.#section.querySelectorAll<HTMLElement>("[data-colouring]")) {
      button.setAttribute("aria-pressed", String(button.dataset["colouring"] === colouring));
    }
  }

  frame(now_ms: number): void {
    const events = this.#eventStates.visible(now_ms);
    const found = this.#stations.size > 0 || events.length > 0 || this.infrastructure.size > 0;
    if (!this.#fitted && found) this.#fitFirst(now_ms);
    const view = this.#view();
    if (!view) return;
    const empty = !found && this.traffic.size === 0 && this.events.size === 0;
    const ratio = this.#canvas.begin(view, empty);
    if (ratio === undefined) return;
    const c = this.#canvas.context;
    if (!this.#roads.inView(view)) drawGraticule(c, view);
    this.infrastructure.draw(c, view);
    this.events.drawAreas(c, view, events);
    this.traffic.draw(c, ratio, this.#stations, view, now_ms);
    this.events.drawSymbols(c, ratio, view, events);
  }

  /** Fits the view to the first objects, and again after a short time, when all requests for the present state are answered. */
  #fitFirst(now_ms: number): void {
    const first = this.#found_ms === undefined;
    this.#found_ms ??= now_ms;
    this.#fitted = now_ms - this.#found_ms > FIRST_OBJECTS_MS || this.selectedAt() !== undefined;
    if (first || this.#fitted) this.fit(0);
    if (this.#fitted) requestAnimationFrame(() => this.uncoverSelected());
  }

  notice(text: string, level = ""): void {
    const notice = byId("map-notice");
    setText(notice, text);
    notice.dataset["level"] = level;
    setHidden(notice, text === "");
  }

  /** Returns the size of the map that the open panel covers: at the right, or at the bottom of a narrow page. */
  #covered(): { width: number; height: number } {
    const panel = [byId("station"), byId("event")].find((one) => !one.hidden);
    if (!panel) return { width: 0, height: 0 };
    // The panel grows to this height while its content loads.
    const height = Math.max(panel.offsetHeight, NARROW_PANEL * this.#size.height);
    return this.#size.width <= NARROW_PX ? { width: 0, height } : { width: panel.offsetWidth, height: 0 };
  }

  #view(): View | undefined {
    const map = this.#map;
    return map && viewOf(map.getCenter(), map.getZoom(), this.#size.width, this.#size.height);
  }

  #tools(): void {
    const zoom = (by: number): void => {
      this.#fitted = true;
      this.#map?.zoomTo(this.#map.getZoom() + by, { duration: this.traffic.smooth ? 300 : 0 });
    };
    byId("zoom-in").addEventListener("click", () => zoom(1));
    byId("zoom-out").addEventListener("click", () => zoom(-1));
    byId("fit").addEventListener("click", () => this.fit());
    for (const button of this.#section.querySelectorAll<HTMLElement>("[data-colouring]")) {
      button.addEventListener("click", () => this.colourBy(button.dataset["colouring"] === "kind" ? "kind" : "speed"));
    }
    const update = (): void => {
      const view = this.#view();
      if (!view) return;
      const { width_px, label } = scaleBar(view.pixelsPerMetre, 110);
      byId("scale").style.width = `${width_px}px`;
      setText(byId("scale"), label);
      this.#showCentre();
    };
    this.#map?.on("move", update);
    update();
  }

  #showCentre(): void {
    if (this.#pointerInside || !this.#map) return;
    const { lat, lng } = this.#map.getCenter();
    setText(byId("coordinates"), `centre ${coordinate(lat, lng)}`);
  }

  #pointer(): void {
    const map = this.#map;
    map?.on("click", ({ point }) => this.#onSelect(this.#pick(point.x, point.y)));
    map?.on("mousemove", ({ point, lngLat }) => {
      const found = this.#pick(point.x, point.y);
      this.traffic.hovered = found?.kind === "station" ? found.id : undefined;
      this.events.hovered = found?.kind === "event" ? found.id : undefined;
      this.#section.classList.toggle("on-station", found !== undefined);
      this.#pointerInside = true;
      setText(byId("coordinates"), coordinate(lngLat.lat, lngLat.lng));
    });
    map?.on("mouseout", () => {
      this.traffic.hovered = undefined;
      this.events.hovered = undefined;
      this.#pointerInside = false;
      this.#showCentre();
    });
    for (const type of ["dragstart", "wheel", "touchstart", "boxzoomstart"] as const) map?.on(type, () => void (this.#fitted = true));
  }

  #pick(x: number, y: number): Selection | undefined {
    const event = this.events.pick(x, y);
    if (event !== undefined) return { kind: "event", id: event };
    const station = this.traffic.pick(x, y);
    return station === undefined ? undefined : { kind: "station", id: station };
  }
}

function tryBasemap(container: HTMLElement): MapLibre | undefined {
  try {
    return createBasemap(container);
  } catch (error) {
    console.warn("the map cannot start", error);
    return undefined;
  }
}
