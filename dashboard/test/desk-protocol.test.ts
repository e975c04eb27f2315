import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { encodeFrame, type Frame, HEADER_OCTETS, parseFrame } from "../src/desk/protocol/frame";
import { encodeMark, type Mark } from "../src/desk/protocol/mark";
import { parseServerMessage } from "../src/desk/protocol/messages";

interface Vectors {
  marks: (Mark & { hex: string })[];
  frames: (Omit<Frame, "picture"> & { picture_hex: string; hex: string })[];
}

const vectors = JSON.parse(readFileSync(new URL("../../testdata/desk/vectors.json", import.meta.url), "utf8")) as Vectors;

describe("camera frames", () => {
  test.each(vectors.frames)("frame $number is encoded and parsed as in testdata", ({ hex, picture_hex, ...fields }) => {
    const frame = { ...fields, picture: octets(picture_hex) };
    expect(toHex(encodeFrame(frame))).toBe(hex);
    expect(parseFrame(octets(hex).buffer)).toEqual(frame);
  });

  test.each([
    ["short", (message: Uint8Array) => message.slice(0, HEADER_OCTETS - 1)],
    ["empty", (message: Uint8Array) => message.slice(0, HEADER_OCTETS)],
    ["type", (message: Uint8Array) => change(message, 0, 2)],
    ["version", (message: Uint8Array) => change(message, 1, 2)],
    ["camera", (message: Uint8Array) => change(message, 2, 4)],
    ["codec", (message: Uint8Array) => change(message, 3, 0)],
    ["header_length", (message: Uint8Array) => change(message, 7, HEADER_OCTETS - 1)],
    ["header_length", (message: Uint8Array) => change(message, 6, 0xff)],
  ])("a damaged header is rejected: %s", (fault, damage) => {
    expect(parseFrame(damage(octets(vectors.frames[0]?.hex ?? "")).slice().buffer)).toBe(fault);
  });

  test("a later version may append fields to the header", () => {
    const { hex = "" } = vectors.frames[0] ?? {};
    const longer = octets(`${hex.slice(0, 12)}0038${hex.slice(16, 96)}0102030405060708${hex.slice(96)}`);
    expect(parseFrame(longer.buffer)).toMatchObject({ number: 305_419_896, picture: octets("ffd8ffd9") });
  });

  test("no deadline and an unknown uncertainty are undefined", () => {
    const { picture_hex = "", hex: _, ...fields } = vectors.frames[0] ?? ({} as Vectors["frames"][number]);
    const parsed = parseFrame(encodeFrame({ ...fields, deadline_us: undefined, uncertainty_us: undefined, picture: octets(picture_hex) }).buffer);
    expect(parsed).toMatchObject({ deadline_us: undefined, uncertainty_us: undefined });
  });

  test("any octets are a frame or a fault, never an exception", () => {
    const random = generator(7);
    for (let round = 0; round < 2_000; round += 1) {
      const message = Uint8Array.from({ length: Math.floor(random() * 80) }, () => Math.floor(random() * 256));
      if (random() < 0.8) message.set([1, 1, 0, 1].slice(0, message.length));
      expect(() => parseFrame(message.buffer)).not.toThrow();
    }
  });
});

test.each(vectors.marks)("the mark of frame $frame is encoded as in testdata", ({ hex, ...mark }) => {
  expect(toHex(encodeMark(mark))).toBe(hex);
});

describe("messages", () => {
  test("a state is parsed; a missing value is unknown, and unknown members are ignored", () => {
    const parsed = parseServerMessage(JSON.stringify({ ...STATE, later: 1, vehicle: { ...STATE.vehicle, speed_mps: undefined, later: 2 } }));
    expect(parsed).toMatchObject({ type: "state", seq: 7, vehicle: { speed_mps: null, gear: "D" }, driving: { state: "driving", holder: { name: "Anna", you: true } } });
    expect(parsed).not.toHaveProperty("later");
  });

  test("a driving state of a later version is shown as stopped, an unknown reason as it is", () => {
    expect(parseServerMessage(JSON.stringify({ ...STATE, driving: { ...STATE.driving, state: "parking", reason: "automatic_valet" } }))).toMatchObject({ driving: { state: "stopped", reason: "automatic_valet" } });
  });

  test.each([
    ["no JSON", "{", /JSON/],
    ["no object", "[]", /object/],
    ["no type", "{}", /type/],
    ["a missing member", JSON.stringify({ type: "pong", seq: 1, page_us: 2 }), /time_us: expected an integer/],
    ["a value beyond its range", JSON.stringify({ ...STATE, link: { ...STATE.link, loss: 1.5 } }), /link\.loss: expected a number of 0 to 1/],
    ["a text for a number", JSON.stringify({ ...STATE, seq: "7" }), /seq/],
    ["a speed that is not finite", JSON.stringify(STATE).replace('"speed_mps":8.3', '"speed_mps":1e999'), /speed_mps/],
    ["a gear that does not exist", JSON.stringify({ ...STATE, vehicle: { ...STATE.vehicle, gear: "5" } }), /gear/],
    ["a list that is too long", JSON.stringify({ type: "map", lines: Array.from({ length: 257 }, () => ({ kind: "lane", points: [] })) }), /at most 256/],
    ["a message that is too long", `{"type":"${"x".repeat(300_000)}"}`, /at most/],
  ])("%s is rejected with its place", (_, json, error) => {
    expect(() => parseServerMessage(json)).toThrow(error);
  });

  test("a type of a later version is ignored", () => {
    expect(parseServerMessage('{"type":"weather"}')).toBeUndefined();
    expect(parseServerMessage('{"type":"constructor"}')).toBeUndefined();
  });
});

const STATE = {
  type: "state",
  seq: 7,
  time_us: 1_795_422_645_123_456,
  vehicle: { age_ms: 20, speed_mps: 8.3, speed_limit_mps: 13.9, limit_reason: "vehicle", steering_rad: 0.1, gear: "D", hazard_lights: false },
  position: { lat_deg: 52.27, lon_deg: 10.53, heading_deg: 90 },
  driving: { state: "driving", reason: null, since_us: 1_795_422_640_000_000, holder: { name: "Anna", you: true }, request: null },
  link: { connected: true, rtt_ms: 40, one_way_ms: 20, loss: 0.003, rate_mbps: 6.9, missed: 3 },
  command: { age_ms: 25, seq: 9, refused: 0 },
  clock: { offset_us: -120, uncertainty_us: 800 },
};

function change(message: Uint8Array, at: number, value: number): Uint8Array {
  return message.with(at, value);
}

function octets(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from((hex.match(/../g) ?? []).map((octet) => Number.parseInt(octet, 16)));
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((octet) => octet.toString(16).padStart(2, "0")).join("");
}

/** A linear congruential generator: the same numbers in each run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}
