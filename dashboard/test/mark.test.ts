import { describe, expect, test } from "vitest";
import { JpegEncoder } from "../dev/jpeg";
import { drawMark } from "../dev/scene";
import { crc16, type Mark, MARK_ROWS, markCell_px, type Pixels, readMark, unwrapTime_us } from "../src/desk/protocol/mark";

const MARK: Mark = { camera: 2, frame: 305_419_896, time_us: 106_572_784_859_520 };

test("the checksum has the check value of CRC-16/IBM-3740", () => {
  expect(crc16(new TextEncoder().encode("123456789"))).toBe(0x29b1);
});

test("a cell is a whole number of JPEG blocks, and narrow pictures have no mark", () => {
  expect([320, 447, 448, 640, 1_279, 1_280, 1_920].map(markCell_px)).toEqual([undefined, undefined, 8, 8, 8, 16, 24]);
});

describe("a mark is read", () => {
  test.each([448, 640, 800, 1_280, 1_920])("from a picture with %i columns", (width) => {
    expect(readMark(marked(width, MARK))).toEqual(MARK);
  });

  test.each([
    { camera: 0, frame: 0, time_us: 0 },
    { camera: 15, frame: 0xffff_ffff, time_us: 2 ** 48 - 1 },
    { camera: 3, frame: 1, time_us: 2 ** 32 },
  ])("with the values $camera, $frame, $time_us", (mark) => {
    expect(readMark(marked(640, mark))).toEqual(mark);
  });

  test.each([90, 75, 50, 30, 10])("after compression with quality %i", (quality) => {
    expect(readMark(compressed(marked(640, MARK), quality))).toEqual(MARK);
  });

  test("after compression with quality 50 of a noisy picture", () => {
    const random = generator(3);
    for (let frame = 0; frame < 50; frame += 1) {
      const mark = { camera: frame % 4, frame: Math.floor(random() * 2 ** 32), time_us: Math.floor(random() * 2 ** 48) };
      expect(readMark(compressed(change(marked(640, mark), (value) => value + (random() - 0.5) * 80), 50))).toEqual(mark);
    }
  });

  test.each([
    ["darker", (value: number) => value * 0.5],
    ["brighter", (value: number) => value * 0.6 + 100],
    ["with half the contrast", (value: number) => 128 + (value - 128) * 0.5],
  ])("from a picture that is %s", (_, map) => {
    expect(readMark(change(marked(640, MARK), map))).toEqual(MARK);
  });

  test("from a picture that was moved by a pixel", () => {
    const { data, width, height } = marked(640, MARK);
    const moved = new Uint8Array(data.length);
    moved.set(data.subarray(0, data.length - 4), 4);
    expect(readMark({ data: moved, width, height })).toEqual(MARK);
  });
});

describe("no mark is read", () => {
  test("from a picture without one", () => {
    const random = generator(5);
    for (let picture = 0; picture < 200; picture += 1) {
      const blocks = Array.from({ length: 200 }, () => random() * 255);
      const pixels = change(marked(640, MARK), (_, at) => blocks[(at >> 3) % blocks.length] ?? 0);
      expect(typeof readMark(pixels)).toBe("string");
    }
    expect(readMark(change(marked(640, MARK), () => 128))).toBe("absent");
  });

  test("if any cell is inverted", () => {
    const cells = 112;
    for (let cell = 0; cell < cells; cell += 1) {
      const [column, row] = [cell % 56, Math.floor(cell / 56)];
      const pixels = change(marked(640, MARK), (value, at) => (Math.floor((at % 640) / 8) === column && Math.floor(at / 640 / 8) === row ? 255 - value : value));
      expect(typeof readMark(pixels), `cell ${cell}`).toBe("string");
    }
  });

  test("from pictures that are too small", () => {
    expect(readMark({ data: new Uint8Array(0), width: 0, height: 0 })).toBe("absent");
    expect(readMark({ data: new Uint8Array(640 * 8 * 4), width: 640, height: 8 })).toBe("absent");
  });
});

test("the complete time is the one nearest to the time of the header", () => {
  const time_us = 1_795_422_645_123_456;
  const short_us = time_us % 2 ** 48;
  for (const error_us of [0, -5_000_000, 5_000_000, -(2 ** 46), 2 ** 46]) expect(unwrapTime_us(short_us, time_us + error_us)).toBe(time_us);
});

/** Returns the top rows of a grey picture with the mark. */
function marked(width: number, mark: Mark): Pixels {
  const height = MARK_ROWS * (markCell_px(width) ?? 8);
  const rgb = new Uint8Array(width * height * 3).fill(120);
  drawMark({ data: rgb, width, height }, mark);
  const data = new Uint8Array(width * height * 4);
  for (let at = 0; at < width * height; at += 1) data.set([rgb[at * 3] ?? 0, rgb[at * 3 + 1] ?? 0, rgb[at * 3 + 2] ?? 0, 255], at * 4);
  return { data, width, height };
}

/** Changes each pixel, grey; values beyond 0 to 255 are limited. */
function change({ data, width, height }: Pixels, map: (value: number, at: number) => number): Pixels {
  const changed = new Uint8ClampedArray(data.length);
  for (let at = 0; at < width * height; at += 1) {
    const value = map(data[at * 4] ?? 0, at);
    changed.set([value, value, value, 255], at * 4);
  }
  return { data: changed, width, height };
}

/** Returns the grey picture as a JPEG decoder would. */
function compressed({ data, width, height }: Pixels, quality: number): Pixels {
  const encoder = new JpegEncoder(quality);
  const result = new Uint8ClampedArray(data.length);
  for (let top = 0; top < height; top += 8) {
    for (let left = 0; left < width; left += 8) {
      const place = (at: number): number => ((top + (at >> 3)) * width + left + (at & 7)) * 4;
      const block = encoder.roundTrip(Float32Array.from({ length: 64 }, (_, at) => (data[place(at)] ?? 0) - 128));
      block.forEach((value, at) => result.set([value + 128, value + 128, value + 128, 255], place(at)));
    }
  }
  return { data: result, width, height };
}

/** A linear congruential generator: the same numbers in each run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}
