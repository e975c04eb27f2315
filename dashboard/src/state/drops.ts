// All drops of the node as one list by place and reason, with rates over a short window. Packets that were ignored in normal
// operation are listed after the drops: nothing is lost with them.

import type { Kpis } from "../api";
import { DROP_WINDOW_S } from "../limits";

export interface Drop {
  where: string;
  reason: string;
  total: number;
  rate_hz: number;
  kind: DropKind;
}

/**
 * Kind of a row:
 * - `drop`: a loss
 * - `repetition`: a copy of a message that was received before
 * - `echo`: a packet of the station itself, which UDP multicast and forwarders return
 * - `not_for_us`: a packet for other stations, or one that the station received and need not or cannot forward
 */
export type DropKind = "drop" | "repetition" | "echo" | "not_for_us";

/** Reasons for which a repeated DENM and a packet that arrived on a second path are ignored. */
const REPETITIONS: ReadonlySet<string> = new Set(["denm_repeated", "duplicate"]);
/** Reasons for which a frame or packet for other stations is ignored. */
const FOR_OTHERS: ReadonlySet<string> = new Set(["other_link_destination", "hops_exhausted", "own_position_unknown", "left_area", "no_progress"]);
/** Reasons for which forwarding fails for lack of space, and for an excessive rate of the source. */
const FORWARDING_LOSSES: ReadonlySet<string> = new Set(["buffer_overflow", "transmit_queue_full", "source_too_fast"]);

type Totals = Map<string, Omit<Drop, "rate_hz">>;

export class Drops {
  readonly #window: { uptime_s: number; totals: Totals }[] = [];

  /** Returns the list after this report: drops first, then the highest rate. A restart of the node resets the rates. */
  update(kpis: Kpis): Drop[] {
    const newest = this.#window.at(-1);
    if (newest && kpis.uptime_s < newest.uptime_s) this.#window.length = 0;
    this.#window.push({ uptime_s: kpis.uptime_s, totals: totalsOf(kpis) });
    while (this.#window.length > DROP_WINDOW_S + 1) this.#window.shift();
    return this.#rates().sort((a, b) => Number(b.kind === "drop") - Number(a.kind === "drop") || b.rate_hz - a.rate_hz || b.total - a.total || a.where.localeCompare(b.where));
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
  const add = (where: string, reason: string, total: number, kind: DropKind = "drop"): void => {
    if (total <= 0) return;
    const key = `${where}\n${reason}`;
    const known = totals.get(key);
    if (known) known.total += total;
    else totals.set(key, { where, reason, total, kind });
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
    // The responses of a CoAP server are counted by class.
    if (reason !== undefined && !(name === "responses" && reason === "success")) add(name === "dropped" ? component : `${component} ${name}`, reason, value, kindOf(name, reason));
  }
  return totals;
}

/** Returns the kind of a counter with a reason. */
function kindOf(counter: string, reason: string): DropKind {
  if (REPETITIONS.has(reason)) return "repetition";
  if (counter === "dropped" && reason === "own_packet") return "echo";
  if (counter === "dropped" && FOR_OTHERS.has(reason)) return "not_for_us";
  if (counter === "packets_not_forwarded" && !FORWARDING_LOSSES.has(reason)) return "not_for_us";
  return "drop";
}
