// Glass-to-glass latencies of one camera: kept for the shown median, for the next report and for tests.

import { GLASS_KEPT, GLASS_MEDIAN_OF, GLASS_SAMPLES_MAX } from "../limits";

export class GlassLatency {
  #kept: number[] = [];
  #unreported: number[] = [];

  add(latency_us: number): void {
    push(this.#kept, latency_us, GLASS_KEPT);
    push(this.#unreported, latency_us, GLASS_SAMPLES_MAX);
  }

  /** Median of the newest samples, `undefined` before the first. */
  get median_us(): number | undefined {
    const newest = this.#kept.slice(-GLASS_MEDIAN_OF).sort((a, b) => a - b);
    return newest[Math.floor(newest.length / 2)];
  }

  /** Returns the samples since the last call. */
  takeUnreported(): number[] {
    const samples = this.#unreported;
    this.#unreported = [];
    return samples;
  }

  get samples(): readonly number[] {
    return this.#kept;
  }
}

function push(list: number[], value: number, max: number): void {
  list.push(Math.round(value));
  if (list.length > max) list.shift();
}
