// The dialog that assigns axes and buttons of a device to the controls.

import { byId, el, setHidden, setText } from "../../dom";
import { type Gamepads, mappingOf } from "../input/gamepads";
import { type ControlFunction, FUNCTIONS, Learner, type Mapping, type Pad, type Source } from "../input/mapping";

const LABELS: Readonly<Record<ControlFunction, string>> = { steering: "steering", accelerator: "accelerator", brake: "brake", deadMan: "dead-man", emergency: "emergency stop" };
const STEPS: Readonly<Record<ControlFunction, string>> = {
  steering: "Turn the wheel or stick fully to the left, then back to the centre.",
  accelerator: "Press the accelerator fully, then release it.",
  brake: "Press the brake fully, then release it.",
  deadMan: "Press and release the button or paddle for the dead-man control.",
  emergency: "Press and release the button for the emergency stop.",
};
const WAKE = "Turn the wheel and press every pedal once, then release everything and press Continue.";

type Phase = { kind: "idle" } | { kind: "wake" } | { kind: "learn"; at: number; learner: Learner; found: Partial<Record<ControlFunction, Source>> };

export class MappingDialog {
  readonly #dialog = byId("mapping") as HTMLDialogElement;
  readonly #gamepads: Gamepads;
  #phase: Phase = { kind: "idle" };
  #shown = "";

  constructor(gamepads: Gamepads) {
    this.#gamepads = gamepads;
    byId("devices").addEventListener("click", () => this.#open());
    byId("mapping-close").addEventListener("click", () => this.#dialog.close());
    byId("mapping-start").addEventListener("click", () => this.#advance());
    this.#dialog.addEventListener("close", () => (this.#phase = { kind: "idle" }));
  }

  get open(): boolean {
    return this.#dialog.open;
  }

  /** Called with each reading of the device while the dialog is open. */
  step(pad: Pad | undefined): void {
    if (!this.#dialog.open) return;
    if (pad === undefined && this.#phase.kind !== "idle") this.#phase = { kind: "idle" };
    if (pad !== undefined && this.#phase.kind === "learn") this.#learn(pad, this.#phase);
    this.#write(pad);
  }

  #open(): void {
    this.#shown = "";
    this.#dialog.showModal();
  }

  #advance(): void {
    if (this.#phase.kind === "idle") this.#phase = { kind: "wake" };
    else if (this.#phase.kind === "wake") {
      const pad = this.#gamepads.current();
      if (pad) this.#phase = { kind: "learn", at: 0, learner: new Learner(pad), found: {} };
    } else this.#phase = { kind: "idle" };
  }

  #learn(pad: Pad, phase: Extract<Phase, { kind: "learn" }>): void {
    const source = phase.learner.step(pad);
    if (source === undefined) return;
    const found = { ...phase.found, [FUNCTIONS[phase.at] as ControlFunction]: source };
    if (phase.at + 1 < FUNCTIONS.length) {
      this.#phase = { kind: "learn", at: phase.at + 1, learner: new Learner(pad), found };
      return;
    }
    const mapping = { ...(found as Record<ControlFunction, Source>), wheel: pad.mapping !== "standard" } satisfies Mapping;
    this.#gamepads.store(pad, mapping);
    this.#phase = { kind: "idle" };
  }

  #write(pad: Pad | undefined): void {
    const text = JSON.stringify([pad?.id, this.#phase.kind, this.#phase.kind === "learn" ? this.#phase.at : 0]);
    if (text === this.#shown) return;
    this.#shown = text;
    setText(byId("mapping-device"), pad?.id ?? "No device found. Connect it and press one of its buttons.");
    setText(byId("mapping-step"), this.#stepText());
    const start = byId("mapping-start");
    setHidden(start, pad === undefined);
    setText(start, { idle: "Set up", wake: "Continue", learn: "Cancel" }[this.#phase.kind]);
    byId("mapping-list").replaceChildren(...this.#rows(pad));
  }

  #stepText(): string {
    if (this.#phase.kind === "wake") return WAKE;
    return this.#phase.kind === "learn" ? STEPS[FUNCTIONS[this.#phase.at] as ControlFunction] : "";
  }

  #rows(pad: Pad | undefined): HTMLElement[] {
    if (pad === undefined) return [];
    const mapping: Partial<Record<ControlFunction, Source>> = this.#phase.kind === "idle" ? (mappingOf(pad) ?? {}) : this.#phase.kind === "learn" ? this.#phase.found : {};
    return FUNCTIONS.map((name) => el("li", {}, el("span", {}, LABELS[name]), el("b", {}, sourceText(mapping[name]))));
  }
}

function sourceText(source: Source | undefined): string {
  return source === undefined ? "–" : `${source.kind} ${source.index}`;
}
