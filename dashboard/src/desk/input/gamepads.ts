// The connected gamepad or steering wheel, and its stored mapping.

import { type Mapping, type Pad, type PadControls, PadReader, parseMapping, STANDARD_MAPPING } from "./mapping";

const KEY_PREFIX = "viaduct.desk.mapping.";

export class Gamepads {
  #reader: { id: string; reader: PadReader } | undefined;
  #last: PadControls | undefined;

  /** Returns the snapshot of the first connected device that can be used, preferably one with a mapping. */
  current(): Pad | undefined {
    // A browser returns `null` for free places, and no list without the permission.
    const pads = (navigator.getGamepads?.() ?? []).filter((pad) => pad?.connected === true).map((pad) => snapshot(pad as Gamepad));
    return pads.find((pad) => mappingOf(pad) !== undefined) ?? pads[0];
  }

  /** Reads the controls of the device; `undefined` without a device or mapping. */
  read(pad: Pad | undefined): PadControls | undefined {
    if (pad === undefined) return this.#forget();
    if (this.#reader?.id !== pad.id) {
      const mapping = mappingOf(pad);
      if (mapping === undefined) return this.#forget();
      this.#reader = { id: pad.id, reader: new PadReader(mapping) };
    }
    this.#last = this.#reader.reader.read(pad);
    return this.#last;
  }

  get isWheel(): boolean {
    return this.#reader?.reader.mapping.wheel ?? false;
  }

  store(pad: Pad, mapping: Mapping): void {
    this.#forget();
    try {
      localStorage.setItem(KEY_PREFIX + pad.id, JSON.stringify(mapping));
    } catch {
      // Without storage, the mapping lasts until the page is closed.
      this.#reader = { id: pad.id, reader: new PadReader(mapping) };
    }
  }

  #forget(): undefined {
    this.#reader = undefined;
    this.#last = undefined;
    return undefined;
  }
}

export function mappingOf(pad: Pad): Mapping | undefined {
  return readStored(pad.id) ?? (pad.mapping === "standard" ? STANDARD_MAPPING : undefined);
}

function readStored(id: string): Mapping | undefined {
  try {
    const json = localStorage.getItem(KEY_PREFIX + id);
    return json === null ? undefined : parseMapping(json);
  } catch {
    return undefined;
  }
}

function snapshot(pad: Gamepad): Pad {
  return { id: pad.id, mapping: pad.mapping, axes: [...pad.axes], buttons: pad.buttons.map(({ value, pressed }) => Math.max(value, Number(pressed))) };
}
