// Latency per hop: median and 99th percentile of each second as a plot, the newest figures as a table.

import type uPlot from "uplot";
import type { HopKpi, Kpis } from "../api";
import { el, Rows, setText } from "../dom";
import { latency, rate } from "../format";
import { HISTORY_S, HOPS_DRAWN_MAX, SERIES_MAX } from "../limits";
import { line, withAlpha } from "../palette";
import { History } from "../state/ring";
import { Panel } from "./panel";
import { Plot } from "./plot";

export class LatencyPanel {
  readonly #panel: Panel;
  readonly #plot: Plot;
  readonly #rows: Rows<HopKpi>;
  readonly #body: HTMLElement;
  readonly #p50 = new History(HISTORY_S, SERIES_MAX);
  readonly #p99 = new History(HISTORY_S, SERIES_MAX);
  #hops: HopKpi[] = [];
  #plotted = "";
  /** The hop that is shown alone. */
  #solo: string | undefined;
  /** Index in the history under the cursor. */
  #cursor: number | undefined;

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#plot = new Plot(this.#panel.find(".plot"));
    this.#body = this.#panel.find("tbody");
    this.#rows = new Rows(this.#body, () => this.#makeRow(), (row, hop, index) => this.#fillRow(row, hop, index));
  }

  /** Returns the newest figures, for tests and the console. */
  get hops(): readonly HopKpi[] {
    return this.#hops;
  }

  get samples(): number {
    return this.#p50.length;
  }

  update(kpis: Kpis, time_s: number): void {
    this.#hops = kpis.hops;
    this.#p50.push(time_s, Object.fromEntries(kpis.hops.map((hop) => [key(hop), hop.recent.p50_us])));
    this.#p99.push(time_s, Object.fromEntries(kpis.hops.map((hop) => [key(hop), hop.recent.p99_us])));
    if (kpis.hops.length === 0) this.#panel.empty("No latency measured yet. A hop appears when the first message passes a component.");
    this.#show();
  }

  error(text: string, time_s: number): void {
    this.#p50.push(time_s, {});
    this.#p99.push(time_s, {});
    this.#panel.error(text);
    if (this.#hops.length > 0) this.#draw();
  }

  #show(): void {
    if (this.#hops.length === 0) return;
    this.#panel.filled(this.#note());
    this.#draw();
    this.#body.classList.toggle("solo", this.#solo !== undefined);
    this.#rows.update(this.#hops);
  }

  #draw(): void {
    const drawn = this.#drawn();
    const names = drawn.map(({ name }) => name);
    const wanted = names.join("\n");
    if (wanted !== this.#plotted) {
      this.#plotted = wanted;
      this.#build(drawn.map(({ colour }) => colour));
    }
    const lines = names.flatMap((name) => [this.#p50.values(name), this.#p99.values(name)]);
    this.#plot.show([this.#p50.times(), ...lines]);
  }

  /** Returns the hops that are drawn: the chosen one, else the first ones. */
  #drawn(): { name: string; colour: string }[] {
    const hops = this.#hops.map((hop, index) => ({ name: key(hop), colour: line(index) }));
    const chosen = hops.filter(({ name }) => name === this.#solo);
    return chosen.length > 0 ? chosen : hops.slice(0, HOPS_DRAWN_MAX);
  }

  #build(colours: readonly string[]): void {
    const series = colours.flatMap((colour): uPlot.Series[] => [
      { stroke: colour, width: 1.75, points: { show: false } },
      { stroke: withAlpha(colour, 0.85), width: 1.25, dash: [4, 4], points: { show: false } },
    ]);
    const bands = colours.map((colour, i): uPlot.Band => ({ series: [2 * i + 2, 2 * i + 1], fill: withAlpha(colour, colours.length > 1 ? 0.09 : 0.2) }));
    this.#plot.build({
      series,
      bands,
      y: { distr: 3, range: (_, low, high) => decades(low, high) },
      yAxis: { splits: (_, __, low, high) => powersOfTen(low, high), filter: (_, splits) => splits, values: (_, splits) => splits.map((us) => latency(us).replace(/\.0+(?= )/, "")) },
      onCursor: (index) => this.#hover(index),
    });
  }

  #hover(index: number | undefined): void {
    if (index === this.#cursor) return;
    this.#cursor = index;
    this.#panel.filled(this.#note());
    this.#rows.update(this.#hops);
  }

  /** Returns the time of the figures, and the number of hops without a line. */
  #note(): string {
    const time_s = this.#cursor === undefined ? undefined : this.#p50.times()[this.#cursor];
    if (time_s !== undefined) return `at ${new Date(time_s * 1_000).toTimeString().slice(0, 8)}`;
    const left = this.#hops.length - HOPS_DRAWN_MAX;
    return left > 0 && this.#solo === undefined ? `last second · ${left} hops only in the table` : "last second";
  }

  #makeRow(): HTMLElement {
    const button = el("button", { type: "button", class: "hop-button" }, el("i"), el("b"), el("span"));
    const row = el("tr", { "data-testid": "latency-row" }, el("th", { scope: "row" }, button), el("td"), el("td"), el("td"), el("td"));
    button.addEventListener("click", () => {
      const name = row.dataset["hop"];
      this.#solo = this.#solo === name ? undefined : name;
      this.#show();
    });
    return row;
  }

  #fillRow(row: HTMLElement, hop: HopKpi, index: number): void {
    const name = key(hop);
    const { recent } = hop;
    const at = this.#cursor;
    const p50 = at === undefined ? recent.p50_us : (this.#p50.values(name)[at] ?? undefined);
    const p99 = at === undefined ? recent.p99_us : (this.#p99.values(name)[at] ?? undefined);
    const idle = at === undefined && recent.count === 0;
    row.dataset["hop"] = name;
    row.dataset["p50Us"] = String(recent.p50_us ?? "");
    row.classList.toggle("idle", idle);
    row.classList.toggle("chosen", this.#solo === name);
    const button = row.querySelector("button") as HTMLElement;
    button.setAttribute("aria-pressed", String(this.#solo === name));
    button.title = `${hop.from} → ${hop.to}${clocks(hop)}\nsince start: p50 ${latency(hop.total.p50_us)}, p99 ${latency(hop.total.p99_us)}, p99.9 ${latency(hop.total.p999_us)}, max ${latency(hop.total.max_us)}, n ${hop.total.count}`;
    const [swatch, title, path] = button.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
    swatch.style.background = index < HOPS_DRAWN_MAX || this.#solo === name ? line(index) : "none";
    setText(title, hop.hop);
    setText(path, `${way(hop)}${uncertainty(hop)}`);
    const max = at === undefined ? latency(recent.max_us) : "";
    const texts = idle ? ["idle", "", "", rate(hop.rate_hz)] : [latency(p50), latency(p99), max, rate(hop.rate_hz)];
    texts.forEach((text, i) => setText(row.children[i + 1] as Element, text));
  }
}

function key(hop: HopKpi): string {
  return `${hop.from} → ${hop.to}`;
}

/** Returns the way of a hop: from another component, or the work within one. */
function way(hop: HopKpi): string {
  if (hop.from === hop.to) return "within";
  return hop.hop === hop.to ? `from ${hop.from}` : `${hop.from} → ${hop.to}`;
}

/** Returns the error of a hop between two machines, as it follows its way. */
function uncertainty(hop: HopKpi): string {
  if (hop.clock_error_us !== undefined && hop.clock_error_us > 0) return ` ±${latency(hop.clock_error_us)}`;
  return hop.clocks === "unsynchronised" || hop.clocks === "unknown" ? " ±?" : "";
}

/** Returns the state of the clocks of a hop between two nodes, for the tooltip. */
function clocks(hop: HopKpi): string {
  switch (hop.clocks) {
    case undefined: return "";
    case "shared": return "\nbetween two nodes of one machine";
    case "synchronised": return `\nbetween two machines: clocks differ by at most ${latency(hop.clock_error_us)}`;
    case "unsynchronised": return "\nbetween two machines: clocks are not synchronised";
    default: return "\nbetween two machines: state of the clocks unknown";
  }
}

/** Returns whole decades around the data, at least one, so that the scale is stable. */
function decades(low: number | null, high: number | null): uPlot.Range.MinMax {
  if (low === null || high === null || !(low > 0)) return [1, 1_000];
  const from = 10 ** Math.floor(Math.log10(low));
  return [from, Math.max(from * 10, 10 ** Math.ceil(Math.log10(high)))];
}

function powersOfTen(low: number, high: number): number[] {
  const from = Math.round(Math.log10(low));
  return Array.from({ length: Math.round(Math.log10(high)) - from + 1 }, (_, i) => 10 ** (from + i));
}
