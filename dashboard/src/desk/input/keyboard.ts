// Driving with keys. Keys are on or off, so steering and pedals move towards their end at a limited rate.

import { clamp, type Controls } from "./controls";

/** `KeyboardEvent.code`: the place of the key, whatever the layout of the keyboard. */
const KEYS = {
  ArrowLeft: "left",
  KeyA: "left",
  ArrowRight: "right",
  KeyD: "right",
  ArrowUp: "accelerator",
  KeyW: "accelerator",
  ArrowDown: "brake",
  KeyS: "brake",
  Space: "deadMan",
} as const;

type Key = (typeof KEYS)[keyof typeof KEYS];

/** Change per second. */
const STEER_HZ = 1.2;
const CENTRE_HZ = 2.4;
const ACCELERATE_HZ = 1.0;
const BRAKE_HZ = 3.0;
const RELEASE_HZ = 4.0;

export class Keyboard {
  readonly #pressed = new Map<string, Key>();
  #steering = 0;
  #accelerator = 0;
  #brake = 0;

  /** Returns `true` if the key belongs to the controls. */
  owns(code: string): boolean {
    return keyOf(code) !== undefined;
  }

  /** Marks the key as held. Returns `true` if it belongs to the controls. */
  press(code: string): boolean {
    const key = keyOf(code);
    if (key !== undefined) this.#pressed.set(code, key);
    return key !== undefined;
  }

  release(code: string): boolean {
    this.#pressed.delete(code);
    return keyOf(code) !== undefined;
  }

  /** Releases all keys: without the keyboard focus, the page does not receive their release. */
  releaseAll(): void {
    this.#pressed.clear();
  }

  get active(): boolean {
    return this.#pressed.size > 0;
  }

  step(elapsed_s: number): Controls {
    const left = Number(this.#has("left")) - Number(this.#has("right"));
    this.#steering = approach(this.#steering, left, (left === 0 || left * this.#steering < 0 ? CENTRE_HZ : STEER_HZ) * elapsed_s);
    // A released accelerator is released at once.
    this.#accelerator = this.#has("accelerator") ? approach(this.#accelerator, 1, ACCELERATE_HZ * elapsed_s) : 0;
    this.#brake = this.#has("brake") ? approach(this.#brake, 1, BRAKE_HZ * elapsed_s) : approach(this.#brake, 0, RELEASE_HZ * elapsed_s);
    return { steering: this.#steering, accelerator: this.#accelerator, brake: this.#brake, deadMan: this.#has("deadMan") };
  }

  #has(key: Key): boolean {
    return [...this.#pressed.values()].includes(key);
  }
}

function keyOf(code: string): Key | undefined {
  return Object.hasOwn(KEYS, code) ? KEYS[code as keyof typeof KEYS] : undefined;
}

function approach(value: number, target: number, step: number): number {
  return clamp(target, value - step, value + step);
}
