// The list of events, the newest first.

import { byId, el } from "../../dom";
import { EVENTS_MAX } from "../limits";
import type { DeskEvent } from "../protocol/messages";

/** TAI is ahead of UTC by this much since 2017. */
const TAI_MINUS_UTC_S = 37;
const SYMBOLS = { info: "", warning: "▲", alarm: "■" } as const;

export class EventList {
  readonly #list = byId("events");

  add({ time_us, level, text }: DeskEvent): void {
    const item = el("li", { "data-level": level }, el("time", {}, clock(time_us)), el("i", { "aria-hidden": "true" }, SYMBOLS[level]), el("span", {}, text));
    this.#list.prepend(item);
    while (this.#list.children.length > EVENTS_MAX) this.#list.lastElementChild?.remove();
  }
}

/** Returns the local time of day. */
function clock(time_us: number): string {
  const date = new Date(time_us / 1_000 - TAI_MINUS_UTC_S * 1_000);
  return Number.isNaN(date.getTime()) ? "–" : date.toLocaleTimeString("en-GB");
}
