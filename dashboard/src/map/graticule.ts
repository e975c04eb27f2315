// Lines of latitude and longitude, for a view without roads.

import { GRATICULE_MIN_PX } from "../limits";
import { toLonLat, toMercator } from "../state/motion";
import type { View } from "./view";

export interface GraticuleLine {
  /** Pixels from the left edge (meridian) or the upper edge (parallel). */
  at_px: number;
  label: string;
}

export interface Graticule {
  meridians: GraticuleLine[];
  parallels: GraticuleLine[];
}

const LABEL_FONT = '10.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace';
const LINE = "#1d2733";
const LABEL = "#8a97aa";
/** Room at the upper edge left of the first meridian's label, and at the left edge above the first parallel's: the map's buttons. */
const TOOLS_PX = { width: 60, height: 125 };

/** Returns the lines in the view: multiples of 1, 2 or 5 times a power of ten degrees, at least GRATICULE_MIN_PX apart. */
export function graticule(view: View): Graticule {
  const [west, north] = toLonLat({ x: -view.shiftX / view.scale, y: -view.shiftY / view.scale });
  const [east, south] = toLonLat({ x: (view.width - view.shiftX) / view.scale, y: (view.height - view.shiftY) / view.scale });
  const step = niceStep((360 / view.scale) * GRATICULE_MIN_PX);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const meridians = multiples(Math.max(west, -180), Math.min(east, 180), step).map((lon) => ({
    at_px: toMercator(lon, 0).x * view.scale + view.shiftX,
    label: degrees(lon, decimals, "E", "W"),
  }));
  const parallels = multiples(Math.max(south, -85), Math.min(north, 85), step).map((lat) => ({
    at_px: toMercator(0, lat).y * view.scale + view.shiftY,
    label: degrees(lat, decimals, "N", "S"),
  }));
  return { meridians, parallels };
}

export function drawGraticule(c: CanvasRenderingContext2D, view: View): void {
  const { meridians, parallels } = graticule(view);
  c.strokeStyle = LINE;
  c.lineWidth = 1;
  c.beginPath();
  for (const { at_px } of meridians) {
    c.moveTo(Math.round(at_px) + 0.5, 0);
    c.lineTo(Math.round(at_px) + 0.5, view.height);
  }
  for (const { at_px } of parallels) {
    c.moveTo(0, Math.round(at_px) + 0.5);
    c.lineTo(view.width, Math.round(at_px) + 0.5);
  }
  c.stroke();
  c.font = LABEL_FONT;
  c.fillStyle = LABEL;
  c.textBaseline = "top";
  for (const { at_px, label } of meridians) if (at_px > TOOLS_PX.width) c.fillText(label, at_px + 4, 4);
  c.textBaseline = "bottom";
  for (const { at_px, label } of parallels) if (at_px > TOOLS_PX.height) c.fillText(label, 6, at_px - 2);
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10);
}

function multiples(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.min(200, Math.floor(to / step) - first + 1));
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

function degrees(value: number, decimals: number, positive: string, negative: string): string {
  const text = Math.abs(value).toFixed(decimals);
  return Number(text) === 0 ? "0°" : `${text}° ${value < 0 ? negative : positive}`;
}
