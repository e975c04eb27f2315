// What all panels share: data, nothing yet, an error, or old data with the error beside it.

import { setHidden, setText } from "../dom";

export class Panel {
  readonly root: HTMLElement;
  readonly #notice: HTMLElement;
  readonly #note: HTMLElement;
  #filled = false;

  constructor(root: HTMLElement) {
    this.root = root;
    this.#notice = this.find(":scope > .notice");
    this.#note = this.find(".note");
  }

  find<E extends HTMLElement = HTMLElement>(selector: string): E {
    const found = this.root.querySelector<E>(selector);
    if (!found) throw new Error(`#${this.root.id} lacks ${selector}`);
    return found;
  }

  /** There is something to show; `note` stands at the right of the title. */
  filled(note = ""): void {
    this.#filled = true;
    this.#set("filled", "", note);
  }

  empty(text: string): void {
    this.#filled = false;
    this.#set("empty", text, "");
  }

  /** Without data the panel says what to do; with data it keeps it, dimmed. */
  error(text: string): void {
    if (this.#filled) this.#set("stale", "", "out of date: no answer from the node");
    else this.#set("error", text, "");
  }

  #set(state: string, notice: string, note: string): void {
    this.root.dataset["state"] = state;
    setText(this.#notice, notice);
    setHidden(this.#notice, notice === "");
    setText(this.#note, note);
  }
}
