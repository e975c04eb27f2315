// The state of the connection to the desk: a pure reducer.

import { CONNECT_MAX_MS, REOPEN_MS, SILENT_CLOSE_MS, SILENT_MS } from "../limits";
import type { DeskError, Hello, Welcome } from "../protocol/messages";

/**
 * `connecting`: the WebSocket is not open. `login`: the desk waits for a token. `authenticating`: it checks one. `open`: logged in.
 * `refused`: the desk ended the session with an error that a new attempt does not cure.
 */
export type Phase = "connecting" | "login" | "authenticating" | "open" | "refused";

export interface Session {
  phase: Phase;
  hello: Hello | undefined;
  welcome: Welcome | undefined;
  /** Text of the last error, until the next success. */
  fault: string;
  /** Time of the last message of any kind. */
  heard_ms: number;
  /** Time of the last `state`, or of `welcome` if none has arrived since. */
  state_ms: number;
  /** Start of the attempt to connect or to log in; `undefined` if none is in progress. */
  attempt_ms: number | undefined;
  /** Failed attempts since the connection last worked. */
  attempts: number;
  /** `true` after a session was open once: a closed connection is then a lost one. */
  wasOpen: boolean;
}

/** `opening`: a WebSocket was created. `heard`: a message without effect on the session has arrived. */
export type SessionInput =
  | { kind: "opening" }
  | { kind: "hello"; hello: Hello }
  | { kind: "login" }
  | { kind: "welcome"; welcome: Welcome }
  | { kind: "heard" }
  | { kind: "state" }
  | { kind: "error"; error: DeskError }
  | { kind: "closed" }
  | { kind: "logout" };

export function initialSession(now_ms: number): Session {
  return { phase: "connecting", hello: undefined, welcome: undefined, fault: "", heard_ms: now_ms, state_ms: now_ms, attempt_ms: undefined, attempts: 0, wasOpen: false };
}

export function reduceSession(session: Session, input: SessionInput, now_ms: number): Session {
  const heard = { ...session, heard_ms: now_ms };
  switch (input.kind) {
    case "opening":
      return { ...session, attempt_ms: now_ms };
    case "hello":
      return { ...heard, phase: "login", hello: input.hello, attempt_ms: undefined };
    case "login":
      return { ...session, phase: "authenticating", fault: "", attempt_ms: now_ms };
    case "welcome":
      return { ...heard, phase: "open", welcome: input.welcome, fault: "", state_ms: now_ms, attempt_ms: undefined, attempts: 0, wasOpen: true };
    case "heard":
      return heard;
    case "state":
      return { ...heard, state_ms: now_ms };
    case "error":
      return afterError(heard, input.error);
    case "closed":
      return session.phase === "refused" ? session : { ...session, phase: "connecting", attempt_ms: undefined, attempts: session.attempts + 1 };
    case "logout":
      return { ...initialSession(now_ms), hello: session.hello };
  }
}

function afterError(session: Session, error: DeskError): Session {
  if (error.reply_to === "login") return { ...session, phase: "login", fault: error.text, attempt_ms: undefined };
  return error.fatal ? { ...session, phase: "refused", fault: error.text, attempt_ms: undefined } : session;
}

/**
 * Returns `true` if nothing on the page is current. Only a `state` counts: a desk may answer pings and send pictures although the part
 * that connects it with the vehicle hangs.
 */
export function isSilent(session: Session, now_ms: number): boolean {
  return session.phase !== "open" || now_ms - session.state_ms > SILENT_MS;
}

/** Returns `true` if the connection must be closed and opened again. */
export function isDead({ phase, heard_ms, attempt_ms }: Session, now_ms: number): boolean {
  if (attempt_ms !== undefined) return now_ms - attempt_ms > CONNECT_MAX_MS;
  return phase === "open" && now_ms - heard_ms > SILENT_CLOSE_MS;
}

export function reopenDelay_ms(attempts: number): number {
  return REOPEN_MS[Math.min(Math.max(attempts, 1), REOPEN_MS.length) - 1] ?? 2_000;
}
