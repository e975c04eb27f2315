// A baseline JPEG encoder (ITU-T T.81, YCbCr 4:2:0) for the development server. Each row of 16 lines is a restart interval of its own,
// so that one row of a finished picture can be replaced: that is how a cached scene gets a new mark in each frame.

/** Height of a replaceable row. */
export const ROW_PX = 16;

/** RGB, row by row. */
export interface Picture {
  data: Uint8Array;
  width: number;
  height: number;
}

export interface EncodedPicture {
  head: Uint8Array;
  rows: Uint8Array[];
}

const SIZE = 8;
const ZIGZAG = [
  0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
  30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];
// T.81, tables K.1 and K.2.
const LUMA_QUANTISERS = [
  16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35,
  55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const CHROMA_QUANTISERS = Array.from({ length: 64 }, (_, at) => [17, 18, 24, 47, 18, 21, 26, 66, 24, 26, 56, 99, 47, 66, 99, 99][(at >> 3) * 4 + (at & 7)]).map((value, at) =>
  (at & 7) < 4 && at >> 3 < 4 ? (value ?? 99) : 99,
);
// T.81, tables K.3 and K.5: number of codes of each length, then their symbols. Chroma uses the tables of luma.
const DC_LENGTHS = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const DC_SYMBOLS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const AC_LENGTHS = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d];
const AC_SYMBOLS = hex(
  "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a" +
    "636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa",
);
const DC_CODES = codes(DC_LENGTHS, DC_SYMBOLS);
const AC_CODES = codes(AC_LENGTHS, AC_SYMBOLS);
const COSINES = Float32Array.from({ length: 64 }, (_, at) => {
  const [frequency, place] = [at >> 3, at & 7];
  return (frequency === 0 ? Math.SQRT1_2 : 1) * 0.5 * Math.cos(((2 * place + 1) * frequency * Math.PI) / 16);
});

const INVERSE_COSINES = COSINES.map((_, at) => COSINES[(at & 7) * SIZE + (at >> 3)] as number);

const COEFFICIENTS = new Float32Array(64);
const VALUES = new Int16Array(64);

export class JpegEncoder {
  readonly #luma: number[];
  readonly #chroma: number[];

  /** `quality`: 1 to 100, scaled as libjpeg does. */
  constructor(quality: number) {
    const scale = quality < 50 ? 5_000 / quality : 200 - 2 * quality;
    const scaled = (table: readonly number[]): number[] => table.map((value) => Math.min(255, Math.max(1, Math.floor((value * scale + 50) / 100))));
    this.#luma = scaled(LUMA_QUANTISERS);
    this.#chroma = scaled(CHROMA_QUANTISERS);
  }

