// uPlot as all our plots use it: a fixed window of time whose right edge is now, and one width for the left axis.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { HISTORY_S } from "../limits";

const GRID = { stroke: "#1c2430", width: 1 };
const TICKS = { show: false };
const LABELS = { stroke: "#718096", font: '11px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif' };

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

  /** Makes the plot anew; for when its lines change, not for new data. */
  build(options: PlotOptions): void {
    this.#plot?.destroy();
    this.#plot = new uPlot(
      {
        width: Math.max(50, this.#container.clientWidth),
        height: Math.max(50, this.#container.clientHeight),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "viaduct" }, points: { size: 5 } },
        scales: { x: { time: false, range: (_, __, newest) => [newest - HISTORY_S, newest] }, y: options.y },
        axes: [
          { ...LABELS, grid: GRID, ticks: TICKS, size: 22, gap: 3, splits: minutes, values: (_, splits) => splits.map((_, i) => minuteLabel(splits.length - 1 - i)) },
          { ...LABELS, grid: GRID, ticks: TICKS, size: 56, gap: 4, ...options.yAxis },
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

  /** Times first, then one list a line. */
  show(data: uPlot.AlignedData): void {
    this.#plot?.setData(data);
  }
}

function minutes(_: uPlot, __: number, oldest: number, newest: number): number[] {
  const splits: number[] = [];
  for (let at = oldest; at <= newest + 0.001; at += 60) splits.push(at);
  return splits;
}

function minuteLabel(ago: number): string {
  return ago === 0 ? "now" : `−${ago} min`;
}
