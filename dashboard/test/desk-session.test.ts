import { describe, expect, test } from "vitest";
import { DeskClock } from "../src/desk/net/clock";
import { initialSession, isDead, isSilent, reduceSession, reopenDelay_ms, type SessionInput } from "../src/desk/net/session";
import { Track } from "../src/desk/panels/track";
import { age, bitRate, blockedText, kmh, percent, reasonText } from "../src/desk/texts";
import type { Hello, Welcome } from "../src/desk/protocol/messages";

const HELLO = { kind: "hello", hello: { desk: "desk-1", version: 1, login: "token", time_us: 0 } satisfies Hello } as const;
const WELCOME = { kind: "welcome", welcome: { name: "Anna" } as Welcome } as const;
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

  test("after a logout nothing of the session remains", () => {
    expect(after([HELLO, 1], [WELCOME, 2], [{ kind: "logout" }, 3])).toMatchObject({ phase: "connecting", welcome: undefined, wasOpen: false });
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

test("texts of numbers and codes", () => {
  expect([undefined, -3, 84.4, 999.4, 1_200, 14_200].map(age)).toEqual(["–", "0 ms", "84 ms", "999 ms", "1.2 s", "14 s"]);
  expect([null, 0, 0.0003, 0.003, 0.12].map(percent)).toEqual(["–", "0 %", "0.03 %", "0.3 %", "12 %"]);
  expect([null, 0.31, 24.32, 120].map(bitRate)).toEqual(["–", "310 kb/s", "24.3 Mb/s", "120 Mb/s"]);
  expect([null, 0, -2, 13.9].map(kmh)).toEqual(["–", "0", "7", "50"]);
  expect([reasonText("link_lost"), reasonText("automatic_valet"), reasonText(null)]).toEqual(["link to the vehicle lost", "automatic valet", ""]);
  expect([blockedText(undefined, "D"), blockedText(undefined, "P")]).toEqual(["The vehicle follows the controls", "Select a gear: Q and E"]);
});
