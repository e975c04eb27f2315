import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DeskClock } from "../src/desk/net/clock";
import { Connection } from "../src/desk/net/connection";
import { initialSession, isDead, isSilent, reduceSession, reopenDelay_ms, type SessionInput } from "../src/desk/net/session";
import { Track } from "../src/desk/panels/track";
import { age, alarmText, bitRate, blockedText, kmh, percent, reasonText } from "../src/desk/texts";
import type { DeskState, Hello, Welcome } from "../src/desk/protocol/messages";

const HELLO = { kind: "hello", hello: { desk: "desk-1", version: 1, login: "token", time_us: 0 } satisfies Hello } as const;
const WELCOME = { kind: "welcome", welcome: { name: "Anna" } as Welcome } as const;
const HEARD = { kind: "heard" } as const;
const STATE = { kind: "state" } as const;
const FAILED = { kind: "error", error: { code: "login_failed", text: "unknown token", fatal: false, reply_to: "login" } } as const;
const after = (...inputs: [SessionInput, number][]) => inputs.reduce((session, [input, at_ms]) => reduceSession(session, input, at_ms), initialSession(0));

describe("the session", () => {
  test("asks for a token, authenticates, opens", () => {
    expect(after([HELLO, 1]).phase).toBe("login");
    expect(after([HELLO, 1], [{ kind: "login" }, 2]).phase).toBe("authenticating");
    expect(after([HELLO, 1], [{ kind: "login" }, 2], [WELCOME, 3])).toMatchObject({ phase: "open", wasOpen: true, attempts: 0 });
  });

  test("a rejected token is reported, and asked for again", () => {
    const session = after([HELLO, 1], [{ kind: "login" }, 2], [FAILED, 3]);
    expect(session).toMatchObject({ phase: "login", fault: "unknown token" });
    expect(reduceSession(session, { kind: "login" }, 4).fault).toBe("");
  });

  test("a closed connection is opened again, after pauses that grow to a limit", () => {
    const session = after([HELLO, 1], [WELCOME, 2], [{ kind: "closed" }, 3], [{ kind: "closed" }, 4]);
    expect(session).toMatchObject({ phase: "connecting", attempts: 2, wasOpen: true });
    expect([0, 1, 2, 3, 4, 99].map(reopenDelay_ms)).toEqual([250, 250, 500, 1_000, 2_000, 2_000]);
  });

  test("a fatal error ends the session, another one does not", () => {
    const fatal = (yes: boolean): SessionInput => ({ kind: "error", error: { code: "version", text: "too old", fatal: yes, reply_to: null } });
    expect(after([WELCOME, 1], [fatal(true), 2], [{ kind: "closed" }, 3])).toMatchObject({ phase: "refused", fault: "too old" });
    expect(after([WELCOME, 1], [fatal(false), 2]).phase).toBe("open");
  });

  test("silence counts as lost after 500 ms and is dead after 4 s", () => {
    const session = after([WELCOME, 1_000]);
    expect([1_400, 1_501].map((at) => isSilent(session, at))).toEqual([false, true]);
    expect([4_900, 5_001].map((at) => isDead(session, at))).toEqual([false, true]);
    expect(isSilent(initialSession(0), 0)).toBe(true);
  });

  test("a desk that answers but sends no state counts as lost, and its connection is kept", () => {
    const session = after([WELCOME, 1_000], [STATE, 1_100], [HEARD, 1_500], [HEARD, 5_600]);
    expect([1_600, 1_601, 5_601].map((at) => isSilent(session, at))).toEqual([false, true, true]);
    expect(isDead(session, 5_601)).toBe(false);
    expect(isSilent(reduceSession(session, STATE, 5_610), 5_620)).toBe(false);
    // Also if no state has arrived since the login.
    expect(isSilent(after([WELCOME, 1_000], [HEARD, 1_500]), 1_501)).toBe(true);
  });

  test("connecting and logging in have 4 s each, the person who types a token has no limit", () => {
    const dead = (...inputs: [SessionInput, number][]) => [4_100, 4_101, 99_999].map((at) => isDead(after(...inputs), at));
    expect(dead([{ kind: "opening" }, 100])).toEqual([false, true, true]);
    expect(dead([HELLO, 50], [{ kind: "login" }, 100])).toEqual([false, true, true]);
    const ended: [SessionInput, number][][] = [
      [[HELLO, 200]],
      [[HELLO, 200], [{ kind: "login" }, 300], [FAILED, 400]],
      [[{ kind: "closed" }, 200]],
      [[{ kind: "error", error: { code: "version", text: "too old", fatal: true, reply_to: null } }, 200]],
    ];
    for (const inputs of ended) expect(dead([{ kind: "opening" }, 100], ...inputs)).toEqual([false, false, false]);
  });

  test("after a logout nothing of the session remains", () => {
    expect(after([HELLO, 1], [WELCOME, 2], [{ kind: "logout" }, 3])).toMatchObject({ phase: "connecting", welcome: undefined, wasOpen: false });
  });
});

