// Draws stations: trails, arrows, the selected one and its perceived objects. Each frame draws everything, because five hundred
// arrows are cheaper to draw than to compare.

import { TRAIL_POINTS } from "../limits";
import { kindBand, ROADSIDE_UNIT, speedBand, UNVERIFIED, withAlpha } from "../palette";
import { drawnAt } from "../state/motion";
import { freshness, type Station, type Stations } from "../state/stations";
import { isUnverified, UNVERIFIED_DASH, type View } from "./view";

export type Colouring = "speed" | "kind";

export interface PerceivedObject {
  /** Metres east and north of the station that perceives the object. */
  east_m: number;
  north_m: number;
}

interface Drawn {
  id: number;
  x: number;
  y: number;
}

const ARROW = new Path2D("M0 -9 L5.6 7 L0 4 L-5.6 7 Z");
const DIAMOND = new Path2D("M0 -6.5 L6.5 0 L0 6.5 L-6.5 0 Z");
const GROUND = "#0b0f15";
const PICK_PX = 16;
const TRAIL_PIECE = Math.ceil(TRAIL_POINTS / 3);
const LABEL_FONT = '600 11px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace';

export class Traffic {
  colouring: Colouring = "speed";
  selected: number | undefined;
  hovered: number | undefined;
  objects: readonly PerceivedObject[] = [];
  /** `false` with prefers-reduced-motion: vehicles are then drawn at their last reported positions. */
  smooth = true;
  #drawn: Drawn[] = [];
  readonly #trails = new Map<string, Path2D>();

  get size(): number {
    return this.#drawn.length;
  }

  draw(c: CanvasRenderingContext2D, ratio: number, stations: Stations, view: View, now_ms: number): void {
    this.#drawn = [];
    const size = Math.min(1.35, Math.max(0.55, (view.zoom - 9) / 5.5));
    let selected: { station: Station; x: number; y: number } | undefined;
    const visible: { station: Station; x: number; y: number; heading: number | undefined; colour: string; alpha: number }[] = [];
    for (const station of stations.all()) {
      const at = this.smooth ? drawnAt(station.motion, now_ms) : station.motion;
      const x = at.x * view.scale + view.shiftX;
      const y = at.y * view.scale + view.shiftY;
      if (x < -200 || y < -200 || x > view.width + 200 || y > view.height + 200) continue;
      const alpha = freshness(station.heard_ms, now_ms);
      const colour = this.#colour(station);
      visible.push({ station, x, y, heading: at.heading_deg, colour, alpha });
      this.#drawn.push({ id: station.id, x, y });
      if (station.id === this.selected) selected = { station, x, y };
    }
    for (const { station, x, y, colour, alpha } of visible) this.#trail(station, view, x, y, colour, alpha);
    this.#strokeTrails(c);
    if (selected) this.#objects(c, selected.x, selected.y, view);
    for (const { station, x, y, heading, colour, alpha } of visible) {
      c.setTransform(ratio * size, 0, 0, ratio * size, x * ratio, y * ratio);
      c.globalAlpha = alpha;
      c.fillStyle = colour;
      c.strokeStyle = GROUND;
      c.lineWidth = 1.6;
      const isDiamond = station.motion.heading_deg === undefined || isFixed(station);
      if (!isDiamond) c.rotate(((heading ?? 0) * Math.PI) / 180);
      drawSymbol(c, isDiamond ? DIAMOND : ARROW, isUnverified(station.properties));
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.globalAlpha = 1;
    if (selected) this.#ring(c, selected.x, selected.y, "#ffffff", `${selected.station.id}`);
    const hovered = this.#drawn.find(({ id }) => id === this.hovered && id !== this.selected);
    if (hovered) this.#ring(c, hovered.x, hovered.y, "#ffffff90", `${hovered.id}`);
  }

  /** Returns the station drawn nearest to a point of the canvas, within reach of a finger. */
  pick(x: number, y: number): number | undefined {
    let best: number | undefined;
    let reach = PICK_PX;
    for (const drawn of this.#drawn) {
      const distance = Math.hypot(drawn.x - x, drawn.y - y);
      if (distance < reach) {
        reach = distance;
        best = drawn.id;
      }
    }
    return best;
  }

  whereDrawn(id: number): { x: number; y: number } | undefined {
    const drawn = this.#drawn.find((one) => one.id === id);
    return drawn && { x: drawn.x, y: drawn.y };
  }

  #colour(station: Station): string {
    if (this.colouring === "kind" || isFixed(station)) return kindBand(station.properties.station_type).colour;
    return speedBand(station.properties.speed_mps).colour;
  }

