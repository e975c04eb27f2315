// Mercator to pixels for a flat map with north up: one scale and one shift.

import { mercatorPerMetre, toMercator } from "../state/motion";

const TILE_PX = 512;
/** Dashes of the outline of what an unverified message describes. */
export const UNVERIFIED_DASH: number[] = [3, 2.5];

export interface View {
  width: number;
  height: number;
  zoom: number;
  /** Pixels per Mercator unit. */
  scale: number;
  shiftX: number;
  shiftY: number;
  pixelsPerMetre: number;
}

export function viewOf(centre: { lng: number; lat: number }, zoom: number, width: number, height: number): View {
  const scale = TILE_PX * 2 ** zoom;
  const { x, y } = toMercator(centre.lng, centre.lat);
  return { width, height, zoom, scale, shiftX: width / 2 - x * scale, shiftY: height / 2 - y * scale, pixelsPerMetre: mercatorPerMetre(y) * scale };
}

/** Returns `true` if the message was signed and nothing was verified. */
export function isUnverified({ security }: { security: string }): boolean {
  return security === "unverified";
}

/** Returns the largest of 1, 2 or 5 times a power of ten metres that is at most `max_px` wide. */
export function scaleBar(pixelsPerMetre: number, max_px: number): { metres: number; width_px: number; label: string } {
  const most = max_px / pixelsPerMetre;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = power * (most / power >= 5 ? 5 : most / power >= 2 ? 2 : 1);
  const label = metres >= 1_000 ? `${metres / 1_000} km` : metres >= 1 ? `${metres} m` : `${Math.round(metres * 100)} cm`;
  return { metres, width_px: metres * pixelsPerMetre, label };
}
