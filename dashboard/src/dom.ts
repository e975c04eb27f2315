// Helpers for elements.

type Child = Node | string | undefined;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child !== undefined) element.append(child);
  return element;
}

/** Sets the text only if it changed, which keeps selections and avoids layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element: HTMLElement, hidden: boolean): void {
  if (element.hidden !== hidden) element.hidden = hidden;
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html lacks #${id}`);
  return element;
}

/** Rows for a list of items. A row is created once and then updated. */
export class Rows<T> {
  readonly #body: HTMLElement;
  readonly #make: () => HTMLElement;
  readonly #fill: (row: HTMLElement, item: T, index: number) => void;

  constructor(body: HTMLElement, make: () => HTMLElement, fill: (row: HTMLElement, item: T, index: number) => void) {
    this.#body = body;
    this.#make = make;
    this.#fill = fill;
  }

  update(items: readonly T[]): void {
    while (this.#body.children.length > items.length) this.#body.lastElementChild?.remove();
    items.forEach((item, index) => {
      let row = this.#body.children[index] as HTMLElement | undefined;
      if (!row) {
        row = this.#make();
        this.#body.append(row);
      }
      this.#fill(row, item, index);
    });
  }
}

/** Returns a table row for `cells`. */
export function tableRow(columns: number): HTMLElement {
  const row = el("tr");
  row.append(el("th", { scope: "row" }));
  for (let i = 1; i < columns; i += 1) row.append(el("td"));
  return row;
}

export function cells(row: HTMLElement, texts: readonly string[]): void {
  texts.forEach((text, index) => {
    const cell = row.children[index];
    if (!cell) return;
    setText(cell, text);
    if (index === 0) (cell as HTMLElement).title = text;
  });
}

/** Returns the badge of what an unverified message describes. */
export function unverifiedBadge(testId: string): HTMLElement {
  return el("span", { class: "badge", "data-level": "warn", "data-testid": testId, title: "The packet is signed, but its signature was not verified" }, "unverified");
}

/** Returns the cross of a close button. */
export function closeIcon(): SVGElement {
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 16 16", width: "12", height: "12", "aria-hidden": "true", class: "icon" })) icon.setAttribute(name, value);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M2.5 2.5l11 11M13.5 2.5l-11 11");
  icon.append(path);
  return icon;
}
