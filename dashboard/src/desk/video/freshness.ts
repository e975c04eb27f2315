// Decides how current a shown picture is. A picture that is not current is always marked.

/** `waiting`: no frame was shown yet. `late`: shown, but older than it should be. `frozen`: must not be driven by. */
export type Picture = "waiting" | "live" | "late" | "frozen";

/**
 * `desk_lost`: no connection to the desk. `no_frames`: no new frame was shown. `old_frames`: new frames are shown, but they are old.
 * `same_picture`: new frames have the same content, so the camera repeats an old picture.
 */
export type FrozenReason = "desk_lost" | "no_frames" | "old_frames" | "same_picture";

export interface Shown {
  /** Page time at which the last frame was shown. */
  shown_ms: number;
  /** Capture time on the desk's clock. */
  capture_us: number;
  /** Page time since which all pictures have the same content. */
  same_since_ms: number;
}

export interface FreshnessLimits {
  late_ms: number;
  freeze_ms: number;
}

export interface Freshness {
  picture: Picture;
  /** Age of the picture: since its capture if the desk's time is known, else since it was shown. */
  age_ms: number | undefined;
  reason: FrozenReason | undefined;
}

export function freshness(shown: Shown | undefined, deskLost: boolean, now_ms: number, desk_us: number | undefined, limits: FreshnessLimits): Freshness {
  if (shown === undefined) return { picture: "waiting", age_ms: undefined, reason: undefined };
  const sinceShown_ms = now_ms - shown.shown_ms;
  const sinceCapture_ms = desk_us === undefined ? sinceShown_ms : (desk_us - shown.capture_us) / 1_000;
  // The capture time comes from another clock: it may make a picture older, never younger than its time on the screen.
  const age_ms = Math.max(sinceCapture_ms, sinceShown_ms);
  const same_ms = now_ms - shown.same_since_ms;
  const reason = frozenReason(sinceShown_ms, age_ms, same_ms, deskLost, limits);
  if (reason !== undefined) return { picture: "frozen", age_ms: reason === "same_picture" ? Math.max(age_ms, same_ms) : age_ms, reason };
  return { picture: age_ms > limits.late_ms ? "late" : "live", age_ms, reason };
}

function frozenReason(sinceShown_ms: number, age_ms: number, same_ms: number, deskLost: boolean, { freeze_ms }: FreshnessLimits): FrozenReason | undefined {
  if (deskLost) return "desk_lost";
  if (sinceShown_ms > freeze_ms) return "no_frames";
  if (age_ms > freeze_ms) return "old_frames";
  return same_ms > freeze_ms && same_ms > sinceShown_ms ? "same_picture" : undefined;
}

/**
 * Returns the FNV-1a hash (32 bits) of a JPEG file without its application and comment segments: equal pictures have equal hashes,
 * also if the vehicle has added their numbers and times.
 */
export function fingerprint(picture: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const octet of picture.subarray(contentStart(picture))) hash = Math.imul(hash ^ octet, 0x01000193);
  return hash >>> 0;
}

/** Returns the offset of the first segment that is neither an application segment (APP0 to APP15) nor a comment (ITU-T T.81, B.1). */
function contentStart(picture: Uint8Array): number {
  if (picture[0] !== 0xff || picture[1] !== 0xd8) return 0;
  let at = 2;
  for (;;) {
    const [marker = 0, kind = 0, high = 0, low = 0] = picture.subarray(at, at + 4);
    const skipped = marker === 0xff && ((kind >= 0xe0 && kind <= 0xef) || kind === 0xfe);
    const length = high * 256 + low;
    if (!skipped || length < 2 || at + 2 + length > picture.length) return at;
    at += 2 + length;
  }
}