  /** Collects the trail from the vehicle back to the oldest point, in three parts of decreasing opacity. */
  #trail({ trail }: Station, view: View, x: number, y: number, colour: string, alpha: number): void {
    if (trail.length < 2) return;
    for (let part = 0; part * TRAIL_PIECE < trail.length; part += 1) {
      const newest = trail.length - 1 - part * TRAIL_PIECE;
      const path = this.#ink(colour, alpha * (0.5 - part * 0.18));
      if (part === 0) path.moveTo(x, y);
      for (let i = part === 0 ? newest - 1 : newest; i >= Math.max(0, newest - TRAIL_PIECE); i -= 1) {
        const offset = trail.offset(i);
        const px = (trail.points[offset] ?? 0) * view.scale + view.shiftX;
        const py = (trail.points[offset + 1] ?? 0) * view.scale + view.shiftY;
        if (part > 0 && i === newest) path.moveTo(px, py);
        else path.lineTo(px, py);
      }
    }
  }

  /** Returns the path that collects all lines of one colour and about one opacity: tens of strokes per frame instead of thousands. */
  #ink(colour: string, alpha: number): Path2D {
    const ink = withAlpha(colour, Math.ceil(alpha * 12) / 12);
    let path = this.#trails.get(ink);
    if (!path) {
      path = new Path2D();
      this.#trails.set(ink, path);
    }
    return path;
  }

  #strokeTrails(c: CanvasRenderingContext2D): void {
    c.lineWidth = 1.6;
    c.lineJoin = "bevel";
    for (const [ink, path] of this.#trails) {
      c.strokeStyle = ink;
      c.stroke(path);
    }
    this.#trails.clear();
  }

  #objects(c: CanvasRenderingContext2D, x: number, y: number, view: View): void {
    c.strokeStyle = "#ffffffb0";
    c.fillStyle = "#ffffff28";
    c.lineWidth = 1;
    for (const { east_m, north_m } of this.objects) {
      const px = x + east_m * view.pixelsPerMetre;
      const py = y - north_m * view.pixelsPerMetre;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(px, py);
      c.globalAlpha = 0.18;
      c.stroke();
      c.globalAlpha = 1;
      c.beginPath();
      c.rect(px - 4, py - 4, 8, 8);
      c.fill();
      c.stroke();
    }
  }

  #ring(c: CanvasRenderingContext2D, x: number, y: number, colour: string, label: string): void {
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.beginPath();
    c.arc(x, y, 15, 0, 2 * Math.PI);
    c.stroke();
    c.font = LABEL_FONT;
    c.textBaseline = "middle";
    const width = c.measureText(label).width;
    c.fillStyle = withAlpha(GROUND, 0.85);
    c.beginPath();
    c.roundRect(x + 19, y - 9, width + 10, 18, 3);
    c.fill();
    c.fillStyle = colour;
    c.fillText(label, x + 24, y + 0.5);
  }
}

/** Draws a symbol; that of a station whose newest message is unverified has a dashed outline. */
function drawSymbol(c: CanvasRenderingContext2D, symbol: Path2D, unverified: boolean): void {
  c.stroke(symbol);
  c.fill(symbol);
  if (!unverified) return;
  c.setLineDash(UNVERIFIED_DASH);
  c.strokeStyle = UNVERIFIED;
  c.stroke(symbol);
  c.setLineDash([]);
}

function isFixed(station: Station): boolean {
  return station.properties.station_type === ROADSIDE_UNIT;
}
