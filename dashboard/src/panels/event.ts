// The selected event: cause, state, validity, area and senders.

import { closeIcon, el, Rows, setHidden, setText, unverifiedBadge } from "../dom";
import { clock, coordinate, count, duration } from "../format";
import { causeText } from "../map/events";
import { isUnverified } from "../map/view";
import type { MapEvent } from "../state/events";

export interface EventPanelEvents {
  onClose(): void;
  onStation(id: number): void;
}

export class EventPanel {
  readonly #root: HTMLElement;
  readonly #title = el("h2", { "data-testid": "event-title" });
  readonly #state = el("span", { class: "badge", "data-testid": "event-state" });
  readonly #unverified = unverifiedBadge("event-unverified");
  readonly #sheet = el("dl", { class: "sheet", "data-testid": "event-sheet" });
  readonly #station = el("button", { type: "button", class: "plain" });
  readonly #facts = new Rows(this.#sheet, () => el("div", { style: "display:contents" }, el("dt"), el("dd")), fillFact);
  #stationId: number | undefined;

  constructor(root: HTMLElement, events: EventPanelEvents) {
    this.#root = root;
    const close = el("button", { type: "button", class: "plain", "aria-label": "Close (Escape)", title: "Close (Esc)", "data-testid": "event-close" }, closeIcon());
    close.addEventListener("click", () => events.onClose());
    this.#station.addEventListener("click", () => this.#stationId !== undefined && events.onStation(this.#stationId));
    root.append(el("header", {}, el("div", { class: "heading" }, this.#title, this.#state, this.#unverified), this.#station, close), this.#sheet);
  }

  show(event: MapEvent): void {
    const { properties, state } = event;
    setHidden(this.#root, false);
    setText(this.#title, causeText(properties));
    setText(this.#state, state);
    this.#state.dataset["level"] = state === "active" ? "bad" : "";
    setHidden(this.#unverified, !isUnverified(properties));
    this.#stationId = properties.station_id;
    setText(this.#station, `Station ${properties.station_id}`);
    this.#facts.update(factsOf(event));
  }

  close(): void {
    setHidden(this.#root, true);
  }
}

function factsOf({ lat, lon, properties, state, remaining_s }: MapEvent): (readonly [string, string])[] {
  const p = properties;
  const optional = (name: string, value: number | string | undefined, unit = ""): (readonly [string, string])[] => (value === undefined ? [] : [[name, `${value}${unit}`]]);
  return [
    ["event", `${p.originating_station_id}-${p.sequence_number}`],
    ...optional("cause code", p.cause === undefined || p.sub_cause === undefined ? p.cause : `${p.cause}, sub-cause ${p.sub_cause}`),
    ["position", coordinate(lat, lon)],
    ["security", p.security],
    ["detected", `${clock(p.detection_time)} UTC`],
    ["valid until", `${clock(p.valid_until)} UTC${state === "active" ? `, ${duration(remaining_s)} left` : ""}`],
    ...optional(state === "negated" ? "negated" : "cancelled", p.ended_time === undefined ? undefined : `${clock(p.ended_time)} UTC`),
    ...optional("awareness distance", p.awareness_distance_m === undefined ? undefined : count(p.awareness_distance_m), " m"),
    ...optional("traffic", p.traffic_direction),
    ...optional("speed", p.speed_mps === undefined ? undefined : (p.speed_mps * 3.6).toFixed(1), " km/h"),
    ...optional("quality", p.information_quality, " of 7"),
    ["last message", `${clock(p.last_received)} UTC`],
    ["messages", `${count(p.messages)}, ${count(p.updates)} ${p.updates === 1 ? "update" : "updates"}`],
  ];
}

function fillFact(row: HTMLElement, [name, text]: readonly [string, string]): void {
  setText(row.children[0] as Element, name);
  setText(row.children[1] as Element, text);
}
