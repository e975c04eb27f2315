// The plot of the link's quality in the last minute: round trip, glass-to-glass latency, loss.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { TREND_POINTS } from "../limits";
import { colour } from "../theme";

export interface TrendPoint {
  rtt_ms: number | null;
  glass_ms: number | null;
  /** 0 to 1. */
  loss: number | null;
}

const WINDOW_S = 60;
const FONT = '11px Inter, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export class Trend {
  readonly #container: HTMLElement;
  readonly #at_s: number[] = [];
  readonly #columns: (number | null)[][] = [[], [], []];
  #plot: uPlot | undefined;

  constructor(container: HTMLElement) {
    this.#container = container;
    this.build();
    new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = container;
      if (width > 0 && height > 0) this.#plot?.setSize({ width, height });
    }).observe(container);
  }

  add(at_s: number, { rtt_ms, glass_ms, loss }: TrendPoint): void {
    this.#at_s.push(at_s);
    [rtt_ms, glass_ms, loss === null ? null : loss * 100].forEach((value, index) => this.#columns[index]?.push(value));
    if (this.#at_s.length > TREND_POINTS) for (const column of [this.#at_s, ...this.#columns]) column.shift();
    this.#plot?.setData(this.#data());
  }

  get points(): number {
    return this.#at_s.length;
  }

  /** Builds the plot again with the colours of the theme. */
  build(): void {
    this.#plot?.destroy();
    const labels = { stroke: colour("faint"), font: FONT, ticks: { show: false } };
    const grid = { stroke: colour("hair"), width: 1 };
    this.#plot = new uPlot(
      {
        width: Math.max(50, this.#container.clientWidth),
        height: Math.max(50, this.#container.clientHeight),
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, range: (_, __, newest) => [newest - WINDOW_S, newest] },
          ms: { range: (_, __, max) => [0, Math.max(50, (max ?? 0) * 1.1)] },
          loss: { range: (_, __, max) => [0, Math.max(5, (max ?? 0) * 1.1)] },
        },
        axes: [
          { ...labels, grid, size: 20, gap: 2, splits: (_, __, ___, newest) => [newest - 60, newest - 40, newest - 20, newest], values: () => ["", "−40 s", "−20 s", "now"] },
          { ...labels, grid, scale: "ms", size: 42, gap: 3, space: 24, values: (_, splits) => splits.map((ms, index) => (index === splits.length - 1 ? `${ms} ms` : String(ms))) },
          { ...labels, grid: { show: false }, scale: "loss", side: 1, size: 40, gap: 3, space: 24, values: (_, splits) => splits.map((share, index) => (index === splits.length - 1 ? `${share} %` : String(share))) },
        ],
        series: [
          {},
          { scale: "ms", stroke: colour("line-rtt"), width: 1.6, points: { show: false } },
          { scale: "ms", stroke: colour("line-glass"), width: 1.6, dash: [5, 3], points: { show: false } },
          { scale: "loss", stroke: colour("line-loss"), fill: colour("line-loss-fill"), width: 1, points: { show: false } },
        ],
        padding: [8, 0, 0, 0],
      },
      this.#data(),
      this.#container,
    );
  }

  #data(): uPlot.AlignedData {
    return [this.#at_s, ...this.#columns] as uPlot.AlignedData;
  }
}
