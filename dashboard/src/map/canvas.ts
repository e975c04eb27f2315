// The canvas above the base map, on which everything but the roads is drawn.

import type { View } from "./view";

export class MapCanvas {
  readonly context: CanvasRenderingContext2D;
  readonly #element: HTMLCanvasElement;
  #drawnView = "";
  #empty = true;

  constructor(element: HTMLCanvasElement) {
    // Software rendering: it draws thousands of small lines fast, and a hundred times faster than WebGL on a machine without a GPU.
    const context = element.getContext("2d", { willReadFrequently: true });
    if (!context) throw new Error("this browser has no 2D canvas");
    this.#element = element;
    this.context = context;
  }

  /** Prepares a frame and returns the pixel ratio; `undefined` if the last frame is still valid. `empty`: nothing moves or changes. */
  begin(view: View, empty: boolean): number | undefined {
    const ratio = Math.min(window.devicePixelRatio, 2);
    const key = `${view.width} ${view.height} ${view.scale} ${view.shiftX} ${view.shiftY} ${ratio}`;
    if (empty && this.#empty && key === this.#drawnView) return undefined;
    this.#empty = empty;
    this.#drawnView = key;
    this.#resize(view, ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, view.width, view.height);
    return ratio;
  }

  #resize(view: View, ratio: number): void {
    const width = Math.round(view.width * ratio);
    const height = Math.round(view.height * ratio);
    if (this.#element.width === width && this.#element.height === height) return;
    this.#element.width = width;
    this.#element.height = height;
  }
}
