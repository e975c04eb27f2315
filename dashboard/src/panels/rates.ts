// Messages per second by type, as stacked areas.

import type { Kpis, TypeKpi } from "../api";
import { el, Rows, setText } from "../dom";
import { count, rate } from "../format";
import { HISTORY_S, SERIES_MAX } from "../limits";
import { line } from "../palette";
import { History } from "../state/ring";
import { stack } from "../state/stack";
import { Panel } from "./panel";
import { Plot } from "./plot";

export class RatesPanel {
  readonly #panel: Panel;
  readonly #plot: Plot;
  readonly #rows: Rows<TypeKpi>;
  readonly #history = new History(HISTORY_S, SERIES_MAX);
  #types: readonly string[] = [];
  #plotted = "";

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#plot = new Plot(this.#panel.find(".plot"));
    this.#rows = new Rows(this.#panel.find(".chips"), makeChip, fillChip);
  }

  /** Returns the seconds of history with a rate. */
  get samples(): number {
    return this.#history.names.length === 0 ? 0 : this.#history.length;
  }

  update(kpis: Kpis, time_s: number): void {
    this.#history.push(time_s, Object.fromEntries(kpis.types.map(({ type, rate_hz }) => [type, rate_hz])));
    if (kpis.types.length === 0) {
      this.#panel.empty("No messages yet. Start a station, or replay a recording into this node.");
      return;
    }
    this.#panel.filled(`${rate(kpis.types.reduce((sum, { rate_hz }) => sum + rate_hz, 0))} per s in total`);
    this.#rows.update(kpis.types);
    this.#types = kpis.types.map(({ type }) => type).slice(0, SERIES_MAX);
    this.#draw();
  }

  error(text: string, time_s: number): void {
    this.#history.push(time_s, {});
    this.#panel.error(text);
    this.#draw();
  }

  #draw(): void {
    const types = this.#types;
    if (types.length === 0) return;
    const wanted = types.join("\n");
    if (wanted !== this.#plotted) {
      this.#plotted = wanted;
      this.#build(types.length);
    }
    const layers = stack(types.map((type) => this.#history.values(type)));
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
      y: { range: (_, __, high) => [0, Math.max(1, (high ?? 0) * 1.12)] },
      yAxis: { values: (_, splits) => splits.map((hz) => count(hz)), space: 18 },
    });
  }
}

function makeChip(): HTMLElement {
  return el("li", { "data-testid": "rate-row" }, el("i"), el("span"), el("b"));
}

function fillChip(chip: HTMLElement, { type, rate_hz, count: total }: TypeKpi, index: number): void {
  const [swatch, name, figure] = chip.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
  swatch.style.background = line(index);
  setText(name, type);
  setText(figure, rate(rate_hz));
  chip.title = `${count(total)} in total`;
}

/** Returns the colour mixed with the panel's background: opaque, so that layers do not add up. */
export function shade(hex: string): string {
  const ground = [0x10, 0x15, 0x1d];
  const mixed = ground.map((base, i) => Math.round(base + (Number.parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16) - base) * 0.34));
  return `rgb(${mixed.join(" ")})`;
}
