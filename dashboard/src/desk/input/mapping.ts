// Which axes and buttons of a gamepad or steering wheel are the controls.

import { bool, type Decoder, integer, number, object, oneOf } from "../protocol/decode";
import { clamp, type Controls } from "./controls";

/** A snapshot of a device: the part of the Gamepad API that is used. */
export interface Pad {
  id: string;
  mapping: string;
  axes: readonly number[];
  /** 0 (released) to 1. */
  buttons: readonly number[];
}

export interface Source {
  kind: "axis" | "button";
  index: number;
  /** Position without force: 0 for a button, the centre of a steering wheel. */
  rest: number;
  /** Position of the full effect: 1 for a button, the left end of a steering wheel. */
  full: number;
}

export const FUNCTIONS = ["steering", "accelerator", "brake", "deadMan", "emergency"] as const;
export type ControlFunction = (typeof FUNCTIONS)[number];

export type Mapping = Record<ControlFunction, Source> & {
  /** A wheel is linear; the stick of a gamepad has a dead zone and a gentle centre. */
  wheel: boolean;
};

const button = (index: number): Source => ({ kind: "button", index, rest: 0, full: 1 });

/** The "standard gamepad" of the W3C: left stick, right and left trigger, right shoulder button, button B. */
export const STANDARD_MAPPING: Mapping = {
  wheel: false,
  steering: { kind: "axis", index: 0, rest: 0, full: -1 },
  accelerator: button(7),
  brake: button(6),
  deadMan: button(5),
  emergency: button(1),
};

const DEAD_ZONE = 0.08;
const CENTRE_EXPONENT = 1.6;
/** Position from which a control that is on or off counts as on. */
const PRESSED = 0.5;
/** Movement of an axis after which its value is trusted. */
const MOVED = 0.02;
/** Movement that selects an axis when a mapping is set up, and the distance from rest at which it counts as released. */
const LEARN_MOVED = 0.5;
const LEARN_RELEASED = 0.15;

export interface PadControls extends Controls {
  emergency: boolean;
}

/** Reads the controls of one device. */
export class PadReader {
  readonly mapping: Mapping;
  /** First values of axes that have not moved yet. Some pedals report the middle until they are touched for the first time. */
  readonly #unmoved = new Map<number, number>();
  readonly #moved = new Set<number>();

  constructor(mapping: Mapping) {
    this.mapping = mapping;
  }

  read(pad: Pad): PadControls {
    const { mapping } = this;
    const steering = clamp(this.#position(pad, mapping.steering), -1, 1);
    return {
      steering: mapping.wheel ? steering : shapeStick(steering),
      accelerator: clamp(this.#position(pad, mapping.accelerator), 0, 1),
      brake: clamp(this.#position(pad, mapping.brake), 0, 1),
      deadMan: this.#position(pad, mapping.deadMan) > PRESSED,
      emergency: this.#position(pad, mapping.emergency) > PRESSED,
    };
  }

  /** Returns the position between rest (0) and full (1); 0 if the device lacks the axis or it has never moved. */
  #position(pad: Pad, { kind, index, rest, full }: Source): number {
    const value = (kind === "axis" ? pad.axes : pad.buttons)[index];
    if (value === undefined || !Number.isFinite(value)) return 0;
    if (kind === "axis" && !this.#hasMoved(index, value)) return 0;
    return (value - rest) / (full - rest);
  }

  #hasMoved(index: number, value: number): boolean {
    if (this.#moved.has(index)) return true;
    const first = this.#unmoved.get(index) ?? value;
    this.#unmoved.set(index, first);
    if (Math.abs(value - first) <= MOVED) return false;
    this.#moved.add(index);
    return true;
  }
}

function shapeStick(value: number): number {
  const size = Math.abs(value);
  if (size <= DEAD_ZONE) return 0;
  return Math.sign(value) * ((size - DEAD_ZONE) / (1 - DEAD_ZONE)) ** CENTRE_EXPONENT;
}

/** Finds the axis or button that was moved to its end and released again. */
export class Learner {
  readonly #rest: Pad;
  #extremes: number[];
  #pressed = new Set<number>();

  constructor(rest: Pad) {
    this.#rest = rest;
    this.#extremes = [...rest.axes];
  }

  /** Returns the source when it is released, `undefined` before. */
  step(pad: Pad): Source | undefined {
    this.#extremes = this.#extremes.map((extreme, index) => (deviation(pad, this.#rest, index) > Math.abs(extreme - (this.#rest.axes[index] ?? 0)) ? (pad.axes[index] ?? extreme) : extreme));
    pad.buttons.forEach((value, index) => value > PRESSED && (this.#rest.buttons[index] ?? 0) <= PRESSED && this.#pressed.add(index));
    // Many pedals are axis and button at the same time: the axis has more information.
    return this.#releasedAxis(pad) ?? this.#releasedButton(pad);
  }

  #releasedAxis(pad: Pad): Source | undefined {
    const index = this.#extremes.findIndex((extreme, at) => Math.abs(extreme - (this.#rest.axes[at] ?? 0)) >= LEARN_MOVED);
    if (index === -1 || deviation(pad, this.#rest, index) > LEARN_RELEASED) return undefined;
    return { kind: "axis", index, rest: this.#rest.axes[index] ?? 0, full: this.#extremes[index] ?? 1 };
  }

  #releasedButton(pad: Pad): Source | undefined {
    const axisMoving = this.#extremes.some((extreme, at) => Math.abs(extreme - (this.#rest.axes[at] ?? 0)) >= LEARN_MOVED);
    const index = [...this.#pressed].find((at) => (pad.buttons[at] ?? 0) <= PRESSED);
    return index === undefined || axisMoving ? undefined : button(index);
  }
}

function deviation(pad: Pad, rest: Pad, index: number): number {
  return Math.abs((pad.axes[index] ?? 0) - (rest.axes[index] ?? 0));
}

const source: Decoder<Source> = (value, at) => {
  const found = object({ kind: oneOf("axis", "button"), index: integer(0, 63), rest: number(-1, 1), full: number(-1, 1) })(value, at);
  if (Math.abs(found.full - found.rest) < LEARN_MOVED / 2) throw new Error(`${at}: rest and full are equal`);
  return found;
};
const stored: Decoder<Mapping> = object({ wheel: bool, steering: source, accelerator: source, brake: source, deadMan: source, emergency: source });

/** Returns a stored mapping, or `undefined` if it is not valid. */
export function parseMapping(json: string): Mapping | undefined {
  try {
    return stored(JSON.parse(json), "");
  } catch {
    return undefined;
  }
}
