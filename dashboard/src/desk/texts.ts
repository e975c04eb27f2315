// Texts for codes of the protocol.

import type { Blocked } from "./input/driver";
import type { Session } from "./net/session";
import type { DeskState, DrivingState, LimitReason } from "./protocol/messages";
import type { FrozenReason } from "./video/freshness";

export const DRIVING: Readonly<Record<DrivingState, { symbol: string; label: string }>> = {
  idle: { symbol: "○", label: "Idle" },
  requested: { symbol: "◌", label: "Requested" },
  ready: { symbol: "◎", label: "Ready" },
  driving: { symbol: "▶", label: "Driving" },
  hold: { symbol: "‖", label: "Hold" },
  ramp: { symbol: "▼", label: "Braking" },
  stopped: { symbol: "■", label: "Stopped" },
};

const REASONS: Readonly<Record<string, string>> = {
  no_driver: "no driver",
  waiting_vehicle: "waiting for the vehicle",
  waiting_holder: "waiting for the driver in control",
  dead_man: "dead-man control released",
  link_lost: "link to the vehicle lost",
  driver_lost: "no commands from the driver",
  command_age: "commands too old",
  emergency_stop: "emergency stop",
  released: "control released",
  taken_over: "taken over",
  refused: "request refused",
  plausibility: "implausible commands",
  vehicle_fault: "fault of the vehicle",
  latency: "latency too high",
};

/** Returns the text of a reason; a code that this page does not know is shown as it is. */
export function reasonText(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason] ?? reason.replaceAll("_", " "));
}

const LIMITS: Readonly<Record<LimitReason, string>> = {
  vehicle: "limit of the vehicle",
  latency: "because of latency",
  loss: "because of loss",
  camera: "because of a frozen camera",
  clock: "clock not synchronised",
  road: "limit of the road",
  not_driving: "no driver in control",
  other: "set by the vehicle",
};

export function limitText(vehicle: DeskState["vehicle"]): string {
  return LIMITS[vehicle.limit_reason];
}

/** Returns the text of the alarm, or an empty text. `state` is `undefined` while there is no current one. */
export function alarmText({ phase, fault, wasOpen }: Session, deskLost: boolean, state: DeskState | undefined): string {
  if (phase === "refused") return `The desk ended the session: ${fault}`;
  if (wasOpen && deskLost) return "No connection to the desk. The pictures are old, and commands do not arrive; the vehicle stops by itself.";
  if (state?.link.connected === false) return "The link to the vehicle is lost. The vehicle brakes and stops by itself.";
  if (state?.vehicle.limit_reason === "camera") return "The main camera is frozen: the speed limit is 0. The vehicle brakes and stands until new pictures arrive.";
  return "";
}

export const FROZEN: Readonly<Record<FrozenReason, string>> = {
  desk_lost: "no connection to the desk",
  no_frames: "no new frames",
  old_frames: "frames arrive too late",
  same_picture: "the camera repeats the same picture",
};

export function blockedText(blocked: Blocked | undefined, gear: string): string {
  switch (blocked) {
    case undefined:
      return gear === "P" || gear === "N" ? "Select a gear: Q and E" : "The vehicle follows the controls";
    case "no_grant":
      return "Not in control";
    case "not_attentive":
      return "This window does not have the focus: click on it";
    case "release_first":
      return "Release dead-man control and accelerator first";
    case "dead_man":
      return "Hold the dead-man control to drive";
    case "emergency":
      return "Emergency stop";
  }
}

/** Speed in km/h without a sign, `–` if unknown. */
export function kmh(speed_mps: number | null): string {
  return speed_mps === null ? "–" : Math.abs(speed_mps * 3.6).toFixed(0);
}

/** 84 ms, 1.2 s, 14 s */
export function age(ms: number | undefined | null): string {
  if (ms === undefined || ms === null || !Number.isFinite(ms)) return "–";
  if (ms < 1_000) return `${Math.max(0, ms).toFixed(0)} ms`;
  return ms < 9_950 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 1_000).toFixed(0)} s`;
}

/** 0 %, 0.3 %, 12 % */
export function percent(share: number | null): string {
  if (share === null) return "–";
  const value = share * 100;
  return `${value === 0 || value >= 9.95 ? value.toFixed(0) : value.toFixed(value < 0.095 ? 2 : 1)} %`;
}

/** 24.3 Mb/s, 310 kb/s */
export function bitRate(mbps: number | null): string {
  if (mbps === null) return "–";
  return mbps < 0.9995 ? `${(mbps * 1_000).toFixed(0)} kb/s` : `${mbps.toFixed(mbps < 99.95 ? 1 : 0)} Mb/s`;
}
