// The emergency stop: repeated until the vehicle confirms it. A pure machine.

import { EMERGENCY_REPEAT_MS, EMERGENCY_VALID_MS } from "../limits";
import type { DrivingState } from "../protocol/messages";

/**
 * `sent`: the page repeats the message until the vehicle confirms the stop. `undelivered`: the connection was lost before the
 * confirmation. A vehicle that this page drives stops by itself, because it receives no commands.
 */
export type EmergencyStatus = "ready" | "sent" | "confirmed" | "undelivered";

export class Emergency {
  status: EmergencyStatus = "ready";
  #pressed_ms = 0;
  #sent_ms = Number.NEGATIVE_INFINITY;

  press(now_ms: number): void {
    this.status = "sent";
    this.#pressed_ms = now_ms;
    this.#sent_ms = Number.NEGATIVE_INFINITY;
  }

  /**
   * Returns `true` if the message must be sent now. `driving` is `undefined` if the page has no current state, also for a moment after
   * a reconnection.
   */
  step(driving: DrivingState | undefined, reason: string | null, connected: boolean, now_ms: number): boolean {
    if (this.status === "ready") return false;
    if (!connected) {
      if (this.status === "sent") this.status = "undelivered";
      return false;
    }
    if (driving === "stopped" && reason === "emergency_stop") {
      this.status = "confirmed";
      return false;
    }
    if (this.status !== "confirmed" && !this.#isTooLate(now_ms)) return this.#send(now_ms);
    // The stop was confirmed and has ended, or it is too late to send it. Without a current state, wait: the vehicle may still confirm the stop.
    if (driving !== undefined) this.status = "ready";
    return false;
  }

  /** After a long interruption the vehicle has stopped by itself, and may have another driver. */
  #isTooLate(now_ms: number): boolean {
    return this.status === "undelivered" && now_ms - this.#pressed_ms > EMERGENCY_VALID_MS;
  }

  #send(now_ms: number): boolean {
    if (this.status === "sent" && now_ms - this.#sent_ms < EMERGENCY_REPEAT_MS) return false;
    this.status = "sent";
    this.#sent_ms = now_ms;
    return true;
  }
}
