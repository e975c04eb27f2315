// All drops of the node as one list by place and reason, with rates over a short window. Repetitions are listed, but are no drops.

import type { Kpis } from "../api";
import { DROP_WINDOW_S } from "../limits";

export interface Drop {
  where: string;
  reason: string;
  total: number;
  rate_hz: number;
  /** `true` for copies of a message that was received before: nothing is lost. */
  repetition: boolean;
}

/** Reasons for which a repeated DENM and a packet that arrived on a second path are ignored. */
const REPETITIONS: ReadonlySet<string> = new Set(["denm_repeated", "duplicate"]);

type Totals = Map<string, Omit<Drop, "rate_hz">>;

export class Drops {
  readonly #window: { uptime_s: number; totals: Totals }[] = [];

  /** Returns the list after this report: drops before repetitions, the highest rate first. A restart of the node resets the rates. */
  update(kpis: Kpis): Drop[] {
    const newest = this.#window.at(-1);
    if (newest && kpis.uptime_s < newest.uptime_s) this.#window.length = 0;
    this.#window.push({ uptime_s: kpis.uptime_s, totals: totalsOf(kpis) });
    while (this.#window.length > DROP_WINDOW_S + 1) this.#window.shift();
    return this.#rates().sort((a, b) => Number(a.repetition) - Number(b.repetition) || b.rate_hz - a.rate_hz || b.total - a.total || a.where.localeCompare(b.where));
  }

  #rates(): Drop[] {
    const first = this.#window[0];
    const last = this.#window.at(-1);
    if (!first || !last) return [];
    const elapsed_s = last.uptime_s - first.uptime_s;
    return [...last.totals].map(([key, drop]) => {
      const since = drop.total - (first.totals.get(key)?.total ?? 0);
      return { ...drop, rate_hz: elapsed_s > 0 ? Math.max(0, since) / elapsed_s : 0 };
    });
  }
}

function totalsOf(kpis: Kpis): Totals {
  const totals: Totals = new Map();
  const add = (where: string, reason: string, total: number): void => {
    if (total <= 0) return;
    const key = `${where}\n${reason}`;
    const known = totals.get(key);
    if (known) known.total += total;
    else totals.set(key, { where, reason, total, repetition: REPETITIONS.has(reason) });
  };
  for (const topic of kpis.topics) {
    let explained = 0;
    for (const subscription of topic.subscriptions) {
      for (const [reason, count] of Object.entries(subscription.dropped)) {
        add(`${topic.topic} → ${subscription.subscriber}`, reason, count);
        explained += count;
      }
    }
    add(topic.topic, "no reason given", topic.dropped - explained);
  }
  for (const [reason, count] of Object.entries(kpis.cache.rejected)) add("cache", reason, count);
  for (const { component, name, reason, value } of kpis.counters) {
    if (reason !== undefined) add(name === "dropped" ? component : `${component} ${name}`, reason, value);
  }
  return totals;
}
