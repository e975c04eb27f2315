// Turns the controls into commands: a pure machine. It sends nothing without a grant, and no motion before the dead-man control
// was released and pressed again.

import { GEAR_SPEED_MAX_MPS, RELEASED } from "../limits";
import type { Command, Gear } from "../protocol/messages";
import { clamp, type Controls } from "./controls";

/** Reason why the controls have no effect. */
export type Blocked = "no_grant" | "not_attentive" | "release_first" | "dead_man" | "emergency";

export interface DriverFacts {
  /** This page has the grant. */
  granted: boolean;
  /** The page is visible and has the focus, and no dialog is open. */
  attentive: boolean;
  speed_mps: number | null;
  /** Gear of the vehicle. */
  gear: Gear | null;
}

const GEARS: readonly Gear[] = ["P", "R", "N", "D"];

export class Driver {
  gear: Gear = "P";
  /** Why the vehicle does not follow the controls; `undefined`: it does. */
  blocked: Blocked | undefined = "no_grant";
  #armed = false;
  #emergency = false;
  #seq = 0;

  /** Returns the next command, or `undefined` without a grant. */
  step(controls: Controls, facts: DriverFacts, input: Command["input"], page_us: number, time_us: number | undefined): Command | undefined {
    this.blocked = this.#block(controls, facts);
    if (!facts.granted) {
      this.gear = facts.gear ?? this.gear;
      return undefined;
    }
    const drives = this.blocked === undefined;
    const brake = round(controls.brake);
    this.#seq = (this.#seq + 1) % 2 ** 32;
    return {
      type: "command",
      seq: this.#seq,
      page_us,
      time_us: time_us === undefined ? null : Math.round(time_us),
      steering: round(controls.steering),
      // The brake wins over the accelerator.
      accelerator: drives && brake <= RELEASED ? round(controls.accelerator) : 0,
      brake: this.#emergency ? 1 : brake,
      gear: this.gear,
      dead_man: drives,
      emergency: this.#emergency,
      input,
    };
  }

  /** Makes all commands of this grant demand an emergency stop. */
  stop(): void {
    this.#emergency = true;
  }

  /** Selects the gear `by` places further. Returns `false` if the vehicle moves. */
  shift(by: number, facts: DriverFacts): boolean {
    if (!facts.granted || facts.speed_mps === null || Math.abs(facts.speed_mps) > GEAR_SPEED_MAX_MPS) return false;
    this.gear = GEARS[clamp(GEARS.indexOf(this.gear) + by, 0, GEARS.length - 1)] as Gear;
    return true;
  }

  #block(controls: Controls, facts: DriverFacts): Blocked | undefined {
    if (!facts.granted) {
      this.#armed = false;
      this.#emergency = false;
      return "no_grant";
    }
    if (this.#emergency) return "emergency";
    if (!facts.attentive) {
      this.#armed = false;
      return "not_attentive";
    }
    if (!controls.deadMan && controls.accelerator <= RELEASED) this.#armed = true;
    if (!this.#armed) return "release_first";
    if (controls.deadMan) return undefined;
    // An accelerator that is still pressed when the dead-man control is pressed again must not start the vehicle.
    this.#armed = controls.accelerator <= RELEASED;
    return "dead_man";
  }
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
