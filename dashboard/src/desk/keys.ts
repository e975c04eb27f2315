// The keys of the page. Driving keys go to the keyboard input; the others are commands.

import type { Keyboard } from "./input/keyboard";

export interface KeyActions {
  emergency(): void;
  shift(by: number): void;
  toggleLayout(): void;
  chooseView(place: number): void;
  /** Returns `true` while driving keys control the vehicle: then they must not activate buttons or scroll. */
  drives(): boolean;
}

export function listenToKeys(keyboard: Keyboard, actions: KeyActions): void {
  window.addEventListener("keydown", (event) => onDown(event, keyboard, actions));
  window.addEventListener("keyup", (event) => {
    if (keyboard.release(event.code) && actions.drives()) event.preventDefault();
  });
  window.addEventListener("blur", () => keyboard.releaseAll());
  document.addEventListener("visibilitychange", () => keyboard.releaseAll());
}

function onDown(event: KeyboardEvent, keyboard: Keyboard, actions: KeyActions): void {
  if (isText(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
  // The emergency stop works with an open dialog, too.
  if (event.code === "Backspace") return void (event.repeat || actions.emergency());
  if (document.querySelector("dialog[open]")) return;
  // A repetition is no press: a key that is held through a grant or a loss of the focus must be released first.
  if (event.repeat) return void (actions.drives() && keyboard.owns(event.code) && event.preventDefault());
  if (actions.drives() && keyboard.press(event.code)) return event.preventDefault();
  onCommand(event.code, actions);
}

function onCommand(code: string, actions: KeyActions): void {
  if (code === "KeyQ") actions.shift(-1);
  else if (code === "KeyE") actions.shift(1);
  else if (code === "KeyL") actions.toggleLayout();
  else if (/^Digit[1-4]$/.test(code)) actions.chooseView(Number(code.slice(5)) - 1);
}

function isText(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type !== "button";
}
