// Every limit and period of the page.

/** History in the plots, in seconds; one sample per second. */
export const HISTORY_S = 300;
/** Maximum number of stations in memory; beyond it the station that has been silent for longest is dropped. */
export const STATIONS_MAX = 5_000;
/** Maximum number of positions in a vehicle's trail. */
export const TRAIL_POINTS = 28;
/** Shortest time between two points of a trail. */
export const TRAIL_STEP_MS = 250;
/** Silence after which a station starts to fade (a CAM is sent at least once a second: EN 302 637-2, 6.1.3). */
export const FADE_FROM_MS = 3_000;
/** Silence after which a station is removed. */
export const GONE_AFTER_MS = 10_000;
/** Longest extrapolation beyond the last position. */
export const EXTRAPOLATE_MAX_MS = 1_500;
/** Time constant with which the drawn position approaches the reported one. */
export const GLIDE_TAU_MS = 160;
/** Largest correction that is smoothed; a larger one is drawn as a jump. */
export const GLIDE_MAX_M = 80;
/** Maximum number of hops, and of message types, with a history. */
export const SERIES_MAX = 64;
/** Maximum number of hops drawn at the same time: the number of distinguishable colours. */
export const HOPS_DRAWN_MAX = 8;
/** Maximum number of stages of key figures drawn at the same time. */
export const STAGES_DRAWN_MAX = 8;
export const KPIS_PERIOD_MS = 1_000;
/** Pause before a failed request for initial data is repeated. */
export const RETRY_MS = 1_000;
export const STATION_PERIOD_MS = 500;
export const REQUEST_TIMEOUT_MS = 5_000;
/** Window in which drop rates are computed from totals. */
export const DROP_WINDOW_S = 5;
/** Maximum number of children of one node shown in the message tree; the number of further ones is shown below. */
export const TREE_CHILDREN_MAX = 500;
/** Maximum number of perceived objects drawn around the selected station. */
export const OBJECTS_MAX = 256;
/** Pauses before the live stream is reopened after the browser has given up. */
export const REOPEN_MS = [1_000, 2_000, 5_000] as const;
/** Period in which events and infrastructure are requested; a message that changes them triggers a request at once. */
export const OBJECTS_PERIOD_MS = 2_000;
/** Shortest time between two such requests. */
export const OBJECTS_PAUSE_MS = 400;
/** Time for which an ended event remains visible, fading. */
export const ENDED_SHOWN_MS = 10_000;
/** Maximum number of features of the infrastructure that are drawn. */
export const INFRASTRUCTURE_MAX = 5_000;
/** Maximum number of events whose labels are drawn; beyond it only the label of the selected event is drawn. */
export const EVENT_LABELS_MAX = 25;
/** Smallest distance between two lines of the graticule, in pixels. */
export const GRATICULE_MIN_PX = 110;
