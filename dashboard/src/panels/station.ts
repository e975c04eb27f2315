// The selected station: its properties, and its newest message of each type as a tree.

import type { MessageProperties, StationFeature } from "../api";
import { closeIcon, el, Rows, setHidden, setText, unverifiedBadge } from "../dom";
import { before, clock, coordinate, count, stationType } from "../format";
import { STATION_PERIOD_MS } from "../limits";
import type { PerceivedObject } from "../map/traffic";
import { isUnverified } from "../map/view";
import type { ApiError } from "../net/client";
import { poll, type Poll } from "../net/poll";
import { perceivedObjects } from "../state/perceived";
import { Tree } from "./tree";

export interface StationEvents {
  onClose(): void;
  /** Objects that the station perceives, at each answer; none if the node's cache no longer holds the station. */
  onObjects(objects: readonly PerceivedObject[]): void;
}

export class StationPanel {
  readonly #root: HTMLElement;
  readonly #events: StationEvents;
  readonly #title = el("h2", { "data-testid": "station-title" });
  readonly #kind = el("span", { class: "kind" });
  readonly #unverified = unverifiedBadge("unverified");
  readonly #copy = el("button", { type: "button", class: "plain", "data-testid": "copy" }, "Copy JSON");
  readonly #sheet = el("dl", { class: "sheet", "data-testid": "station-sheet" });
  readonly #tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Newest message of each type" });
  readonly #notice = el("p", { class: "notice", role: "status" });
  readonly #facts = new Rows(this.#sheet, () => el("div", { style: "display:contents" }, el("dt"), el("dd")), fillFact);
  #tree = new Tree();
  #poll: Poll | undefined;
  #station: StationFeature | undefined;
  #type: string | undefined;

