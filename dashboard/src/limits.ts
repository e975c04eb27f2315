// Every bound and every period of the page, in one place.

/** History that the plots show, in seconds; one sample a second. */
export const HISTORY_S = 300;
/** Stations kept in memory; beyond it the one not heard for the longest goes. */
export const STATIONS_MAX = 5_000;
/** Positions in a vehicle's trail. */
export const TRAIL_POINTS = 28;
/** Smallest time between two points of a trail. */
export const TRAIL_STEP_MS = 250;
/** A station not heard for this long starts to fade ... (a CAM comes at least once a second: EN 302 637-2, 6.1.3) */
export const FADE_FROM_MS = 3_000;
/** ... and after this long it is gone. */
export const GONE_AFTER_MS = 10_000;
/** Dead reckoning goes no further than this beyond the last position. */
export const EXTRAPOLATE_MAX_MS = 1_500;
/** Time constant with which a vehicle glides from where it was drawn to where it is. */
export const GLIDE_TAU_MS = 160;
/** A correction larger than this is a jump, not a glide. */
export const GLIDE_MAX_M = 80;
/** Hops, and message types, of which a history is kept. */
export const SERIES_MAX = 64;
/** Hops drawn together; there are no more colours that can be told apart. */
export const HOPS_DRAWN_MAX = 8;
export const KPIS_PERIOD_MS = 1_000;
/** Pause before what is needed once is asked for again. */
export const RETRY_MS = 1_000;
export const STATION_PERIOD_MS = 500;
export const REQUEST_TIMEOUT_MS = 5_000;
/** Window over which the rate of drops is computed from totals. */
export const DROP_WINDOW_S = 5;
/** Children of one node that the message tree shows; it says how many more there are. */
export const TREE_CHILDREN_MAX = 500;
/** Perceived objects drawn around the selected station. */
export const OBJECTS_MAX = 256;
/** Waits before the live stream is opened anew when the browser has given up on it. */
export const REOPEN_MS = [1_000, 2_000, 5_000] as const;
