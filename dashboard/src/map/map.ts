// The map as the page sees it: the ground, the stations above it, the tools around it.

import type { Map as MapLibre } from "maplibre-gl";
import type { RoadMap } from "../api";
import { byId, el, setHidden, setText } from "../dom";
import { coordinate } from "../format";
import { KIND_BANDS, SPEED_BANDS } from "../palette";
import type { Stations } from "../state/stations";
import { boundsOf, createBasemap, pointsOf, showRoads } from "./basemap";
import { type Colouring, Traffic } from "./traffic";
import { scaleBar, type View, viewOf } from "./view";

/** Room kept between the selected station and its panel. */
const CLEARANCE_PX = 110;

export class StationMap {
  readonly traffic: Traffic;
  readonly #stations: Stations;
  readonly #map: MapLibre | undefined;
  readonly #section: HTMLElement;
  readonly #onSelect: (id: number | undefined) => void;
  #size = { width: 1, height: 1 };
  /** The first stations decide where the map looks, unless the reader did. */
  #fitted = false;

  constructor(stations: Stations, onSelect: (id: number | undefined) => void) {
    this.#stations = stations;
    this.#onSelect = onSelect;
    this.#section = byId("map").parentElement as HTMLElement;
    this.traffic = new Traffic(byId("traffic") as HTMLCanvasElement);
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

  roads(roads: RoadMap): void {
    if (!this.#map) return;
    showRoads(this.#map, roads);
    const bounds = boundsOf(pointsOf(roads));
    if (bounds && !this.#fitted && this.#stations.size === 0) this.#map.fitBounds(bounds, { padding: 30, duration: 0 });
  }

  fit(duration_ms = 500): void {
    const bounds = boundsOf([...this.#stations.all()].map(({ lon, lat }) => [lon, lat] as const));
    if (bounds) this.#map?.fitBounds(bounds, { padding: { top: 46, bottom: 62, left: 62, right: 46 }, maxZoom: 17, duration: this.traffic.smooth ? duration_ms : 0 });
  }

  /** Brings a place to the middle of what the station panel leaves free. */
  centreOn(lon: number, lat: number): void {
    const map = this.#map;
    const duration = this.traffic.smooth ? 500 : 0;
    map?.easeTo({ center: [lon, lat], zoom: Math.max(map.getZoom(), 15.5), offset: [-this.#covered_px() / 2, 0], duration });
  }

  /** Moves the map only as far as the selected station needs to come out from under its panel. */
  uncoverSelected(): void {
    const at = this.traffic.selected === undefined ? undefined : this.traffic.whereDrawn(this.traffic.selected);
    if (!at) return;
    const behind_px = at.x - (this.#size.width - this.#covered_px() - CLEARANCE_PX);
    if (behind_px > 0) this.#map?.panBy([behind_px, 0], { duration: this.traffic.smooth ? 300 : 0 });
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
    const view = this.#view();
    if (!view) return;
    if (!this.#fitted && this.#stations.size > 0) {
      this.#fitted = true;
      this.fit(0);
    }
    this.traffic.draw(this.#stations, this.#view() ?? view, now_ms);
  }

  notice(text: string, level = ""): void {
    const notice = byId("map-notice");
    setText(notice, text);
    notice.dataset["level"] = level;
    setHidden(notice, text === "");
  }

  #covered_px(): number {
    return byId("station").offsetWidth;
  }

  #view(): View | undefined {
    const map = this.#map;
    return map && viewOf(map.getCenter(), map.getZoom(), this.#size.width, this.#size.height);
  }

  #tools(): void {
    byId("zoom-in").addEventListener("click", () => this.#map?.zoomIn());
    byId("zoom-out").addEventListener("click", () => this.#map?.zoomOut());
    byId("fit").addEventListener("click", () => this.fit());
    for (const button of this.#section.querySelectorAll<HTMLElement>("[data-colouring]")) {
      button.addEventListener("click", () => this.colourBy(button.dataset["colouring"] === "kind" ? "kind" : "speed"));
    }
    const scale = (): void => {
      const view = this.#view();
      if (!view) return;
      const { width_px, label } = scaleBar(view.pixelsPerMetre, 110);
      byId("scale").style.width = `${width_px}px`;
      setText(byId("scale"), label);
    };
    this.#map?.on("move", scale);
    scale();
  }

  #pointer(): void {
    const map = this.#map;
    map?.on("click", ({ point }) => this.#onSelect(this.traffic.pick(point.x, point.y)));
    map?.on("mousemove", ({ point, lngLat }) => {
      this.traffic.hovered = this.traffic.pick(point.x, point.y);
      this.#section.classList.toggle("on-station", this.traffic.hovered !== undefined);
      setText(byId("coordinates"), coordinate(lngLat.lat, lngLat.lng));
    });
    map?.on("mouseout", () => void (this.traffic.hovered = undefined));
    map?.on("dragstart", () => void (this.#fitted = true));
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
