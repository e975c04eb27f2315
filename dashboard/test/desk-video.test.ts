import { describe, expect, test } from "vitest";
import type { Frame } from "../src/desk/protocol/frame";
import { fingerprint, freshness, type Shown } from "../src/desk/video/freshness";
import { Gate } from "../src/desk/video/gate";
import { GlassLatency } from "../src/desk/video/latency";

const LIMITS = { late_ms: 200, freeze_ms: 300 };
const DESK_US = 1_795_422_645_000_000;

/** A picture taken 50 ms before it was shown, looked at `after_ms` later. */
function look(after_ms: number, change: Partial<Shown> = {}, deskLost = false, desk = true) {
  const shown: Shown = { shown_ms: 1_000, capture_us: DESK_US - 50_000, same_since_ms: 1_000, ...change };
  return freshness(shown, deskLost, 1_000 + after_ms, desk ? DESK_US + after_ms * 1_000 : undefined, LIMITS);
}

describe("freshness", () => {
  test("before the first frame there is nothing to mark", () => {
    expect(freshness(undefined, false, 0, DESK_US, LIMITS)).toEqual({ picture: "waiting", age_ms: undefined, reason: undefined });
  });

  test.each([
    [0, "live", 50],
    [149, "live", 199],
    [160, "late", 210],
    [249, "late", 299],
    [260, "frozen", 310],
    [5_000, "frozen", 5_050],
  ])("%i ms after it was shown, a picture is %s", (after_ms, picture, age_ms) => {
    expect(look(after_ms)).toMatchObject({ picture, age_ms });
  });

  test("the reason is the missing frame, or its age", () => {
    expect(look(301)).toMatchObject({ picture: "frozen", reason: "no_frames" });
    expect(look(10, { capture_us: DESK_US - 400_000 })).toMatchObject({ picture: "frozen", age_ms: 410, reason: "old_frames" });
  });

  test("a lost desk freezes a picture at once", () => {
    expect(look(0, {}, true)).toMatchObject({ picture: "frozen", reason: "desk_lost" });
  });

  test("a vehicle's clock that is ahead does not make a picture younger than its time on the screen", () => {
    expect(look(260, { capture_us: DESK_US + 10_000_000 })).toMatchObject({ picture: "late", age_ms: 260 });
    expect(look(301, { capture_us: DESK_US + 10_000_000 })).toMatchObject({ picture: "frozen", age_ms: 301 });
  });

  test("without the desk's time, the age counts from the time on the screen", () => {
    expect(look(100, {}, false, false)).toMatchObject({ picture: "live", age_ms: 100 });
    expect(look(301, {}, false, false)).toMatchObject({ picture: "frozen" });
  });

  test("a camera that repeats a picture is frozen, one that has sent a single picture is not", () => {
    expect(look(20, { same_since_ms: 700 })).toMatchObject({ picture: "frozen", reason: "same_picture", age_ms: 320 });
    expect(look(20, { same_since_ms: 800 })).toMatchObject({ picture: "live" });
  });

  test("equal pictures have equal fingerprints, and one changed octet another one", () => {
    const picture = Uint8Array.from({ length: 30_000 }, (_, at) => (at * 7) & 255);
    expect(fingerprint(picture.slice())).toBe(fingerprint(picture));
    for (const at of [0, 1, 15_001, 29_999]) expect(fingerprint(picture.with(at, (picture[at] ?? 0) ^ 1))).not.toBe(fingerprint(picture));
  });

  test("the number and the time in an application segment do not make a picture another one", () => {
    const jpeg = (number: number, content: number) => Uint8Array.from([0xff, 0xd8, 0xff, 0xe9, 0, 4, 0, number, 0xff, 0xfe, 0, 3, number, 0xff, 0xdb, 0, 3, content]);
    expect(fingerprint(jpeg(2, 7))).toBe(fingerprint(jpeg(1, 7)));
    expect(fingerprint(jpeg(1, 8))).not.toBe(fingerprint(jpeg(1, 7)));
    // A segment that is longer than the file belongs to the content.
    expect(fingerprint(Uint8Array.from([0xff, 0xd8, 0xff, 0xe9, 9, 9, 1]))).not.toBe(fingerprint(Uint8Array.from([0xff, 0xd8, 0xff, 0xe9, 9, 9, 2])));
  });
});

describe("the gate", () => {
  test("passes newer frames and counts older and repeated ones", () => {
    const gate = new Gate();
    expect([1, 2, 5, 4, 5, 6].map((number) => gate.offer(frame(number), number))).toEqual(["accepted", "accepted", "accepted", "older", "older", "accepted"]);
    expect(gate.older).toBe(2);
  });

  test("passes the number after the largest one", () => {
    const gate = new Gate();
    expect([2 ** 32 - 2, 2 ** 32 - 1, 0, 1].map((number, index) => gate.offer(frame(number, index + 1), index))).toEqual(Array(4).fill("accepted"));
    expect(gate.offer(frame(2 ** 32 - 1, 3), 4)).toBe("older");
  });

  test("passes a camera that has restarted", () => {
    const gate = new Gate();
    gate.offer(frame(5_000, 10), 0);
    expect(gate.offer(frame(0, 11), 100)).toBe("accepted");
  });

  test("rejects an old frame whose number was reordered only a little, even with a newer time", () => {
    const gate = new Gate();
    gate.offer(frame(5_000, 10), 0);
    expect(gate.offer(frame(4_990, 11), 100)).toBe("older");
  });

  test("accepts times that stay behind after a second, and counts the restart", () => {
    const gate = new Gate();
    gate.offer(frame(50, 1_000), 0);
    expect([gate.offer(frame(51, 10), 500), gate.offer(frame(52, 11), 999), gate.offer(frame(53, 12), 1_000), gate.offer(frame(54, 13), 1_100)]).toEqual(["older", "older", "accepted", "accepted"]);
    expect(gate.restarts).toBe(1);
  });
});

describe("glass-to-glass latencies", () => {
  test("the median is that of the newest samples", () => {
    const glass = new GlassLatency();
    expect(glass.median_us).toBeUndefined();
    for (let sample = 0; sample < 100; sample += 1) glass.add(sample < 80 ? 500_000 : 90_000 + sample);
    expect(glass.median_us).toBe(90_092);
  });

  test("each sample is reported once, and their number is limited", () => {
    const glass = new GlassLatency();
    for (let sample = 0; sample < 70; sample += 1) glass.add(sample);
    const reported = glass.takeUnreported();
    expect([reported.length, reported[0], reported.at(-1)]).toEqual([64, 6, 69]);
    expect(glass.takeUnreported()).toEqual([]);
    for (let sample = 0; sample < 5_000; sample += 1) glass.add(sample);
    expect(glass.samples).toHaveLength(4_096);
  });
});

function frame(number: number, capture_us = number): Frame {
  const flags = { mark: false, reduced: false, repaired: false };
  return { camera: 0, flags, number, missed: 0, capture_us, arrival_us: capture_us, deadline_us: undefined, width_px: 640, height_px: 480, uncertainty_us: undefined, picture: new Uint8Array(1) };
}