  constructor(root: HTMLElement, events: StationEvents) {
    this.#root = root;
    this.#events = events;
    const close = el("button", { type: "button", class: "plain", "aria-label": "Close (Escape)", title: "Close (Esc)", "data-testid": "close" }, closeIcon());
    close.addEventListener("click", () => events.onClose());
    this.#copy.addEventListener("click", () => void this.#copyJson());
    root.append(el("header", {}, this.#title, this.#kind, this.#unverified, el("span", { class: "spacer" }), this.#copy, close), this.#sheet, this.#tabs, this.#notice, this.#tree.element);
  }

  open(id: number): void {
    this.#poll?.stop();
    this.#type = undefined;
    setText(this.#title, String(id));
    this.#clear();
    this.#notify("Loading …", "");
    setHidden(this.#root, false);
    this.#poll = poll<StationFeature>(`/v1/stations/${id}`, STATION_PERIOD_MS, (station) => this.#take(station), (error) => this.#fail(error));
  }

  close(): void {
    this.#poll?.stop();
    this.#poll = undefined;
    setHidden(this.#root, true);
  }

  #take(station: StationFeature): void {
    this.#station = station;
    this.#root.dataset["state"] = "";
    const types = Object.keys(station.properties.latest);
    if (this.#type === undefined || !types.includes(this.#type)) this.#type = types.includes("cam") ? "cam" : types[0];
    this.#notify(types.length === 0 ? "The cache no longer contains a message of this station." : "", "");
    this.#show();
    this.#events.onObjects(perceivedObjects(station.properties.latest["cpm"]?.message));
  }

  #fail(error: ApiError): void {
    const gone = error.status === 404;
    this.#root.dataset["state"] = "stale";
    if (gone) {
      this.#clear();
      this.#events.onObjects([]);
    }
    this.#notify(gone ? "The cache contains no message of this station." : `${error.message}. Retrying.`, "bad");
  }

  #clear(): void {
    this.#station = undefined;
    this.#root.dataset["state"] = "";
    setText(this.#kind, "");
    setHidden(this.#unverified, true);
    this.#facts.update([]);
    this.#tabs.replaceChildren();
    this.#resetTree();
  }

  #show(): void {
    const station = this.#station;
    if (!station) return;
    const latest = this.#type === undefined ? undefined : station.properties.latest[this.#type];
    setText(this.#kind, stationType(station.properties.station_type));
    setHidden(this.#unverified, latest === undefined || !isUnverified(latest));
    this.#facts.update(factsOf(station, latest));
    this.#showTabs(station);
    if (latest) this.#tree.show(latest.message ?? {});
  }

  #showTabs(station: StationFeature): void {
    const types = Object.keys(station.properties.latest);
    if ([...this.#tabs.children].map((tab) => (tab as HTMLElement).dataset["type"]).join() !== types.join()) {
      this.#tabs.replaceChildren(...types.map((type) => this.#makeTab(type)));
    }
    for (const tab of this.#tabs.children as HTMLCollectionOf<HTMLElement>) {
      const type = tab.dataset["type"] ?? "";
      tab.setAttribute("aria-selected", String(type === this.#type));
      setText(tab.children[0] as Element, count(station.properties.messages[type] ?? 0));
    }
  }

  #makeTab(type: string): HTMLElement {
    const tab = el("button", { type: "button", role: "tab", "data-type": type }, type.toUpperCase(), el("span"));
    tab.addEventListener("click", () => {
      this.#type = type;
      this.#resetTree();
      this.#show();
    });
    return tab;
  }

  #resetTree(): void {
    const old = this.#tree;
    this.#tree = new Tree();
    old.element.replaceWith(this.#tree.element);
  }

  #notify(text: string, level: string): void {
    setText(this.#notice, text);
    this.#notice.dataset["level"] = level;
    setHidden(this.#notice, text === "");
  }

  async #copyJson(): Promise<void> {
    const latest = this.#type === undefined ? undefined : this.#station?.properties.latest[this.#type];
    if (!latest) return;
    const done = await copy(JSON.stringify(latest, null, 2));
    setText(this.#copy, done ? "Copied" : "Not allowed");
    setTimeout(() => setText(this.#copy, "Copy JSON"), 1_500);
  }
}

function factsOf({ geometry, properties: station }: StationFeature, latest: MessageProperties | undefined): (readonly [string, string])[] {
  const [lon, lat, altitude] = geometry?.coordinates ?? [];
  const speed = station.speed_mps;
  const facts: (readonly [string, string | undefined])[] = [
    ["position", lon === undefined || lat === undefined ? "unknown" : coordinate(lat, lon) + (altitude === undefined ? "" : `  ${altitude.toFixed(1)} m`)],
    ["speed", speed === undefined ? undefined : `${speed.toFixed(2)} m/s · ${(speed * 3.6).toFixed(1)} km/h`],
    ["heading", station.heading_deg === undefined ? undefined : `${station.heading_deg.toFixed(1)}°`],
    ["received", latest?.reception_time === undefined ? undefined : `${clock(latest.reception_time)} UTC`],
    ["generated", latest?.generation_time === undefined ? undefined : `${clock(latest.generation_time)} UTC${delay(latest)}`],
    ["security", latest?.security],
    ["signer", latest?.signer_digest],
    ["geonet", latest?.geonet_address],
    ["link", latest?.link_address],
    ["received by", latest === undefined ? undefined : receivedBy(latest)],
    ["first seen", `${clock(station.first_seen)} UTC`],
  ];
  return facts.filter((fact): fact is readonly [string, string] => fact[1] !== undefined);
}

function receivedBy({ receiver, access, direction }: MessageProperties): string {
  const over = receiver === undefined ? access : `${receiver} over ${access}`;
  return direction === "sent" ? `${over} (sent by this node)` : over;
}

/** Returns the time from generation to reception. It compares the clocks of two machines, so it is only an indication. */
function delay({ reception_time, generation_time }: MessageProperties): string {
  if (reception_time === undefined || generation_time === undefined) return "";
  const ms = Date.parse(reception_time) - Date.parse(generation_time);
  return Number.isFinite(ms) ? ` · ${before(ms)}` : "";
}

function fillFact(row: HTMLElement, [name, text]: readonly [string, string]): void {
  setText(row.children[0] as Element, name);
  setText(row.children[1] as Element, text);
}

/** Copies with a fallback: `navigator.clipboard` exists only on https and localhost, and a node is often reached by its address. */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const area = el("textarea", { class: "unseen" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
