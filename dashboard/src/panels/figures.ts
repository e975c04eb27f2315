// Key figures of messages that come back to the node: stages of each second, stacked; the distribution of the total; and a table.

import uPlot from "uplot";
import type { FiguresKpi, Kpis, StageKpi } from "../api";
import { el, Rows, setHidden, setText } from "../dom";
import { HISTORY_S, SERIES_MAX } from "../limits";
import { line } from "../palette";
import { drawn, distribution, millis, summary } from "../state/figures";
import { History } from "../state/ring";
import { stack } from "../state/stack";
import { Panel } from "./panel";
import { AXIS, GRID, Plot } from "./plot";
import { shade } from "./rates";

export class FiguresPanel {
  readonly #panel: Panel;
  readonly #plot: Plot;
  readonly #ecdf: HTMLElement;
  readonly #rows: Rows<StageKpi>;
  readonly #history = new History(HISTORY_S, SERIES_MAX);
  #distribution: uPlot | undefined;
  #layers: readonly string[] = [];
  #plotted = "";

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#plot = new Plot(this.#panel.find(".plot"));
    this.#ecdf = this.#panel.find(".ecdf");
    this.#rows = new Rows(this.#panel.find("tbody"), makeRow, (row, stage) => this.#fillRow(row, stage));
    new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = this.#ecdf;
      if (width > 0 && height > 0) this.#distribution?.setSize({ width, height });
    }).observe(this.#ecdf);
  }

  /** Shows the figures of the first topic. The panel is hidden on a node without figures. */
  update(kpis: Kpis, time_s: number): void {
    const figures = kpis.figures[0];
    setHidden(this.#panel.root, figures === undefined);
    if (figures === undefined) return;
    if (figures.total === undefined) {
      this.#panel.empty(`No message has come back on ${figures.of} yet.`);
      return;
    }
    this.#layers = drawn(figures);
    this.#history.push(time_s, Object.fromEntries(figures.stages.map(({ name, recent_ms }) => [name, recent_ms])));
    this.#panel.filled(summary(figures));
    this.#rows.update(figures.stages);
    this.#draw(figures);
  }

  error(text: string, time_s: number): void {
    this.#history.push(time_s, {});
    this.#panel.error(text);
    if (this.#plotted !== "") this.#drawStages();
  }

  #draw(figures: FiguresKpi): void {
    const wanted = this.#layers.join("\n");
    if (wanted !== this.#plotted) {
      this.#plotted = wanted;
      this.#build(this.#layers.length);
      this.#distribution?.destroy();
      this.#distribution = makeDistribution(this.#ecdf);
    }
    this.#drawStages();
    this.#distribution?.setData(distribution(figures.total_quantiles_ms));
  }

  #drawStages(): void {
    const layers = stack(this.#layers.map((name) => this.#history.values(name)));
    this.#plot.show([this.#history.times(), ...layers.reverse()]);
  }

  /** The highest layer first, so that each lower one paints over it. */
  #build(layers: number): void {
    const series = Array.from({ length: layers }, (_, i) => {
      const colour = line(layers - 1 - i);
      return { stroke: colour, width: 1.25, fill: shade(colour), points: { show: false } };
    });
    this.#plot.build({
      series,
      y: { range: (_, __, high) => [0, Math.max(0.1, (high ?? 0) * 1.12)] },
      yAxis: { values: (_, splits) => splits.map((ms) => `${ms} ms`), space: 18 },
    });
  }

  #fillRow(row: HTMLElement, { name, is_communication, latency, one_way, clock_error_ms }: StageKpi): void {
    const layer = this.#layers.indexOf(name);
    const [swatch, title] = row.children[0]?.children as unknown as [HTMLElement, HTMLElement];
    swatch.style.background = layer < 0 ? "none" : line(layer);
    setText(title, name.replaceAll("_", " "));
    row.title = is_communication ? "way between two machines: (total − other stages) / 2" : "";
    if (one_way) row.title += `\nby the clocks of both: ${millis(one_way.mean_ms)} ±${millis(clock_error_ms ?? 0)}`;
    const { mean_ms, median_ms, sd_ms, p95_ms, max_ms } = latency;
    [mean_ms, median_ms, sd_ms, p95_ms, max_ms].forEach((ms, i) => setText(row.children[i + 1] as Element, millis(ms)));
  }
}

function makeRow(): HTMLElement {
  const cells = Array.from({ length: 5 }, () => el("td"));
  return el("tr", { "data-testid": "figures-row" }, el("th", { scope: "row" }, el("i"), el("span")), ...cells);
}

function makeDistribution(container: HTMLElement): uPlot {
  return new uPlot(
    {
      width: Math.max(50, container.clientWidth),
      height: Math.max(50, container.clientHeight),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false }, y: { range: [0, 1] } },
      axes: [
        { ...AXIS, grid: GRID, size: 22, gap: 3, values: (_, splits) => splits.map((ms) => `${ms} ms`), space: 48 },
        { ...AXIS, grid: GRID, size: 48, gap: 4, values: (_, splits) => splits.map((share) => `${Math.round(share * 100)} %`), space: 24 },
      ],
      series: [{}, { stroke: line(0), width: 1.5, points: { show: false } }],
      padding: [8, 12, 0, 0],
    },
    [[], []],
    container,
  );
}
