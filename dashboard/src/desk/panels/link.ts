// The quality of the link: newest values, the sum of picture and command latency, and the plot.

import { byId, setText } from "../../dom";
import { count } from "../../format";
import type { DeskState } from "../protocol/messages";
import { age, bitRate, percent } from "../texts";
import { Trend } from "./trend";

export class LinkPanel {
  readonly #trend = new Trend(byId("trend"));
  #limit_ms = 200;
  #loop_ms: number | undefined;

  set latencyLimit_ms(value: number) {
    this.#limit_ms = value;
  }

  /** `state` is `undefined` while the desk is silent. */
  show(state: DeskState | undefined, glass_ms: number | undefined): void {
    const link = state?.link;
    byId("link-facts").dataset["state"] = link?.connected === true ? "live" : "lost";
    fact("rtt", age(link?.rtt_ms));
    fact("one-way", age(link?.one_way_ms));
    fact("command-age", age(state?.command.age_ms));
    fact("loss", percent(link?.loss ?? null));
    fact("rate", bitRate(link?.rate_mbps ?? null));
    fact("missed", link === undefined ? "–" : count(link.missed));
    setText(byId("link-note"), state === undefined ? "desk silent" : link?.connected === true ? "" : "no link");
    this.#showLoop(glass_ms, state?.command.age_ms ?? undefined);
  }

  addPoint(at_s: number, state: DeskState | undefined, glass_ms: number | undefined): void {
    const link = state?.link.connected === true ? state.link : undefined;
    this.#trend.add(at_s, { rtt_ms: link?.rtt_ms ?? null, glass_ms: glass_ms ?? null, loss: link?.loss ?? null });
  }

  /** Takes the colours of the theme. */
  restyle(): void {
    this.#trend.build();
  }

  get points(): number {
    return this.#trend.points;
  }

  get loop_ms(): number | undefined {
    return this.#loop_ms;
  }

  #showLoop(glass_ms: number | undefined, command_ms: number | undefined): void {
    this.#loop_ms = glass_ms === undefined || command_ms === undefined ? undefined : glass_ms + command_ms;
    const share = this.#loop_ms === undefined ? 0 : Math.min(1, this.#loop_ms / this.#limit_ms);
    const meter = byId("loop-meter");
    meter.style.setProperty("--share", share.toFixed(3));
    meter.setAttribute("aria-valuenow", (share * 100).toFixed(0));
    byId("loop").dataset["level"] = this.#loop_ms !== undefined && this.#loop_ms > this.#limit_ms ? "bad" : "good";
    setText(byId("loop-value"), this.#loop_ms === undefined ? "–" : `${age(this.#loop_ms)} of ${this.#limit_ms.toFixed(0)} ms`);
  }
}

function fact(testId: string, text: string): void {
  const element = document.querySelector(`[data-testid="${testId}"]`);
  if (element) setText(element, text);
}
