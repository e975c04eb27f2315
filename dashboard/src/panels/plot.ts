// uPlot with the settings of all plots: a time window whose right edge is now, and a left axis of constant width.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { HISTORY_S } from "../limits";

const WINDOWS_S = [60, 120, HISTORY_S];
export const GRID = { stroke: "#1c2430", width: 1 };
const TICKS = { show: false };
export const AXIS = { stroke: "#8a97aa", font: '11px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif' };

export interface PlotOptions {
  series: uPlot.Series[];
  bands?: uPlot.Band[];
  y: uPlot.Scale;
  yAxis: uPlot.Axis;
  onCursor?: (index: number | undefined) => void;
}

export class Plot {
  readonly #container: HTMLElement;
  #plot: uPlot | undefined;

  constructor(container: HTMLElement) {
    this.#container = container;
    new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = container;
      if (width > 0 && height > 0) this.#plot?.setSize({ width, height });
    }).observe(container);
  }

  /** Rebuilds the plot when its lines change. New data only needs `show`. */
  build(options: PlotOptions): void {
    this.#plot?.destroy();
    this.#plot = new uPlot(
      {
        width: Math.max(50, this.#container.clientWidth),
        height: Math.max(50, this.#container.clientHeight),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "viaduct" }, points: { size: 5 } },
        scales: { x: { time: false, range: (_, oldest, newest) => [newest - windowFor(newest - oldest), newest] }, y: options.y },
        axes: [
          { ...AXIS, grid: GRID, ticks: TICKS, size: 22, gap: 3, splits: fromNow, values: (_, splits) => splits.map((at) => ago((splits.at(-1) ?? at) - at)) },
          { ...AXIS, grid: GRID, ticks: TICKS, size: 56, gap: 4, ...options.yAxis },
        ],
        series: [{}, ...options.series],
        bands: options.bands ?? [],
        padding: [8, 12, 0, 0],
        hooks: { setCursor: [(plot) => options.onCursor?.(plot.cursor.idx ?? undefined)] },
      },
      [[], ...options.series.map(() => [])],
      this.#container,
    );
  }

  /** Shows the data: times, then one list per line. */
  show(data: uPlot.AlignedData): void {
    this.#plot?.setData(data);
  }
}

/** Returns the window for the length of the history: it starts at one minute and widens. */
function windowFor(history_s: number): number {
  return WINDOWS_S.find((window_s) => history_s <= window_s) ?? HISTORY_S;
}

/** Returns ticks counted back from now; none at the left edge, which has the label of the other axis. */
function fromNow(_: uPlot, __: number, oldest: number, newest: number): number[] {
  const window_s = newest - oldest;
  const step_s = window_s > 200 ? 60 : window_s > 100 ? 30 : 15;
  const splits: number[] = [];
  for (let back_s = 0; back_s < window_s - step_s / 2; back_s += step_s) splits.unshift(newest - back_s);
  return splits;
}

function ago(back_s: number): string {
  const s = Math.round(back_s);
  if (s === 0) return "now";
  return s % 60 === 0 ? `−${s / 60} min` : `−${s} s`;
}
