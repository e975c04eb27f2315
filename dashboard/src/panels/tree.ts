// A JSON value as a tree. An update keeps open nodes open and the selection in place. The children of a node are created when it is
// opened for the first time.

import { el, setText } from "../dom";
import { TREE_CHILDREN_MAX } from "../limits";

/** Levels that are open from the start, except long lists. */
const OPEN_LEVELS = 5;
const OPEN_CHILDREN_MAX = 16;
const OPEN_ITEMS_MAX = 3;

export class Tree {
  readonly element = el("div", { class: "tree", "data-testid": "message-tree", tabindex: "0", role: "group", "aria-label": "Decoded message" });
  #root: TreeNode | undefined;

  show(value: unknown): void {
    if (this.#root?.update(value)) return;
    this.#root = makeNode("message", value, 0);
    this.element.replaceChildren(this.#root.element);
  }
}

/** Returns the children that are shown, and the number of further ones. */
export function shownChildren(value: object): { entries: [string, unknown][]; more: number } {
  const entries = Object.entries(value);
  return { entries: entries.slice(0, TREE_CHILDREN_MAX), more: Math.max(0, entries.length - TREE_CHILDREN_MAX) };
}

interface TreeNode {
  element: HTMLElement;
  /** Returns `false` if the value has another shape than the node. */
  update(value: unknown): boolean;
}

function makeNode(name: string, value: unknown, level: number): TreeNode {
  return value !== null && typeof value === "object" ? new Branch(name, value, level) : new Leaf(name, value);
}

class Leaf implements TreeNode {
  readonly element = el("div", { class: "leaf", "data-testid": "tree-leaf" }, el("span"), el("span"));

  constructor(name: string, value: unknown) {
    setText(this.element.children[0] as Element, name);
    this.update(value);
  }

  update(value: unknown): boolean {
    if (value !== null && typeof value === "object") return false;
    this.element.dataset["kind"] = value === null ? "null" : typeof value;
    setText(this.element.children[1] as Element, String(value));
    return true;
  }
}

class Branch implements TreeNode {
  readonly element = el("details");
  readonly #size = el("small");
  readonly #box = el("div");
  readonly #more = el("small");
  readonly #children = new Map<string, TreeNode>();
  readonly #level: number;
  readonly #isArray: boolean;
  #value: object;

  constructor(name: string, value: object, level: number) {
    this.#level = level;
    this.#value = value;
    this.#isArray = Array.isArray(value);
    this.element.append(el("summary", {}, name, this.#size), this.#box, this.#more);
    this.element.addEventListener("toggle", () => this.#fill());
    this.element.open = level < OPEN_LEVELS && Object.keys(value).length <= (this.#isArray ? OPEN_ITEMS_MAX : OPEN_CHILDREN_MAX);
    this.update(value);
  }

  update(value: unknown): boolean {
    if (value === null || typeof value !== "object" || Array.isArray(value) !== this.#isArray) return false;
    this.#value = value;
    const size = Object.keys(value).length;
    setText(this.#size, this.#isArray ? `[${size}]` : size === 0 ? "{}" : "");
    this.#fill();
    return true;
  }

  #fill(): void {
    if (!this.element.open) return;
    const { entries, more } = shownChildren(this.#value);
    setText(this.#more, more > 0 ? `… ${more} more` : "");
    const names = new Set(entries.map(([name]) => name));
    for (const [name, node] of this.#children) {
      if (names.has(name)) continue;
      node.element.remove();
      this.#children.delete(name);
    }
    entries.forEach(([name, value], index) => {
      const known = this.#children.get(name);
      if (known?.update(value)) return;
      const node = makeNode(name, value, this.#level + 1);
      this.#children.set(name, node);
      if (known) known.element.replaceWith(node.element);
      else this.#box.insertBefore(node.element, this.#box.children[index] ?? null);
    });
  }
}
