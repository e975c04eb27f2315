// The camera views: pictures with their age, number and misses, and the mark on a picture that is not current.

import { byId, el, setHidden, setText } from "../../dom";
import { count } from "../../format";
import type { DeskClock } from "../net/clock";
import { nowPage_us } from "../net/connection";
import type { Frame } from "../protocol/frame";
import type { Welcome } from "../protocol/messages";
import { age, FROZEN } from "../texts";
import { Camera } from "../video/camera";
import { freshness, type Freshness, type FreshnessLimits } from "../video/freshness";

interface View {
  camera: Camera;
  root: HTMLElement;
  name: string;
  freshness: Freshness;
  age: HTMLElement;
  number: HTMLElement;
  missed: HTMLElement;
  glass: HTMLElement;
  quality: HTMLElement;
  bar: HTMLElement;
  title: HTMLElement;
  detail: HTMLElement;
}

const DEFAULT_LIMITS: FreshnessLimits = { late_ms: 200, freeze_ms: 300 };

export class Views {
  readonly #root = byId("views");
  readonly #clock: DeskClock;
  #views: View[] = [];
  #limits = DEFAULT_LIMITS;
  #main = 0;

  constructor(clock: DeskClock) {
    this.#clock = clock;
    this.#root.addEventListener("click", (event) => {
      const button = (event.target as Element).closest<HTMLElement>(".pick");
      if (button) this.choose(Number(button.dataset["index"]));
    });
  }

  /** Makes a view for each camera, unless the cameras are the same as before. */
  set(welcome: Welcome): void {
    this.#limits = welcome.timing;
    const key = JSON.stringify(welcome.cameras);
    if (this.#root.dataset["cameras"] === key) return;
    this.#root.dataset["cameras"] = key;
    this.#views = welcome.cameras.map((camera) => makeView(camera, this.#clock));
    this.#root.replaceChildren(...this.#views.map(({ root }) => root));
    this.#root.dataset["count"] = String(this.#views.length);
    this.choose(Math.max(0, welcome.cameras.findIndex(({ place }) => place === "front")));
  }

  /** Shows the camera at this place of the list large. */
  choose(place: number): void {
    if (place >= this.#views.length) return;
    this.#main = place;
    this.#views.forEach(({ root }, index) => {
      root.classList.toggle("main", index === place);
      root.querySelector(".pick")?.setAttribute("aria-pressed", String(index === place));
    });
  }

  get layout(): "focus" | "grid" {
    return this.#root.dataset["layout"] === "grid" ? "grid" : "focus";
  }

  set layout(layout: "focus" | "grid") {
    this.#root.dataset["layout"] = layout;
  }

  take(frame: Frame): void {
    this.#views.find(({ camera }) => camera.index === frame.camera)?.camera.take(frame);
  }

  /** Draws new frames, and marks views at once when they freeze. Called once per frame of the screen. */
  draw(deskLost: boolean, vehicleOffset_us: number | undefined): void {
    const now_ms = performance.now();
    const desk_us = this.#clock.at(nowPage_us());
    for (const view of this.#views) {
      view.camera.vehicleOffset_us = vehicleOffset_us;
      view.camera.draw();
      view.freshness = freshness(view.camera.shown, deskLost, now_ms, desk_us, this.#limits);
      if (view.root.dataset["picture"] !== view.freshness.picture) showPicture(view);
    }
  }

  /** Updates the texts. */
  write(): void {
    for (const view of this.#views) {
      writeView(view);
      showBar(view, this.#limits.freeze_ms);
    }
  }

  get cameras(): readonly Camera[] {
    return this.#views.map(({ camera }) => camera);
  }

  get frozen(): number {
    return this.#views.filter(({ freshness: { picture } }) => picture === "frozen").length;
  }

  isFrozen(index: number): boolean {
    return this.#views.find(({ camera }) => camera.index === index)?.freshness.picture === "frozen";
  }

  picture(index: number): Freshness | undefined {
    return this.#views.find(({ camera }) => camera.index === index)?.freshness;
  }

  /** Latency of the large view, in milliseconds. */
  get glass_ms(): number | undefined {
    const view = this.#views[this.#main];
    const median_us = view?.freshness.picture === "live" || view?.freshness.picture === "late" ? view.camera.glass.median_us : undefined;
    return median_us === undefined ? undefined : median_us / 1_000;
  }
}

function makeView({ camera: index, name, place }: Welcome["cameras"][number], clock: DeskClock): View {
  const canvas = el("canvas", { role: "img", "aria-label": `${name} camera`, width: "640", height: "480" });
  const part = (className: string): HTMLElement => el("span", { class: className });
  const [ageText, number, missed, glass, quality, bar] = [part("age"), part("number"), part("missed"), part("glass"), part("quality"), part("age-bar")];
  const [title, detail] = [el("strong"), el("span")];
  const pick = el("button", { type: "button", class: "pick", "data-index": String(index), title: `Show ${name} large (${index + 1})` }, name);
  const root = el(
    "figure",
    { class: "view", "data-testid": `view-${index}`, "data-place": place, "data-picture": "waiting" },
    el("figcaption", {}, pick, ageText, glass, el("span", { class: "spacer" }), quality, number, missed, bar),
    el("div", { class: "picture" }, canvas, el("div", { class: "veil" }, el("div", { class: "veil-text", "data-testid": `veil-${index}` }, title, detail))),
  );
  const view = { camera: new Camera(index, canvas, clock), root, name, freshness: freshness(undefined, false, 0, undefined, DEFAULT_LIMITS), age: ageText, number, missed, glass, quality, bar, title, detail };
  showPicture(view);
  return view;
}

/** Shows the change of a state. The texts of the veil follow at once, so that a frozen picture is never without them. */
function showPicture(view: View): void {
  view.root.dataset["picture"] = view.freshness.picture;
  setHidden(view.root.querySelector(".veil") as HTMLElement, view.freshness.picture !== "frozen" && view.freshness.picture !== "waiting");
  writeView(view);
}

function showBar({ bar, freshness: { age_ms } }: View, freeze_ms: number): void {
  bar.style.setProperty("--share", Math.min(1, (age_ms ?? freeze_ms) / freeze_ms).toFixed(2));
}

function writeView(view: View): void {
  const { camera, freshness: { picture, age_ms, reason } } = view;
  const glass_us = camera.glass.median_us;
  setText(view.age, picture === "waiting" ? "" : `${picture === "late" ? "late " : ""}${age(age_ms)}`);
  setText(view.glass, glass_us === undefined ? "" : `glass-to-glass ${age(glass_us / 1_000)}`);
  setText(view.number, camera.frame === undefined ? "" : `#${camera.frame.number}`);
  setText(view.missed, `${count(camera.missed)} missed${faults(camera)}`);
  setText(view.quality, camera.frame?.flags.reduced === true ? "reduced quality" : "");
  view.missed.classList.toggle("some", camera.missed + camera.late + camera.decodeErrors > 0);
  setText(view.title, picture === "waiting" ? "No picture yet" : `FROZEN ${age(age_ms)}`);
  setText(view.detail, picture === "waiting" ? "waiting for the first frame" : reason === undefined ? "" : FROZEN[reason]);
}

/** Counts of what the page itself could not show. */
function faults({ late, decodeErrors }: Camera): string {
  return `${late > 0 ? ` · ${count(late)} late` : ""}${decodeErrors > 0 ? ` · ${count(decodeErrors)} not decoded` : ""}`;
}
