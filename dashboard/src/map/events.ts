// Draws events: the awareness circle, the zone and the approaches below the stations, the symbol and its label above them.

import { EVENT_LABELS_MAX } from "../limits";
import { duration } from "../format";
import { EVENT_COLOURS, withAlpha } from "../palette";
import type { MapEvent } from "../state/events";
import { linesOf } from "./infrastructure";
import { isUnverified, UNVERIFIED_DASH, type View } from "./view";

interface Drawn {
  id: string;
  x: number;
  y: number;
}

const TRIANGLE = new Path2D("M0 -11 L11.5 9 L-11.5 9 Z");
const MARK = new Path2D("M0 -4 L0 3 M0 5.6 L0 6.4");
const CROSS = new Path2D("M-11 -10 L11 10 M11 -10 L-11 10");
const GROUND = "#0b0f15";
const LABEL_FONT = '600 11.5px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const PICK_PX = 18;

export class EventsLayer {
  selected: string | undefined;
  hovered: string | undefined;
  #drawn: Drawn[] = [];

  get size(): number {
    return this.#drawn.length;
  }

  drawAreas(c: CanvasRenderingContext2D, view: View, events: readonly MapEvent[]): void {
    for (const { id, at, properties, state, opacity } of events) {
      const x = at.x * view.scale + view.shiftX;
      const y = at.y * view.scale + view.shiftY;
      const colour = EVENT_COLOURS[state];
      c.globalAlpha = opacity;
      for (const { geometry, width, dash } of [
        { geometry: properties.approaches, width: 2, dash: [2, 5] },
        { geometry: properties.zone, width: 5, dash: [] },
      ]) {
        if (!geometry) continue;
        c.beginPath();
        for (const line of linesOf(geometry)) {
          line.forEach((point, index) => {
            const px = point.x * view.scale + view.shiftX;
            const py = point.y * view.scale + view.shiftY;
            if (index === 0) c.moveTo(px, py);
            else c.lineTo(px, py);
          });
        }
        c.setLineDash(dash);
        c.lineWidth = width;
        c.strokeStyle = withAlpha(colour, 0.7);
        c.stroke();
      }
      if (properties.awareness_distance_m !== undefined) {
        c.beginPath();
        c.arc(x, y, properties.awareness_distance_m * view.pixelsPerMetre, 0, 2 * Math.PI);
        c.fillStyle = withAlpha(colour, id === this.selected ? 0.1 : 0.05);
        c.fill();
        c.setLineDash([7, 6]);
        c.lineWidth = id === this.selected ? 1.8 : 1.2;
        c.strokeStyle = withAlpha(colour, 0.75);
        c.stroke();
      }
      c.setLineDash([]);
      c.globalAlpha = 1;
    }
  }

  drawSymbols(c: CanvasRenderingContext2D, ratio: number, view: View, events: readonly MapEvent[]): void {
    this.#drawn = [];
    for (const event of events) {
      const x = event.at.x * view.scale + view.shiftX;
      const y = event.at.y * view.scale + view.shiftY;
      if (x < -50 || y < -50 || x > view.width + 50 || y > view.height + 50) continue;
      this.#drawn.push({ id: event.id, x, y });
      c.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio);
      c.globalAlpha = event.opacity;
      drawSymbol(c, event);
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      const marked = event.id === this.selected || event.id === this.hovered;
      if (marked || events.length <= EVENT_LABELS_MAX) drawLabel(c, x, y, view.width, labelOf(event), marked);
      c.globalAlpha = 1;
    }
  }

  /** Returns the event drawn nearest to a point of the canvas, within reach of a finger. */
  pick(x: number, y: number): string | undefined {
    let best: string | undefined;
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

  whereDrawn(id: string): { x: number; y: number } | undefined {
    const drawn = this.#drawn.find((one) => one.id === id);
    return drawn && { x: drawn.x, y: drawn.y };
  }
}

/** Returns the cause and the remaining validity, or the way in which the event ended. An unverified event is marked. */
export function labelOf({ properties, state, remaining_s }: MapEvent): string {
  const cause = isUnverified(properties) ? `${causeText(properties)} · unverified` : causeText(properties);
  return state === "active" ? `${cause} · ${duration(remaining_s)}` : `${cause} · ${state}`;
}

/** Returns the name of the cause; its number if it has no name. */
export function causeText({ cause, cause_text }: MapEvent["properties"]): string {
  if (cause_text !== undefined) return cause_text;
  return cause === undefined ? "event" : `cause ${cause}`;
}

/** Draws the triangle: filled if the event is active, with a dashed outline if it is unverified. */
function drawSymbol(c: CanvasRenderingContext2D, { properties, state }: MapEvent): void {
  const colour = EVENT_COLOURS[state];
  const filled = state === "active" && !isUnverified(properties);
  c.lineJoin = "round";
  c.lineWidth = 4;
  c.strokeStyle = GROUND;
  c.stroke(TRIANGLE);
  c.fillStyle = filled ? colour : GROUND;
  c.fill(TRIANGLE);
  c.lineWidth = 2;
  c.strokeStyle = colour;
  if (isUnverified(properties)) c.setLineDash(UNVERIFIED_DASH);
  c.stroke(TRIANGLE);
  c.setLineDash([]);
  c.lineCap = "round";
  c.lineWidth = 2.4;
  c.strokeStyle = filled ? GROUND : colour;
  c.stroke(MARK);
  if (state !== "active") {
    c.lineWidth = 2;
    c.strokeStyle = colour;
    c.stroke(CROSS);
  }
  c.lineCap = "butt";
}

/** Draws the label at the right of the symbol, or at its left if the right edge of the map is too near. */
function drawLabel(c: CanvasRenderingContext2D, symbolX: number, y: number, mapWidth: number, label: string, marked: boolean): void {
  c.font = LABEL_FONT;
  c.textBaseline = "middle";
  const width = c.measureText(label).width;
  const fits = symbolX + width + 30 < mapWidth || symbolX < width + 44;
  const x = fits ? symbolX : symbolX - width - 44;
  c.fillStyle = withAlpha(GROUND, 0.85);
  c.beginPath();
  c.roundRect(x + 16, y - 10, width + 12, 20, 4);
  c.fill();
  if (marked) {
    c.strokeStyle = "#ffffff";
    c.lineWidth = 1.2;
    c.stroke();
  }
  c.fillStyle = "#f1f5fa";
  c.fillText(label, x + 22, y + 0.5);
}
