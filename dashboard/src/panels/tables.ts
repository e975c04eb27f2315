// The panels of topics, drops and the cache.

import type { Kpis, TopicKpi } from "../api";
import { cells, el, Rows, setText, tableRow } from "../dom";
import { bytes, clock, count, duration, rate } from "../format";
import { type Drop, type DropKind, Drops } from "../state/drops";
import { Panel } from "./panel";

export class TopicsPanel {
  readonly #panel: Panel;
  readonly #rows: Rows<TopicKpi>;

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#rows = new Rows(this.#panel.find("tbody"), () => textSecond(tableRow(5)), fillTopic);
  }

  update({ topics }: Kpis): void {
    if (topics.length === 0) return this.#panel.empty("No topics. This node's config lists no component that publishes.");
    this.#rows.update(topics);
    this.#panel.filled(`${topics.length}`);
  }

  error(text: string): void {
    this.#panel.error(text);
  }
}

export class DropsPanel {
  readonly #panel: Panel;
  readonly #rows: Rows<Drop>;
  readonly #drops = new Drops();

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#rows = new Rows(this.#panel.find("tbody"), () => textSecond(tableRow(4)), fillDrop);
  }

  /** Shows the drops and the ignored packets. Returns the rates per second of drops, and of repetitions with echoes. */
  update(kpis: Kpis): { drops_hz: number; repetitions_hz: number } {
    const rows = this.#drops.update(kpis);
    const drops = rows.filter(({ kind }) => kind === "drop");
    const repetitions = rows.filter(({ kind }) => kind === "repetition" || kind === "echo");
    if (rows.length === 0) this.#panel.empty("No drops.");
    else {
      this.#rows.update(rows);
      this.#panel.filled(`${count(sum(drops, "total"))} since start`);
    }
    return { drops_hz: sum(drops, "rate_hz"), repetitions_hz: sum(repetitions, "rate_hz") };
  }

  error(text: string): void {
    this.#panel.error(text);
  }
}

export class CachePanel {
  readonly #panel: Panel;
  readonly #meter: HTMLElement;
  readonly #bar: HTMLElement;
  readonly #facts: Rows<readonly [string, string]>;

  constructor(root: HTMLElement) {
    this.#panel = new Panel(root);
    this.#meter = this.#panel.find(".meter");
    this.#bar = this.#panel.find(".meter i");
    this.#facts = new Rows(this.#panel.find("dl"), () => el("div", {}, el("dt"), el("dd")), fillFact);
  }

  update({ cache }: Kpis): void {
    const fill = cache.octets_max > 0 ? Math.min(1, cache.octets / cache.octets_max) : 0;
    this.#bar.style.transform = `scaleX(${fill.toFixed(4)})`;
    this.#meter.dataset["level"] = fill > 0.9 ? "high" : "";
    this.#meter.setAttribute("aria-valuenow", (fill * 100).toFixed(0));
    this.#panel.filled(`${bytes(cache.octets)} of ${bytes(cache.octets_max)} · ${(fill * 100).toFixed(fill < 0.1 ? 1 : 0)} %`);
    const span_s = cache.oldest && cache.newest ? (Date.parse(cache.newest) - Date.parse(cache.oldest)) / 1_000 : undefined;
    this.#facts.update([
      ["messages", count(cache.messages)],
      ["holds", span_s === undefined ? "–" : duration(span_s)],
      ["evicted", count(cache.evicted)],
      ["newest", clock(cache.newest)],
    ]);
  }

  error(text: string): void {
    this.#panel.error(text);
  }
}

function sum(rows: readonly Drop[], figure: "total" | "rate_hz"): number {
  return rows.reduce((total, row) => total + row[figure], 0);
}

function fillTopic(row: HTMLElement, topic: TopicKpi): void {
  const queued = topic.subscriptions.reduce((sum, subscription) => sum + subscription.queued, 0);
  cells(row, [topic.topic, topic.type.split(".").at(-1) ?? topic.type, rate(topic.rate_hz), count(queued), count(topic.dropped)]);
  (row.children[1] as HTMLElement).title = topic.type;
  (row.children[4] as HTMLElement).dataset["level"] = topic.dropped > 0 ? "bad" : "";
  row.classList.toggle("idle", topic.rate_hz === 0);
}

/** Notes behind the reasons. */
const DROP_NOTES: Readonly<Record<DropKind, string>> = { drop: "", repetition: " (repeat)", echo: " (echo)", not_for_us: " (no loss)" };

function fillDrop(row: HTMLElement, { where, reason, rate_hz, total, kind }: Drop): void {
  const text = reason.replaceAll("_", " ");
  cells(row, [where, `${text}${DROP_NOTES[kind]}`, rate(rate_hz), count(total)]);
  (row.children[2] as HTMLElement).dataset["level"] = rate_hz > 0 && kind === "drop" ? "bad" : "";
  row.classList.toggle("idle", rate_hz === 0);
}

function fillFact(row: HTMLElement, [name, text]: readonly [string, string]): void {
  setText(row.children[0] as Element, name);
  setText(row.children[1] as Element, text);
}

function textSecond(row: HTMLElement): HTMLElement {
  row.children[1]?.classList.add("text");
  return row;
}
