// Draws lanes, stop lines and connections with their signals, and road signs with their zones.

import type { Geometry, InfrastructureCollection, InfrastructureFeature } from "../api";
import { INFRASTRUCTURE_MAX } from "../limits";
import { SIGNAL_COLOURS, SIGNAL_UNKNOWN, withAlpha } from "../palette";
import { type Mercator, toMercator } from "../state/motion";
import { isUnverified, UNVERIFIED_DASH, type View } from "./view";

interface Shape {
  kind: InfrastructureFeature["properties"]["kind"];
  properties: InfrastructureFeature["properties"];
  lines: Mercator[][];
}

/** Zoom from which lanes are drawn; below it an intersection is a point. */
const LANES_ZOOM = 14;
/** Dashes of a lane, which is wider than an outline. */
const UNVERIFIED_LANE_DASH = [10, 14];
const LANE = "#44566e";
const LANE_OTHER = "#3a4250";
const ZONE = "#b79cff";
const SIGN_FONT = '700 10px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const TEXT_FONT = '600 11px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const ORDER: readonly Shape["kind"][] = ["zone", "lane", "connection", "stop_line", "intersection", "sign"];

export class InfrastructureLayer {
  #shapes: readonly Shape[] = [];

  get size(): number {
    return this.#shapes.length;
  }

  /** Returns the positions of all features, for the bounds of the map. */
  *points(): Generator<readonly [number, number]> {
    for (const { lines } of this.#shapes) {
      for (const { x, y } of lines.flat()) yield [x, y];
    }
  }

  /** Returns the number of features of each kind. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { kind } of this.#shapes) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }

  /** Returns the states of the stop lines, in the order of the answer. */
  signals(): string[] {
    return this.#shapes.filter(({ kind }) => kind === "stop_line").map(({ properties }) => properties.signal_state ?? "unknown");
  }

