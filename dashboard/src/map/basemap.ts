// The base map: a dark plane with the roads of GET /v1/map. No tiles, no glyphs, no requests to other servers.

import { LngLatBounds, Map as MapLibre, setWorkerUrl, type GeoJSONSource, type StyleSpecification } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import type { RoadMap } from "../api";

const STYLE: StyleSpecification = {
  version: 8,
  sources: { roads: { type: "geojson", data: { type: "FeatureCollection", features: [] } } },
  layers: [
    { id: "ground", type: "background", paint: { "background-color": "#0b0f15" } },
    road("roads-edge", "#303d4e", 1.5),
    road("roads", "#1c2531", 0),
  ],
};

export function createBasemap(container: HTMLElement): MapLibre {
  setWorkerUrl(workerUrl);
  const map = new MapLibre({
    container,
    style: STYLE,
    center: [8, 49],
    zoom: 4,
    maxZoom: 20,
    maxPitch: 0,
    dragRotate: false,
    pitchWithRotate: false,
    renderWorldCopies: false,
    attributionControl: false,
    fadeDuration: 0,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  return map;
}

export function showRoads(map: MapLibre, roads: RoadMap): void {
  const source = map.getSource<GeoJSONSource>("roads");
  if (source) void source.setData(roads);
  else void map.once("load", () => showRoads(map, roads));
}

export function boundsOf(points: Iterable<readonly [number, number]>): LngLatBounds | undefined {
  let bounds: LngLatBounds | undefined;
  for (const [lon, lat] of points) {
    bounds ??= new LngLatBounds([lon, lat, lon, lat]);
    bounds.extend([lon, lat]);
  }
  return bounds;
}

export function* pointsOf(roads: RoadMap): Generator<readonly [number, number]> {
  for (const { geometry } of roads.features) {
    const lines = geometry.type === "LineString" ? [geometry.coordinates] : geometry.coordinates;
    for (const [lon, lat] of lines.flat()) if (lon !== undefined && lat !== undefined) yield [lon, lat];
  }
}

function road(id: string, colour: string, edge_px: number): StyleSpecification["layers"][number] {
  return {
    id,
    type: "line",
    source: "roads",
    layout: { "line-cap": "round", "line-join": "round" },
    paint: {
      "line-color": colour,
      "line-width": ["interpolate", ["exponential", 1.6], ["zoom"], 10, 0.8 + edge_px, 14, 4 + edge_px, 17, 14 + edge_px * 1.4, 20, 70 + edge_px * 2],
    },
  };
}
