// Contrast, and distance of colours as people with colour blindness see them.

export type Triple = readonly [number, number, number];

/** Machado, Oliveira and Fernandes, 2009: complete dichromacy, applied to linear RGB. */
export const VISIONS: Readonly<Record<string, readonly Triple[]>> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** Smallest distance of two colours of the set (CIE76 in CIELAB; 2.3 is just noticeable). */
export function closest(colours: readonly string[], vision: readonly Triple[]): number {
  const labs = colours.map((colour) => lab(seen(colour, vision)));
  const distances = labs.flatMap((a, i) => labs.slice(0, i).map((b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])));
  return Math.min(...distances);
}

export function seen(hex: string, vision: readonly Triple[]): Triple {
  const [r, g, b] = linear(hex);
  return vision.map((row) => Math.min(1, Math.max(0, row[0] * r + row[1] * g + row[2] * b))) as unknown as Triple;
}

function linear(hex: string): Triple {
  const channel = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

/** CIELAB with the white point D65. */
export function lab([r, g, b]: Triple): Triple {
  const f = (t: number): number => (t > 216 / 24_389 ? Math.cbrt(t) : ((24_389 / 27) * t + 16) / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

export function contrast(a: string, b: string): number {
  const [light, dark] = [a, b].map(luminance).sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex: string): number {
  const [r, g, b] = linear(hex);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
