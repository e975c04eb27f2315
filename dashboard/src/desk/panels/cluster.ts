// The instruments below the views: speed, limit, gear, steering, and the state of the controls.

import { byId, setText } from "../../dom";
import type { Controls } from "../input/controls";
import { STATE_OLD_MS } from "../limits";
import type { DeskState, Gear } from "../protocol/messages";
import { kmh, limitText } from "../texts";

/** Turn of the drawn wheel at the largest steering angle, in degrees. */
const WHEEL_TURN_DEG = 135;
/** Excess over the limit that is not shown as such. */
const OVER_MPS = 0.5;

export interface InputFacts {
  controls: Controls;
  /** The dead-man control is pressed and has effect. */
  drives: boolean;
  hint: string;
  device: string;
  gear: Gear;
  granted: boolean;
}

export class Cluster {
  readonly #gears = [...document.querySelectorAll<HTMLElement>(".gears [data-gear]")];
  #steeringMax_rad = 0.6;

  set steeringMax_rad(value: number) {
    this.#steeringMax_rad = value;
  }

  /** Shows the vehicle's state; `undefined`: there is none that is current. */
  showVehicle(vehicle: DeskState["vehicle"] | undefined): void {
    const old = vehicle === undefined || (vehicle.age_ms ?? Number.POSITIVE_INFINITY) > STATE_OLD_MS;
    const over = !old && vehicle.speed_mps !== null && vehicle.speed_limit_mps !== null && Math.abs(vehicle.speed_mps) > vehicle.speed_limit_mps + OVER_MPS;
    document.querySelector<HTMLElement>(".cluster")?.classList.toggle("old", old);
    byId("speed").dataset["over"] = String(over);
    setText(byId("speed-value"), old ? "–" : kmh(vehicle.speed_mps));
    setText(byId("limit-value"), old ? "–" : kmh(vehicle.speed_limit_mps));
    setText(byId("limit-reason"), old ? "no state of the vehicle" : limitText(vehicle));
    for (const gear of this.#gears) gear.classList.toggle("chosen", !old && gear.dataset["gear"] === vehicle.gear);
    setText(byId("hazard"), !old && vehicle.hazard_lights === true ? "▲ hazard" : "");
    this.#showSteering(old ? null : vehicle.steering_rad);
  }

  showInput({ controls, drives, hint, device, gear, granted }: InputFacts): void {
    byId("dead-man").dataset["on"] = drives ? "true" : controls.deadMan ? "blocked" : "false";
    setText(byId("dead-man-text"), drives ? "dead-man held" : controls.deadMan ? "dead-man held, no effect" : "dead-man released");
    setText(byId("hint"), hint);
    setText(byId("device"), device);
    bar("input-steering", Math.abs(controls.steering) / 2, controls.steering > 0 ? 0.5 - controls.steering / 2 : 0.5);
    bar("input-accelerator", controls.accelerator, 0);
    bar("input-brake", controls.brake, 0);
    byId("wheel-wanted").setAttribute("transform", `rotate(${(-controls.steering * WHEEL_TURN_DEG).toFixed(1)})`);
    const shown = this.#gears.find((element) => element.classList.contains("chosen"))?.dataset["gear"];
    setText(byId("gear-wanted"), granted && shown !== undefined && shown !== gear ? `→ ${gear}` : "");
  }

  #showSteering(steering_rad: number | null): void {
    const turn_deg = steering_rad === null ? 0 : (-steering_rad / this.#steeringMax_rad) * WHEEL_TURN_DEG;
    byId("wheel-turn").setAttribute("transform", `rotate(${turn_deg.toFixed(1)})`);
    byId("wheel-arc").setAttribute("d", arc(turn_deg));
    setText(byId("steering-value"), steering_rad === null ? "–" : steeringText(steering_rad));
  }
}

/** 0°, 12° left, 3° right */
function steeringText(steering_rad: number): string {
  const degrees = Math.round((steering_rad * 180) / Math.PI);
  return degrees === 0 ? "0°" : `${Math.abs(degrees)}° ${degrees > 0 ? "left" : "right"}`;
}

/** Returns the path of the arc from the top to the wheel's turn. */
function arc(turn_deg: number): string {
  if (Math.abs(turn_deg) < 1) return "";
  const radius = 42;
  const angle = (turn_deg * Math.PI) / 180;
  return `M0 ${-radius}A${radius} ${radius} 0 0 ${turn_deg > 0 ? 1 : 0} ${(radius * Math.sin(angle)).toFixed(2)} ${(-radius * Math.cos(angle)).toFixed(2)}`;
}

function bar(id: string, share: number, from: number): void {
  const { style } = byId(id);
  style.setProperty("--share", share.toFixed(3));
  style.setProperty("--from", from.toFixed(3));
}
