// The JSON messages between page and desk: docs/reference/teleop-desk-websocket.md. Ranges here and there are the same.

import { MESSAGE_CHARACTERS_MAX } from "../limits";
import { bool, type Decoded, type Decoder, integer, list, Malformed, nullable, number, object, oneOf, oneOfOr, pair, text } from "./decode";
import { CAMERAS_MAX } from "./frame";

export const PROTOCOL_VERSION = 1;
export const SUBPROTOCOL = "viaduct.desk.v1";
export const PATH = "/v1/desk";

const SAFE_MAX = Number.MAX_SAFE_INTEGER;
const U32_MAX = 0xffff_ffff;
const MS_MAX = 3_600_000;
const time_us = integer(0, SAFE_MAX);
const ms = number(0, MS_MAX);
const speed_mps = number(0, 100);
const name = text(64);
const code = text(64);

const hello = object({ version: integer(1, 255), desk: name, login: oneOf("token", "none"), time_us });

const welcome = object({
  session: name,
  name,
  role: oneOf("driver", "observer"),
  may: list(8, oneOfOr("nothing", "nothing", "drive", "take_over", "emergency_stop")),
  vehicle: object({ name, steering_max_rad: number(0.01, 2), speed_max_mps: speed_mps }),
  cameras: list(
    CAMERAS_MAX,
    object({ camera: integer(0, CAMERAS_MAX - 1), name, place: oneOfOr("other", "front", "left", "right", "rear", "other"), period_us: integer(1_000, 60_000_000) }),
  ),
  timing: object({
    command_hz: number(10, 200),
    state_hz: number(5, 100),
    late_ms: ms,
    freeze_ms: ms,
    latency_limit_ms: ms,
    hold_ms: ms,
    ramp_ms: ms,
    stop_ms: ms,
  }),
});

const state = object({
  seq: integer(0, U32_MAX),
  time_us,
  vehicle: object({
    age_ms: nullable(ms),
    speed_mps: nullable(number(-100, 100)),
    speed_limit_mps: nullable(speed_mps),
    limit_reason: oneOfOr("other", "vehicle", "latency", "loss", "camera", "clock", "road", "not_driving", "other"),
    steering_rad: nullable(number(-2, 2)),
    gear: nullable(oneOf("P", "R", "N", "D")),
    hazard_lights: nullable(bool),
  }),
  position: nullable(object({ lat_deg: number(-90, 90), lon_deg: number(-180, 180), heading_deg: nullable(number(0, 360)) })),
  driving: object({
    state: oneOfOr("stopped", "idle", "requested", "ready", "driving", "hold", "ramp", "stopped"),
    reason: nullable(code),
    since_us: time_us,
    holder: nullable(object({ name, you: bool })),
    request: nullable(object({ id: integer(0, U32_MAX), name, you: bool })),
  }),
  link: object({
    connected: bool,
    rtt_ms: nullable(ms),
    one_way_ms: nullable(ms),
    loss: nullable(number(0, 1)),
    rate_mbps: nullable(number(0, 100_000)),
    missed: integer(0, SAFE_MAX),
  }),
  command: object({ age_ms: nullable(ms), seq: nullable(integer(0, U32_MAX)), refused: integer(0, SAFE_MAX) }),
  clock: object({ offset_us: nullable(integer(-SAFE_MAX, SAFE_MAX)), uncertainty_us: nullable(integer(0, SAFE_MAX)) }),
});

const latitudeLongitude = pair(number(-180, 180));
const map = object({ lines: list(256, object({ kind: oneOfOr("lane", "lane", "edge", "course"), points: list(2_000, latitudeLongitude) })) });

const event = object({ time_us, level: oneOfOr("info", "info", "warning", "alarm"), code, text: text(400) });
const error = object({ code, text: text(400), fatal: bool, reply_to: nullable(text(32)) });
const pong = object({ seq: integer(0, U32_MAX), page_us: integer(0, SAFE_MAX), time_us });

const MESSAGES = { hello, welcome, state, map, event, error, pong } as const;

export type Hello = Decoded<typeof hello>;
export type Welcome = Decoded<typeof welcome>;
export type DeskState = Decoded<typeof state>;
export type DrivingState = DeskState["driving"]["state"];
export type LimitReason = DeskState["vehicle"]["limit_reason"];
export type Gear = "P" | "R" | "N" | "D";
export type Place = Welcome["cameras"][number]["place"];
export type MapLines = Decoded<typeof map>;
export type DeskEvent = Decoded<typeof event>;
export type DeskError = Decoded<typeof error>;
export type Pong = Decoded<typeof pong>;

export type ServerMessage = { [K in keyof typeof MESSAGES]: { type: K } & Decoded<(typeof MESSAGES)[K]> }[keyof typeof MESSAGES];

/** Parses a text message of the desk. Throws `Malformed`. Returns `undefined` for a type that this version does not know. */
export function parseServerMessage(json: string): ServerMessage | undefined {
  if (json.length > MESSAGE_CHARACTERS_MAX) throw new Malformed(`the message: expected at most ${MESSAGE_CHARACTERS_MAX} characters`);
  const value = parseJson(json);
  const type = object({ type: text(32) })(value, "").type;
  if (!Object.hasOwn(MESSAGES, type)) return undefined;
  const decoder = MESSAGES[type as keyof typeof MESSAGES] as Decoder<object>;
  return { type, ...decoder(value, "") } as ServerMessage;
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new Malformed("the message: expected JSON");
  }
}

export interface Command {
  type: "command";
  /** Increases by 1 with each command of a session, 0 to 2^32 - 1. */
  seq: number;
  /** Time of the input on the page's clock: microseconds since the page was opened. */
  page_us: number;
  /** The same time on the desk's clock, as far as the page knows it. */
  time_us: number | null;
  /** Share of the largest steering angle, -1 (right) to 1 (left). */
  steering: number;
  /** Share of the largest acceleration, 0 to 1. */
  accelerator: number;
  /** Share of the largest deceleration, 0 to 1. */
  brake: number;
  gear: Gear;
  dead_man: boolean;
  /** `true` from an emergency stop until the grant has ended. */
  emergency: boolean;
  input: "none" | "keyboard" | "gamepad" | "wheel";
}

/** Counts of one camera since the page was opened. */
export interface CameraReport {
  camera: number;
  /** Number of the newest frame that was shown. */
  frame: number | null;
  received: number;
  shown: number;
  skipped: number;
  late: number;
  older: number;
  decode_errors: number;
  marks_read: number;
  marks_failed: number;
  frozen: boolean;
  /** Glass-to-glass latency of frames shown since the last report, in microseconds; at most `GLASS_SAMPLES_MAX`, the newest ones. */
  glass_us: number[];
}

export type ClientMessage =
  | { type: "login"; version: number; token: string }
  | { type: "ping"; seq: number; page_us: number }
  | Command
  | { type: "request_control" }
  | { type: "release_control" }
  | { type: "take_over"; reason: string }
  | { type: "answer_request"; id: number; grant: boolean }
  | { type: "emergency_stop" }
  | { type: "report"; command_hz: number; command_gap_max_ms: number; malformed: number; cameras: CameraReport[] };
