// Who drives: state, request, release, takeover, and the answer to another driver's request.

import { byId, setHidden, setText } from "../../dom";
import type { ClientMessage, DeskState, Welcome } from "../protocol/messages";
import { DRIVING, kmh, reasonText } from "../texts";

export class ControlPanel {
  readonly #send: (message: ClientMessage) => void;
  readonly #dialog = byId("takeover") as HTMLDialogElement;
  readonly #reason = byId("takeover-reason") as HTMLInputElement;
  #state: DeskState | undefined;
  #welcome: Welcome | undefined;

  constructor(send: (message: ClientMessage) => void) {
    this.#send = send;
    byId("take").addEventListener("click", () => send({ type: "request_control" }));
    byId("release").addEventListener("click", () => send({ type: "release_control" }));
    byId("force").addEventListener("click", () => this.#openTakeover());
    byId("grant").addEventListener("click", () => this.#answer(true));
    byId("refuse").addEventListener("click", () => this.#answer(false));
    byId("takeover-cancel").addEventListener("click", () => this.#dialog.close());
    byId("takeover-form").addEventListener("submit", () => send({ type: "take_over", reason: this.#reason.value.trim() }));
  }

  set welcome(welcome: Welcome | undefined) {
    this.#welcome = welcome;
  }

  /** `state` is `undefined` while the desk is silent: then nothing can be requested. */
  show(state: DeskState | undefined): void {
    this.#state = state;
    showDriving(state?.driving);
    this.#showButtons(state?.driving);
    this.#showRequest(state?.driving.request ?? null, state?.driving.holder?.you === true);
    if (this.#dialog.open) this.#writeTakeover();
    if (this.#dialog.open && (state === undefined || state.driving.holder === null || state.driving.holder.you)) this.#dialog.close();
  }

  #showButtons(driving: DeskState["driving"] | undefined): void {
    const [mine, held] = [driving?.holder?.you === true, driving !== undefined && driving.holder !== null];
    const requested = driving?.request?.you === true;
    const may = (right: "drive" | "take_over"): boolean => this.#welcome?.may.includes(right) === true && driving !== undefined;
    show("take", may("drive") && !mine, requested);
    setText(byId("take"), requested ? "Requested …" : "Request control");
    show("release", mine || requested, false);
    setText(byId("release"), requested && !mine ? "Withdraw request" : "Release control");
    show("force", may("take_over") && held && !mine, false);
    setText(byId("control-note"), this.#note(driving, mine));
  }

  #note(driving: DeskState["driving"] | undefined, mine: boolean): string {
    if (driving === undefined) return "";
    if (mine) return "you are in control";
    const holder = driving.holder === null ? "nobody is in control" : `${driving.holder.name} is in control`;
    return this.#welcome?.role === "observer" ? `observing · ${holder}` : holder;
  }

  #showRequest(request: DeskState["driving"]["request"], mine: boolean): void {
    setHidden(byId("request"), request === null || request.you || !mine);
    if (request) setText(byId("request-text"), `${request.name} requests control.`);
  }

  #answer(grant: boolean): void {
    const id = this.#state?.driving.request?.id;
    if (id !== undefined) this.#send({ type: "answer_request", id, grant });
  }

  #openTakeover(): void {
    this.#reason.value = "";
    this.#writeTakeover();
    this.#dialog.showModal();
    this.#reason.focus();
  }

  #writeTakeover(): void {
    const { driving, vehicle } = this.#state ?? {};
    setText(byId("takeover-text"), `${driving?.holder?.name ?? "Nobody"} is in control (${DRIVING[driving?.state ?? "idle"].label.toLowerCase()}), speed ${kmh(vehicle?.speed_mps ?? null)} km/h.`);
  }
}

function showDriving(driving: DeskState["driving"] | undefined): void {
  const { symbol, label } = driving === undefined ? { symbol: "", label: "No state" } : DRIVING[driving.state];
  byId("driving").dataset["state"] = driving?.state ?? "none";
  setText(byId("driving-symbol"), symbol);
  setText(byId("driving-label"), label);
  setText(byId("driving-reason"), reasonText(driving?.reason ?? null));
  setText(byId("holder"), driving === undefined ? "–" : driving.holder === null ? "nobody" : driving.holder.you ? `${driving.holder.name} (you)` : driving.holder.name);
}

function show(id: string, visible: boolean, disabled: boolean): void {
  const button = byId(id) as HTMLButtonElement;
  setHidden(button, !visible);
  if (button.disabled !== disabled) button.disabled = disabled;
}
