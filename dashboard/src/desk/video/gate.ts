// Decides which frames of one camera may still be shown: never an older one after a newer one.

import { RESTART_MS } from "../limits";
import type { Frame } from "../protocol/frame";

/** `older`: the frame is not newer than the last accepted one. */
export type Verdict = "accepted" | "older";

export class Gate {
  /** Frames that were rejected because a newer one was accepted before. */
  older = 0;
  /** Times that numbers or capture times went back and stayed there. */
  restarts = 0;
  #number: number | undefined;
  #capture_us = 0;
  #accepted_ms = 0;

  offer(frame: Frame, now_ms: number): Verdict {
    if (this.#number === undefined || this.#isNewer(frame)) return this.#accept(frame, now_ms);
    if (now_ms - this.#accepted_ms < RESTART_MS) {
      this.older += 1;
      return "older";
    }
    this.restarts += 1;
    return this.#accept(frame, now_ms);
  }

  /** A restarted camera counts from 0 again, so a newer capture time is enough if the number has gone back far. */
  #isNewer(frame: Frame): boolean {
    const ahead = (frame.number - (this.#number ?? 0)) >>> 0;
    if (ahead === 0 || frame.capture_us <= this.#capture_us) return false;
    if (ahead < 2 ** 31) return true;
    const back = 2 ** 32 - ahead;
    return back > 100;
  }

  #accept(frame: Frame, now_ms: number): Verdict {
    this.#number = frame.number;
    this.#capture_us = frame.capture_us;
    this.#accepted_ms = now_ms;
    return "accepted";
  }
}
