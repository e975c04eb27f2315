// The states of a panel: data, no data yet, an error, or outdated data with a note.

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

  /** Shows the data; `note` appears at the right of the title. */
  filled(note = ""): void {
    this.#filled = true;
    this.#set("filled", "", note);
  }

  empty(text: string): void {
    this.#filled = false;
    this.#set("empty", text, "");
  }

  /** Shows the error if there is no data; otherwise dims the data and notes that it is outdated. */
  error(text: string): void {
    if (this.#filled) this.#set("stale", "", "outdated: no answer from the node");
    else this.#set("error", text, "");
  }

  #set(state: string, notice: string, note: string): void {
    this.root.dataset["state"] = state;
    setText(this.#notice, notice);
    setHidden(this.#notice, notice === "");
    setText(this.#note, note);
  }
}
