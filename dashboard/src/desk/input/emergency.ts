// The emergency stop: repeated until the vehicle confirms it. A pure machine.

import { EMERGENCY_REPEAT_MS, EMERGENCY_VALID_MS } from "../limits";
import type { DrivingState } from "../protocol/messages";

/** `undelivered`: there is no connection, so the vehicle stops by itself because it receives no commands. */
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

  /** Returns `true` if the message must be sent now. */
  step(driving: DrivingState | undefined, reason: string | null, connected: boolean, now_ms: number): boolean {
    if (this.status === "ready") return false;
    if (!connected) {
      this.status = "undelivered";
      return false;
    }
    if (this.status === "undelivered") return this.#sendAgain(now_ms);
    if (driving === "stopped" && reason === "emergency_stop") {
      this.status = "confirmed";
      return false;
    }
    // Another state afterwards: a new grant, or the stop was reset at the vehicle.
    if (this.status === "confirmed") {
      this.status = "ready";
      return false;
    }
    if (now_ms - this.#sent_ms < EMERGENCY_REPEAT_MS) return false;
    this.#sent_ms = now_ms;
    return true;
  }

  /** After a long interruption the vehicle has stopped by itself, and may have another driver. */
  #sendAgain(now_ms: number): boolean {
    if (now_ms - this.#pressed_ms > EMERGENCY_VALID_MS) return false;
    this.status = "sent";
    this.#sent_ms = now_ms;
    return true;
  }
}