describe("the connection", () => {
  class Socket extends EventTarget {
    static readonly OPEN = 1;
    static readonly all: Socket[] = [];
    readyState = 0;
    bufferedAmount = 0;
    readonly sent: string[] = [];
    constructor() {
      super();
      Socket.all.push(this);
    }
    send(text: string): void {
      this.sent.push(text);
    }
    close(): void {
      this.readyState = 3;
    }
    hear(message: object): void {
      this.readyState = Socket.OPEN;
      this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
    }
  }
  const HELLO_MESSAGE = { type: "hello", ...HELLO.hello };
  let connection: Connection;
  /** Lets the time pass, with the ticks of the page. */
  const pass = (elapsed_ms: number): void => {
    for (let tick = 0; tick < elapsed_ms / 100; tick += 1) {
      vi.advanceTimersByTime(100);
      connection.watch(performance.now());
    }
  };

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", Socket);
    Socket.all.length = 0;
    const ignore = (): void => {};
    connection = new Connection("ws://desk/", "token", { onSession: ignore, onState: ignore, onFrame: ignore, onMap: ignore, onEvent: ignore, onError: ignore });
    connection.start();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("a host that does not answer is tried again after 4 s", () => {
    pass(4_000);
    expect(Socket.all).toHaveLength(1);
    pass(400);
    expect([Socket.all.length, Socket.all[0]?.readyState]).toEqual([2, 3]);
    // The pause was 0.25 s; that of the second failure is 0.5 s.
    pass(4_700);
    expect(Socket.all).toHaveLength(3);
  });

  test("a login without an answer is made again on a new connection", () => {
    Socket.all[0]?.hear(HELLO_MESSAGE);
    expect([connection.session.phase, Socket.all[0]?.sent.length]).toEqual(["authenticating", 1]);
    pass(4_400);
    expect([Socket.all.length, connection.session.phase]).toEqual([2, "connecting"]);
    Socket.all[1]?.hear(HELLO_MESSAGE);
    expect(Socket.all[1]?.sent).toEqual(Socket.all[0]?.sent);
  });
});

describe("the desk's clock", () => {
  test("is unknown before the first message, and then as exact as the shortest round trip", () => {
    const clock = new DeskClock();
    expect(clock.at(5)).toBeUndefined();
    clock.begin(1_000_000, 10);
    expect([clock.at(20), clock.uncertainty_us]).toEqual([1_000_010, undefined]);
    clock.take(100, 1_000_150, 300);
    expect([clock.at(300), clock.uncertainty_us]).toEqual([1_000_250, 100]);
    // A slow answer does not replace a fast one.
    clock.take(1_000, 1_005_000, 9_000);
    expect([clock.at(300), clock.uncertainty_us, clock.round_trip_us]).toEqual([1_000_250, 100, 8_000]);
  });

  test("forgets old samples", () => {
    const clock = new DeskClock();
    clock.take(0, 1_000, 2);
    for (let ping = 1; ping <= 32; ping += 1) clock.take(ping * 1_000, ping * 1_000 + 5_050, ping * 1_000 + 100);
    expect(clock.at(0)).toBe(5_000);
  });

  test("ignores an answer before the question", () => {
    const clock = new DeskClock();
    clock.take(100, 5, 50);
    expect(clock.at(0)).toBeUndefined();
  });
});