  /** Width and height must be multiples of 16. */
  encode(picture: Picture): EncodedPicture {
    const rows = Array.from({ length: picture.height / ROW_PX }, (_, row) => this.encodeRow(picture, row * ROW_PX));
    return { head: this.#head(picture), rows };
  }

  /** Encodes the 16 lines from `top`. */
  encodeRow(picture: Picture, top: number): Uint8Array {
    const bits = new BitWriter();
    const last = [0, 0, 0];
    for (let left = 0; left < picture.width; left += ROW_PX) {
      const { luma, cb, cr } = toYCbCr(picture, left, top);
      for (const block of luma) last[0] = this.#block(bits, block, this.#luma, last[0] as number);
      last[1] = this.#block(bits, cb, this.#chroma, last[1] as number);
      last[2] = this.#block(bits, cr, this.#chroma, last[2] as number);
    }
    return bits.finish();
  }

  /** Returns the samples of a block as a decoder sees them. */
  roundTrip(samples: Float32Array): Float32Array {
    const [coefficients, result] = [new Float32Array(64), new Float32Array(64)];
    transform(samples, COSINES, coefficients);
    const quantised = coefficients.map((value, at) => Math.round(value / (this.#luma[at] as number)) * (this.#luma[at] as number));
    transform(quantised, INVERSE_COSINES, result);
    return result.map((value) => Math.min(127, Math.max(-128, Math.round(value))));
  }

  #block(bits: BitWriter, samples: Float32Array, quantisers: readonly number[], lastDc: number): number {
    transform(samples, COSINES, COEFFICIENTS);
    for (let index = 0; index < 64; index += 1) {
      const at = ZIGZAG[index] as number;
      VALUES[index] = Math.round((COEFFICIENTS[at] as number) / (quantisers[at] as number));
    }
    const dc = VALUES[0] as number;
    bits.symbol(DC_CODES, sizeOf(dc - lastDc));
    bits.value(dc - lastDc);
    writeAc(bits, VALUES);
    return dc;
  }

  #head({ width, height }: Picture): Uint8Array {
    const words = (...values: number[]): number[] => values.flatMap((value) => [value >> 8, value & 255]);
    const segment = (marker: number, content: readonly number[]): number[] => [0xff, marker, ...words(content.length + 2), ...content];
    return Uint8Array.from([
      0xff, 0xd8,
      ...segment(0xdb, [0, ...ZIGZAG.map((at) => this.#luma[at] as number), 1, ...ZIGZAG.map((at) => this.#chroma[at] as number)]),
      ...segment(0xc0, [8, ...words(height, width), 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]),
      ...segment(0xc4, [0x00, ...DC_LENGTHS, ...DC_SYMBOLS, 0x10, ...AC_LENGTHS, ...AC_SYMBOLS]),
      ...segment(0xdd, words(width / ROW_PX)),
      ...segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
    ]);
  }
}

/** Joins the parts of a picture to a file; `first` replaces the first row. */
export function assemble({ head, rows }: EncodedPicture, first: Uint8Array = rows[0] as Uint8Array): Uint8Array<ArrayBuffer> {
  const parts = [head, ...rows.flatMap((row, at) => [at === 0 ? first : row, Uint8Array.of(0xff, at === rows.length - 1 ? 0xd9 : 0xd0 + (at & 7))])];
  const file = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}

function writeAc(bits: BitWriter, values: Int16Array): void {
  let zeros = 0;
  for (let index = 1; index < 64; index += 1) {
    const value = values[index] as number;
    if (value === 0) {
      zeros += 1;
      continue;
    }
    for (; zeros > 15; zeros -= 16) bits.symbol(AC_CODES, 0xf0);
    bits.symbol(AC_CODES, (zeros << 4) | sizeOf(value));
    bits.value(value);
    zeros = 0;
  }
  if (zeros > 0) bits.symbol(AC_CODES, 0);
}

// The same memory for all blocks: the encoder spends most of its time here.
const MCU = { luma: [0, 1, 2, 3].map(() => new Float32Array(64)), cb: new Float32Array(64), cr: new Float32Array(64) };

/** Returns four blocks of luma and one of each chroma, from -128 to 127; valid until the next call. */
function toYCbCr({ data, width }: Picture, left: number, top: number): typeof MCU {
  MCU.cb.fill(0);
  MCU.cr.fill(0);
  for (let row = 0; row < ROW_PX; row += 1) {
    for (let column = 0; column < ROW_PX; column += 1) {
      const from = ((top + row) * width + left + column) * 3;
      const [r, g, b] = [data[from] as number, data[from + 1] as number, data[from + 2] as number];
      (MCU.luma[(row >> 3) * 2 + (column >> 3)] as Float32Array)[(row & 7) * SIZE + (column & 7)] = 0.299 * r + 0.587 * g + 0.114 * b - 128;
      const small = (row >> 1) * SIZE + (column >> 1);
      MCU.cb[small]! += (-0.1687 * r - 0.3313 * g + 0.5 * b) / 4;
      MCU.cr[small]! += (0.5 * r - 0.4187 * g - 0.0813 * b) / 4;
    }
  }
  return MCU;
}

const HALFWAY = new Float32Array(64);

/** The discrete cosine transform, or its inverse, into `result`: rows, then columns. */
function transform(samples: Float32Array, cosines: Float32Array, result: Float32Array): void {
  lines(samples, cosines, HALFWAY);
  lines(HALFWAY, cosines, result);
}

/** Transforms each row and transposes the result. */
function lines(samples: Float32Array, cosines: Float32Array, result: Float32Array): void {
  for (let row = 0; row < 64; row += SIZE) {
    for (let to = 0; to < 64; to += SIZE) {
      let sum = 0;
      for (let at = 0; at < SIZE; at += 1) sum += (samples[row + at] as number) * (cosines[to + at] as number);
      result[to + (row >> 3)] = sum;
    }
  }
}

class BitWriter {
  readonly #octets: number[] = [];
  #buffer = 0;
  #count = 0;

  symbol(table: readonly (readonly [number, number] | undefined)[], symbol: number): void {
    const [code, length] = table[symbol] as readonly [number, number];
    this.#write(code, length);
  }

  /** Writes a coefficient in its own number of bits; a negative one as its complement. */
  value(value: number): void {
    const size = sizeOf(value);
    this.#write(value < 0 ? value + 2 ** size - 1 : value, size);
  }

  /** Fills the last octet with ones. */
  finish(): Uint8Array {
    if (this.#count > 0) this.#write(2 ** (8 - this.#count) - 1, 8 - this.#count);
    return Uint8Array.from(this.#octets);
  }

  #write(code: number, length: number): void {
    this.#buffer = (this.#buffer << length) | code;
    this.#count += length;
    while (this.#count >= 8) {
      const octet = (this.#buffer >> (this.#count - 8)) & 255;
      this.#octets.push(octet);
      if (octet === 255) this.#octets.push(0);
      this.#count -= 8;
      this.#buffer &= 2 ** this.#count - 1;
    }
  }
}

function sizeOf(value: number): number {
  return 32 - Math.clz32(Math.abs(value));
}

function codes(lengths: readonly number[], symbols: readonly number[]): (readonly [number, number] | undefined)[] {
  const table: (readonly [number, number] | undefined)[] = [];
  let [code, next] = [0, 0];
  lengths.forEach((count, index) => {
    for (let i = 0; i < count; i += 1) {
      table[symbols[next] as number] = [code, index + 1];
      code += 1;
      next += 1;
    }
    code <<= 1;
  });
  return table;
}

function hex(text: string): number[] {
  return (text.match(/../g) ?? []).map((octet) => Number.parseInt(octet, 16));
}
