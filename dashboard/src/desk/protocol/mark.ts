// The machine-readable mark in a picture: docs/reference/teleop-desk-websocket.md, "Mark". Frame number and capture time are black
// and white cells in the top left corner. Each cell is a whole number of 8x8 JPEG blocks, so it survives strong compression.

export interface Mark {
  /** Index of the camera, 0 to 15. */
  camera: number;
  /** Frame number, 0 to 2^32 - 1. */
  frame: number;
  /** Capture time in microseconds, modulo 2^48. */
  time_us: number;
}

/** RGBA pixels, row by row, as `CanvasRenderingContext2D.getImageData` returns them. */
export interface Pixels {
  data: Uint8ClampedArray | Uint8Array;
  width: number;
  height: number;
}

/** `absent`: there is no start pattern. `checksum`: there is one, but the content is damaged. */
export type MarkFault = "absent" | "checksum";

export const MARK_OCTETS = 14;
export const MARK_ROWS = 2;
export const MARK_COLUMNS = 56;
export const MARK_BLACK = 16;
export const MARK_WHITE = 235;

const START = 0xb2;
const FORMAT = 1;
const TIME_MODULUS_US = 2 ** 48;
/** Smallest difference between the means of the white and the black cells of the start pattern, in steps of luma. */
const CONTRAST_MIN = 64;

/** Returns the edge of a cell in pixels, or `undefined` if the picture is too narrow for the mark. */
export function markCell_px(width_px: number): number | undefined {
  const cell_px = 8 * Math.max(1, Math.floor(width_px / 640));
  return cell_px * MARK_COLUMNS <= width_px ? cell_px : undefined;
}

/** Returns the octets of the mark. Its bits are the cells: row by row, highest bit first, 1 is white. */
export function encodeMark(mark: Mark): Uint8Array {
  const octets = new Uint8Array(MARK_OCTETS);
  const view = new DataView(octets.buffer);
  const time_us = modulo(mark.time_us, TIME_MODULUS_US);
  view.setUint8(0, START);
  view.setUint8(1, (FORMAT << 4) | (mark.camera & 0xf));
  view.setUint32(2, mark.frame);
  view.setUint16(6, Math.floor(time_us / 2 ** 32));
  view.setUint32(8, time_us % 2 ** 32);
  view.setUint16(12, crc16(octets.subarray(1, 12)));
  return octets;
}

/** Reads the mark of a picture; `pixels` need only hold its top rows. */
export function readMark(pixels: Pixels): Mark | MarkFault {
  const cell_px = markCell_px(pixels.width);
  if (cell_px === undefined || pixels.height < MARK_ROWS * cell_px) return "absent";
  const lumas = readCells(pixels, cell_px);
  const threshold = startThreshold(lumas);
  if (threshold === undefined) return "absent";
  return decode(pack(lumas, threshold));
}

/** Returns the complete time: the one nearest to `near_us` with the lower 48 bits of `time_us`. */
export function unwrapTime_us(time_us: number, near_us: number): number {
  const ahead_us = modulo(time_us - near_us, TIME_MODULUS_US);
  return near_us + (ahead_us < TIME_MODULUS_US / 2 ? ahead_us : ahead_us - TIME_MODULUS_US);
}

/** CRC-16/IBM-3740: polynomial 0x1021, start value 0xffff, no reflection. */
export function crc16(octets: Uint8Array): number {
  let crc = 0xffff;
  for (const octet of octets) {
    crc ^= octet << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}

function decode(octets: Uint8Array): Mark | MarkFault {
  const view = new DataView(octets.buffer);
  if (view.getUint8(0) !== START || view.getUint8(1) >> 4 !== FORMAT) return "absent";
  if (view.getUint16(12) !== crc16(octets.subarray(1, 12))) return "checksum";
  return { camera: view.getUint8(1) & 0xf, frame: view.getUint32(2), time_us: view.getUint16(6) * 2 ** 32 + view.getUint32(8) };
}

/** Returns the mean luma of the inner half of each cell; its edge is blurred by neighbours if the picture was scaled. */
function readCells(pixels: Pixels, cell_px: number): number[] {
  const lumas: number[] = [];
  for (let row = 0; row < MARK_ROWS; row += 1) {
    for (let column = 0; column < MARK_COLUMNS; column += 1) lumas.push(meanLuma(pixels, column * cell_px, row * cell_px, cell_px));
  }
  return lumas;
}

function meanLuma({ data, width }: Pixels, left: number, top: number, cell_px: number): number {
  const inset = cell_px / 4;
  let sum = 0;
  for (let y = top + inset; y < top + cell_px - inset; y += 1) {
    for (let x = left + inset; x < left + cell_px - inset; x += 1) {
      const at = (y * width + x) * 4;
      sum += 0.299 * (data[at] ?? 0) + 0.587 * (data[at + 1] ?? 0) + 0.114 * (data[at + 2] ?? 0);
    }
  }
  return sum / (cell_px - 2 * inset) ** 2;
}

/** Returns the luma between black and white, from the start pattern; `undefined` if the pattern has too little contrast. */
function startThreshold(lumas: readonly number[]): number | undefined {
  const sums = [0, 0];
  for (let bit = 0; bit < 8; bit += 1) sums[(START >> (7 - bit)) & 1]! += lumas[bit] ?? 0;
  const [black, white] = sums.map((sum) => sum / 4) as [number, number];
  return white - black >= CONTRAST_MIN ? (white + black) / 2 : undefined;
}

function pack(lumas: readonly number[], threshold: number): Uint8Array {
  const octets = new Uint8Array(MARK_OCTETS);
  lumas.forEach((luma, bit) => {
    if (luma > threshold) octets[bit >> 3]! |= 0x80 >> (bit & 7);
  });
  return octets;
}

function modulo(value: number, modulus: number): number {
  return ((value % modulus) + modulus) % modulus;
}
