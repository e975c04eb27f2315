// The offset between the page's clock and the desk's clock, from pings. The sample with the shortest round trip has the smallest error.

import { CLOCK_SAMPLES } from "../limits";

interface Sample {
  offset_us: number;
  round_trip_us: number;
}

export class DeskClock {
  #samples: Sample[] = [];
  #best: Sample | undefined;

  /** Forgets the offset: a restarted desk may have another clock. */
  reset(): void {
    this.#samples = [];
    this.#best = undefined;
  }

  /** Takes a first estimate from a one-way message; its error is the message's latency. */
  begin(time_us: number, now_us: number): void {
    this.#best = { offset_us: time_us - now_us, round_trip_us: Number.POSITIVE_INFINITY };
  }

  /** Takes an answered ping: sent and received at times of the page, answered at a time of the desk. */
  take(sent_us: number, answered_us: number, received_us: number): void {
    const round_trip_us = received_us - sent_us;
    if (round_trip_us < 0) return;
    this.#samples.push({ offset_us: answered_us - (sent_us + received_us) / 2, round_trip_us });
    if (this.#samples.length > CLOCK_SAMPLES) this.#samples.shift();
    this.#best = this.#samples.reduce((best, sample) => (sample.round_trip_us < best.round_trip_us ? sample : best));
  }

  /** Returns the desk's time, or `undefined` before the first message. */
  at(now_us: number): number | undefined {
    return this.#best === undefined ? undefined : now_us + this.#best.offset_us;
  }

  /** Largest error of the offset, `undefined` before the first ping. */
  get uncertainty_us(): number | undefined {
    return this.#best && Number.isFinite(this.#best.round_trip_us) ? this.#best.round_trip_us / 2 : undefined;
  }

  /** Round trip of the newest ping. */
  get round_trip_us(): number | undefined {
    return this.#samples.at(-1)?.round_trip_us;
  }
}
