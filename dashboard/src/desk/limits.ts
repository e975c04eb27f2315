// Every limit and period of the driver's desk.

/** Longest binary message that is accepted: a picture of 4 MiB and its header. */
export const FRAME_OCTETS_MAX = 4 * 1024 * 1024 + 64;
/** Longest text message that is accepted. */
export const MESSAGE_CHARACTERS_MAX = 262_144;
/** Bytes that the browser has not sent yet, beyond which a command is withheld: a newer one will follow. */
export const UNSENT_OCTETS_MAX = 8_192;
/** Pauses before the connection is opened again. */
export const REOPEN_MS = [250, 500, 1_000, 2_000] as const;
/** Time without a `state` after which the desk counts as lost: pictures are marked, and the page shows an alarm. */
export const SILENT_MS = 500;
/** Silence after which the connection is closed and opened again. */
export const SILENT_CLOSE_MS = 4_000;
/** Longest time for connecting, and for the answer to a login. After it the connection is closed and opened again. */
export const CONNECT_MAX_MS = 4_000;
export const PING_PERIOD_MS = 500;
export const REPORT_PERIOD_MS = 1_000;
/** Samples from which the clock's offset is taken: the one with the shortest round trip. */
export const CLOCK_SAMPLES = 32;
/** Period of the input timer: gamepads are read and a command is sent. */
export const TICK_MS = 10;
/** Time without a newer frame after which older frame numbers or times count as a restarted camera. */
export const RESTART_MS = 1_000;
/** Latency samples of a camera that a report carries. */
export const GLASS_SAMPLES_MAX = 64;
/** Latency samples of a camera from which the shown median is taken. */
export const GLASS_MEDIAN_OF = 15;
/** Latency samples of a camera that tests can read. */
export const GLASS_KEPT = 4_096;
/** Period of the texts that change all the time. */
export const TEXT_PERIOD_MS = 100;
/** Period of the points in the plot, and their number: one minute. */
export const TREND_PERIOD_MS = 250;
export const TREND_POINTS = 240;
/** Points of the vehicle's track on the map, and the smallest distance between two. */
export const TRACK_POINTS = 2_000;
export const TRACK_STEP_M = 0.5;
/** Events in the list. */
export const EVENTS_MAX = 100;
/** Age of the vehicle's state beyond which its values are marked as old. */
export const STATE_OLD_MS = 500;
/** Pedal position at or below which the accelerator counts as released. */
export const RELEASED = 0.05;
/** Speed up to which another gear may be selected. */
export const GEAR_SPEED_MAX_MPS = 0.3;
/** Time for the vehicle to confirm an emergency stop before the page repeats it. */
export const EMERGENCY_REPEAT_MS = 200;
/** Time after which an emergency stop that could not be delivered is no longer sent. */
export const EMERGENCY_VALID_MS = 3_000;