  update(collection: InfrastructureCollection): void {
    const shapes = collection.features.slice(0, INFRASTRUCTURE_MAX).map(({ geometry, properties }) => ({ kind: properties.kind, properties, lines: linesOf(geometry) }));
    this.#shapes = shapes.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  }

  draw(c: CanvasRenderingContext2D, view: View): void {
    c.lineCap = "round";
    c.lineJoin = "round";
    for (const shape of this.#shapes) this.#drawShape(c, view, shape);
    c.lineCap = "butt";
    c.setLineDash([]);
  }

  #drawShape(c: CanvasRenderingContext2D, view: View, { kind, properties, lines }: Shape): void {
    const detailed = view.zoom >= LANES_ZOOM;
    if (kind === "zone") return drawZone(c, view, properties, lines);
    if (kind === "sign") return drawSign(c, view, properties, lines);
    if (kind === "intersection") return drawPoint(c, view, lines, detailed);
    if (!detailed) return;
    const colour = properties.signal_state === undefined ? SIGNAL_UNKNOWN : SIGNAL_COLOURS[properties.signal_state];
    if (kind === "lane") {
      const vehicles = properties.lane_type === "vehicle" || properties.lane_type === "tracked_vehicle";
      c.setLineDash(properties.lane_type === "crosswalk" ? [3, 3] : isUnverified(properties) ? UNVERIFIED_LANE_DASH : []);
      stroke(c, view, lines, vehicles ? LANE : LANE_OTHER, Math.min(12, Math.max(1.5, (properties.width_m ?? 3) * 0.5 * view.pixelsPerMetre)));
      c.setLineDash([]);
    } else if (kind === "connection") {
      stroke(c, view, lines, withAlpha(colour, properties.signal_state === undefined ? 0.25 : 0.6), 1.5);
    } else {
      stroke(c, view, lines, "#0b0f15", 7);
      c.lineCap = isUnverified(properties) ? "butt" : "round";
      c.setLineDash(isUnverified(properties) ? UNVERIFIED_DASH : []);
      stroke(c, view, lines, colour, 4);
      c.setLineDash([]);
      c.lineCap = "round";
    }
  }
}

function drawZone(c: CanvasRenderingContext2D, view: View, properties: Shape["properties"], lines: Mercator[][]): void {
  trace(c, view, lines);
  const area = lines.some((line) => line.length > 3 && same(line[0], line.at(-1)));
  if (area) {
    c.fillStyle = withAlpha(ZONE, 0.12);
    c.fill();
  }
  // A relevance zone is solid; a detection or awareness zone is dashed. An unverified zone has short dashes.
  c.setLineDash(isUnverified(properties) ? UNVERIFIED_DASH : properties.roles?.includes("relevance") ? [] : [6, 5]);
  c.strokeStyle = withAlpha(ZONE, 0.85);
  c.lineWidth = area ? 1.5 : 4;
  c.stroke();
  c.setLineDash([]);
}

/** Draws a round sign with its number, and its texts beside it. */
function drawSign(c: CanvasRenderingContext2D, view: View, properties: Shape["properties"], lines: Mercator[][]): void {
  const at = lines[0]?.[0];
  if (!at) return;
  const x = at.x * view.scale + view.shiftX;
  const y = at.y * view.scale + view.shiftY;
  const value = properties.signs?.find((sign) => sign.value !== undefined)?.value;
  const number = value?.split(" ")[0] ?? "i";
  c.beginPath();
  c.arc(x, y, 10, 0, 2 * Math.PI);
  c.fillStyle = "#f4f6f8";
  c.fill();
  c.strokeStyle = value === undefined ? "#3d6fd8" : "#d7263d";
  c.lineWidth = 3;
  c.setLineDash(isUnverified(properties) ? UNVERIFIED_DASH : []);
  c.lineCap = "butt";
  c.stroke();
  c.lineCap = "round";
  c.setLineDash([]);
  c.font = SIGN_FONT;
  c.fillStyle = "#10151d";
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(number.slice(0, 3), x, y + 0.5);
  c.textAlign = "left";
  const text = signText(properties);
  if (view.zoom < LANES_ZOOM || text === "") return;
  c.font = TEXT_FONT;
  const width = c.measureText(text).width;
  c.fillStyle = "#0b0f15d9";
  c.beginPath();
  c.roundRect(x + 15, y - 9, width + 10, 18, 3);
  c.fill();
  c.fillStyle = "#dbe3ee";
  c.fillText(text, x + 20, y + 0.5);
}

/** Returns the texts of a sign, else its codes. An unverified sign is marked. */
export function signText(properties: Shape["properties"]): string {
  const texts = properties.texts ?? [];
  const codes = (properties.signs ?? []).map(({ code, value }) => value ?? code.replaceAll("_", " "));
  const text = (texts.length > 0 ? texts : codes).join(", ").slice(0, 60);
  return isUnverified(properties) ? [text, "unverified"].filter((part) => part !== "").join(" · ") : text;
}

function drawPoint(c: CanvasRenderingContext2D, view: View, lines: Mercator[][], detailed: boolean): void {
  const at = lines[0]?.[0];
  if (!at) return;
  c.beginPath();
  c.arc(at.x * view.scale + view.shiftX, at.y * view.scale + view.shiftY, detailed ? 2 : 4, 0, 2 * Math.PI);
  c.fillStyle = LANE;
  c.fill();
}

function stroke(c: CanvasRenderingContext2D, view: View, lines: Mercator[][], colour: string, width: number): void {
  trace(c, view, lines);
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.stroke();
}

function trace(c: CanvasRenderingContext2D, view: View, lines: Mercator[][]): void {
  c.beginPath();
  for (const line of lines) {
    line.forEach(({ x, y }, index) => {
      const px = x * view.scale + view.shiftX;
      const py = y * view.scale + view.shiftY;
      if (index === 0) c.moveTo(px, py);
      else c.lineTo(px, py);
    });
  }
}

function same(a: Mercator | undefined, b: Mercator | undefined): boolean {
  return a?.x === b?.x && a?.y === b?.y;
}

/** Returns the lines of a geometry; a point is a line of one position. */
export function linesOf(geometry: Geometry): Mercator[][] {
  switch (geometry.type) {
    case "Point":
      return [places([geometry.coordinates])];
    case "LineString":
      return [places(geometry.coordinates)];
    default:
      return geometry.coordinates.map(places);
  }
}

function places(coordinates: readonly (readonly number[])[]): Mercator[] {
  return coordinates.map(([lon = 0, lat = 0]) => toMercator(lon, lat));
}
