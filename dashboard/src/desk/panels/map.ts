// The map: road lines of the desk, the vehicle's track and the vehicle, on a canvas without tiles.

import { byId, setHidden, setText } from "../../dom";
import { colour } from "../theme";
import type { DeskState, MapLines } from "../protocol/messages";
import { type Point, Track } from "./track";

/** Width of the map, in metres. */
const SPANS_M = [60, 120, 250, 500, 1_000, 2_500];
const SCALE_LENGTHS_M = [5, 10, 20, 50, 100, 200, 500, 1_000];

export class MapPanel {
  readonly #canvas = byId("map") as HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #track = new Track();
  #span = 2;
  #headingUp = false;

  constructor() {
    const context = this.#canvas.getContext("2d");
    if (!context) throw new Error("this browser has no 2D canvas");
    this.#context = context;
    byId("map-in").addEventListener("click", () => this.#zoom(-1));
    byId("map-out").addEventListener("click", () => this.#zoom(1));
    byId("map-turn").addEventListener("click", (event) => this.#turn(event.currentTarget as HTMLElement));
    new ResizeObserver(() => this.draw()).observe(this.#canvas);
  }

  setLines(lines: MapLines): void {
    this.#track.setLines(lines);
  }

  take(position: DeskState["position"]): void {
    this.#track.take(position);
  }

  get track(): Track {
    return this.#track;
  }

  draw(): void {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    setHidden(byId("map-notice"), this.#track.vehicle !== undefined);
    if (width === 0 || height === 0) return;
    const ratio = Math.min(window.devicePixelRatio, 2);
    const [pixelsX, pixelsY] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== pixelsX || this.#canvas.height !== pixelsY) Object.assign(this.#canvas, { width: pixelsX, height: pixelsY });
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#context.clearRect(0, 0, width, height);
    this.#drawAll(width, height);
  }

  #drawAll(width: number, height: number): void {
    const centre = this.#track.vehicle ?? this.#track.points.at(-1) ?? { east_m: 0, north_m: 0 };
    const scale = width / (SPANS_M[this.#span] as number);
    const heading_deg = this.#track.vehicle?.heading_deg ?? 0;
    const turn = this.#headingUp ? (heading_deg * Math.PI) / 180 : 0;
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    const place = ({ east_m, north_m }: Point): readonly [number, number] => {
      const [x, y] = [(east_m - centre.east_m) * scale, (north_m - centre.north_m) * scale];
      return [width / 2 + x * cos - y * sin, height / 2 - (x * sin + y * cos)];
    };
    for (const { kind, points } of this.#track.local) this.#line(points.map(place), colour(kind === "course" ? "soft" : "road"), kind === "lane" ? 5 : 1.5, kind === "course" ? [5, 5] : []);
    this.#line(this.#track.points.map(place), colour("accent"), 2, []);
    if (this.#track.vehicle) this.#vehicle(place(this.#track.vehicle), this.#headingUp ? 0 : heading_deg, this.#track.vehicle.heading_deg !== null);
    this.#north(width, turn);
    this.#scale(scale);
  }

  #line(points: readonly (readonly [number, number])[], stroke: string, width: number, dash: number[]): void {
    if (points.length < 2) return;
    const context = this.#context;
    context.beginPath();
    points.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    Object.assign(context, { strokeStyle: stroke, lineWidth: width, lineJoin: "round" });
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }

  #vehicle([x, y]: readonly [number, number], heading_deg: number, known: boolean): void {
    const context = this.#context;
    context.save();
    context.translate(x, y);
    context.rotate((heading_deg * Math.PI) / 180);
    context.beginPath();
    if (known) [[0, -10], [7, 8], [0, 4], [-7, 8]].forEach(([dx, dy], index) => (index === 0 ? context.moveTo(dx as number, dy as number) : context.lineTo(dx as number, dy as number)));
    else context.arc(0, 0, 6, 0, 2 * Math.PI);
    context.closePath();
    Object.assign(context, { fillStyle: colour("text"), strokeStyle: colour("panel"), lineWidth: 1.5 });
    context.fill();
    context.stroke();
    context.restore();
  }

  #north(width: number, turn: number): void {
    const context = this.#context;
    context.save();
    context.translate(width - 18, 20);
    context.rotate(-turn);
    Object.assign(context, { fillStyle: colour("soft"), font: '600 11px "Segoe UI", "DejaVu Sans", sans-serif', textAlign: "center" });
    context.fillText("N", 0, -2);
    context.beginPath();
    context.moveTo(0, 2);
    context.lineTo(4, 11);
    context.lineTo(-4, 11);
    context.fill();
    context.restore();
  }

  #scale(scale: number): void {
    const length_m = SCALE_LENGTHS_M.findLast((length) => length * scale <= 90) ?? 5;
    const bar = byId("map-scale");
    bar.style.width = `${(length_m * scale).toFixed(0)}px`;
    setText(bar, length_m >= 1_000 ? `${length_m / 1_000} km` : `${length_m} m`);
  }

  #zoom(by: number): void {
    this.#span = Math.min(SPANS_M.length - 1, Math.max(0, this.#span + by));
    this.draw();
  }

  #turn(button: HTMLElement): void {
    this.#headingUp = !this.#headingUp;
    button.setAttribute("aria-pressed", String(this.#headingUp));
    this.draw();
  }
}
