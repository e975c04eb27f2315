// The position of the controls, whatever device they come from.

export interface Controls {
  /** -1 (right) to 1 (left). */
  steering: number;
  /** 0 to 1. */
  accelerator: number;
  /** 0 to 1. */
  brake: number;
  deadMan: boolean;
}

export const RELEASED_CONTROLS: Controls = { steering: 0, accelerator: 0, brake: 0, deadMan: false };

export function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
