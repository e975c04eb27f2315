// The login dialog, and the chip with name and role.

import { byId, setHidden, setText } from "../../dom";
import type { Connection } from "../net/connection";
import type { Session } from "../net/session";

export class Login {
  readonly #dialog = byId("login") as HTMLDialogElement;
  readonly #token = byId("token") as HTMLInputElement;

  constructor(connection: () => Connection) {
    // Without a login there is nothing behind the dialog.
    this.#dialog.addEventListener("cancel", (event) => event.preventDefault());
    byId("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      connection().login(this.#token.value);
      this.#token.value = "";
    });
    byId("user").addEventListener("click", () => connection().logout());
  }

  show({ phase, fault, hello, welcome }: Session): void {
    const asks = phase === "login" && hello?.login === "token";
    if (asks && !this.#dialog.open) this.#dialog.showModal();
    if (!asks && this.#dialog.open && phase !== "authenticating") this.#dialog.close();
    setText(byId("login-error"), fault);
    setText(byId("login-desk"), `${hello?.desk ?? "The desk"}: the token decides whether you drive or observe.`);
    const user = byId("user");
    setHidden(user, welcome === undefined);
    if (welcome) setText(user, `${welcome.name} · ${welcome.role}`);
  }
}