describe("the track", () => {
  const position = (lat_deg: number, lon_deg: number) => ({ lat_deg, lon_deg, heading_deg: 90 });

  test("has local metres, and points that differ", () => {
    const track = new Track();
    track.take(position(52, 10));
    track.take(position(52.000_001, 10));
    track.take(position(52.000_1, 10.000_1));
    expect(track.points).toHaveLength(2);
    expect(track.vehicle?.north_m).toBeCloseTo(11.12, 2);
    expect(track.vehicle?.east_m).toBeCloseTo(6.85, 2);
  });

  test("works across the date line", () => {
    const track = new Track();
    track.take(position(0, 179.999_99));
    track.take(position(0, -179.999_99));
    expect(track.vehicle?.east_m).toBeCloseTo(2.22, 2);
  });

  test("projects lines that arrive before the first position, and has a limit", () => {
    const track = new Track();
    track.setLines({ lines: [{ kind: "lane", points: [[52, 10], [52.000_1, 10]] }] });
    expect(track.local).toEqual([]);
    for (let step = 0; step < 3_000; step += 1) track.take(position(52 + step / 10_000, 10));
    expect(track.local[0]?.points[1]?.north_m).toBeCloseTo(11.12, 2);
    expect(track.points).toHaveLength(2_000);
    track.take(null);
    expect(track.vehicle).toBeUndefined();
  });
});

test("the alarm names what stops the vehicle, the most severe first", () => {
  const open = after([HELLO, 1], [WELCOME, 2]);
  const state = (connected: boolean, limit_reason: string) => ({ link: { connected }, vehicle: { limit_reason } }) as DeskState;
  expect(alarmText(open, false, state(true, "latency"))).toBe("");
  expect(alarmText(open, false, state(true, "camera"))).toMatch(/main camera is frozen: the speed limit is 0/);
  expect(alarmText(open, false, state(false, "camera"))).toMatch(/link to the vehicle is lost/);
  expect(alarmText(open, true, state(true, "camera"))).toMatch(/No connection to the desk/);
  expect(alarmText(open, true, undefined)).toMatch(/No connection to the desk/);
  expect(alarmText(initialSession(0), true, undefined)).toBe("");
  expect(alarmText({ ...open, phase: "refused", fault: "too old" }, true, undefined)).toMatch(/too old/);
});

test("texts of numbers and codes", () => {
  expect([undefined, -3, 84.4, 999.4, 1_200, 14_200].map(age)).toEqual(["–", "0 ms", "84 ms", "999 ms", "1.2 s", "14 s"]);
  expect([null, 0, 0.0003, 0.003, 0.12].map(percent)).toEqual(["–", "0 %", "0.03 %", "0.3 %", "12 %"]);
  expect([null, 0.31, 24.32, 120].map(bitRate)).toEqual(["–", "310 kb/s", "24.3 Mb/s", "120 Mb/s"]);
  expect([null, 0, -2, 13.9].map(kmh)).toEqual(["–", "0", "7", "50"]);
  expect([reasonText("link_lost"), reasonText("automatic_valet"), reasonText(null)]).toEqual(["link to the vehicle lost", "automatic valet", ""]);
  expect([blockedText(undefined, "D"), blockedText(undefined, "P")]).toEqual(["The vehicle follows the controls", "Select a gear: Q and E"]);
});
