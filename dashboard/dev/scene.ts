// Synthetic pictures of a road for the development server: one per camera, metre of the way and curve, rendered once and kept.

import { encodeMark, MARK_BLACK, MARK_COLUMNS, MARK_WHITE, markCell_px, type Mark } from "../src/desk/protocol/mark";
import { assemble, type EncodedPicture, JpegEncoder, type Picture, ROW_PX } from "./jpeg";

export const PLACES = ["front", "left", "right", "rear"] as const;
export type ScenePlace = (typeof PLACES)[number];

const WIDTH = 640;
const HEIGHT = 480;
const HORIZON = 190;
const FOCAL_PX = 430;
const CAMERA_HEIGHT_M = 1.6;
/** The scene repeats after this way. */
const PERIOD_M = 18;
/** Shortest time between two renderings. */
const RENDER_PAUSE_MS = 150;
const YAW_DEG: Readonly<Record<ScenePlace, number>> = { front: 0, left: 70, right: -70, rear: 180 };

type Colour = readonly [number, number, number];

interface Cached {
  encoded: EncodedPicture;
  /** The first row, into which the mark is drawn. */
  top: Picture;
}

export class Scenes {
  readonly #encoder: JpegEncoder;
  readonly #cache = new Map<string, Cached>();
  /** The last scene of each place, shown while another one is not rendered yet. */
  readonly #last = new Map<ScenePlace, Cached>();
  #rendered_ms = Number.NEGATIVE_INFINITY;

  constructor(quality: number) {
    this.#encoder = new JpegEncoder(quality);
  }

  /** Returns the JPEG of the camera after `way_m`, in a curve of 1/m (left is positive), with the mark. */
  picture(place: ScenePlace, way_m: number, curve_per_m: number, mark: Mark): Uint8Array<ArrayBuffer> {
    const { encoded, top } = this.#scene(place, ((Math.floor(way_m) % PERIOD_M) + PERIOD_M) % PERIOD_M, Math.round(curve_per_m * 80) / 80);
    const row = { ...top, data: top.data.slice() };
    drawMark(row, mark);
    return assemble(encoded, this.#encoder.encodeRow(row, 0));
  }

  /** Returns the scene. Rendering takes long, so it is done once in a while only. */
  #scene(place: ScenePlace, way_m: number, curve_per_m: number): Cached {
    const key = `${place} ${way_m} ${curve_per_m}`;
    const last = this.#last.get(place);
    const scene = this.#cache.get(key) ?? (last && performance.now() - this.#rendered_ms < RENDER_PAUSE_MS ? last : this.#render(key, place, way_m, curve_per_m));
    this.#last.set(place, scene);
    return scene;
  }

  #render(key: string, place: ScenePlace, way_m: number, curve_per_m: number): Cached {
    const picture = render(place, way_m, curve_per_m);
    const made = { encoded: this.#encoder.encode(picture), top: { data: picture.data.slice(0, WIDTH * ROW_PX * 3), width: WIDTH, height: ROW_PX } };
    this.#cache.set(key, made);
    this.#rendered_ms = performance.now();
    return made;
  }
}

export function drawMark(picture: Picture, mark: Mark): void {
  const cell_px = markCell_px(picture.width) as number;
  const octets = encodeMark(mark);
  for (let bit = 0; bit < octets.length * 8; bit += 1) {
    const white = ((octets[bit >> 3] as number) & (0x80 >> (bit & 7))) !== 0;
    fill(picture, (bit % MARK_COLUMNS) * cell_px, Math.floor(bit / MARK_COLUMNS) * cell_px, cell_px, cell_px, white ? MARK_WHITE : MARK_BLACK);
  }
}

function fill({ data, width }: Picture, left: number, top: number, columns: number, rows: number, level: number): void {
  for (let y = top; y < top + rows; y += 1) data.fill(level, (y * width + left) * 3, (y * width + left + columns) * 3);
}

function render(place: ScenePlace, way_m: number, curve_per_m: number): Picture {
  const data = new Uint8Array(WIDTH * HEIGHT * 3);
  const yaw = (YAW_DEG[place] * Math.PI) / 180;
  const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      const colour = y < HORIZON ? sky(x, y, yaw) : ground(x, y, cos, sin, way_m, curve_per_m);
      put(data, (y * WIDTH + x) * 3, colour);
    }
  }
  const picture = { data, width: WIDTH, height: HEIGHT };
  for (const tree of trees(way_m)) drawTree(picture, tree.ahead_m, tree.left_m + (curve_per_m * tree.ahead_m ** 2) / 2, cos, sin);
  if (place === "front") drawBonnet(picture);
  return picture;
}

function sky(x: number, y: number, yaw: number): Colour {
  const angle = Math.atan((WIDTH / 2 - x) / FOCAL_PX) + yaw;
  const hill = HORIZON - 14 - 9 * Math.sin(angle * 5) - 6 * Math.sin(angle * 11 + 1);
  if (y > hill) return [92, 112, 108];
  const height = y / HORIZON;
  return [118 + 70 * height, 150 + 52 * height, 188 + 28 * height];
}

function ground(x: number, y: number, cos: number, sin: number, way_m: number, curve_per_m: number): Colour {
  const depth_m = (CAMERA_HEIGHT_M * FOCAL_PX) / (y - HORIZON + 0.5);
  const side_m = ((WIDTH / 2 - x) / FOCAL_PX) * depth_m;
  const ahead_m = depth_m * cos - side_m * sin;
  const left_m = depth_m * sin + side_m * cos - (curve_per_m * ahead_m ** 2) / 2;
  const haze = Math.min(1, depth_m / 160);
  const colour = surface(left_m, ahead_m + way_m);
  return [colour[0] + (150 - colour[0]) * haze, colour[1] + (165 - colour[1]) * haze, colour[2] + (170 - colour[2]) * haze];
}

/** The road has two lanes of 3.5 m; the vehicle drives in the right one. */
function surface(left_m: number, along_m: number): Colour {
  const along = ((along_m % PERIOD_M) + PERIOD_M) % PERIOD_M;
  if (left_m < -1.9 || left_m > 5.4) return Math.floor(along / 3) % 2 === Math.floor(Math.abs(left_m) / 4) % 2 ? [74, 104, 56] : [66, 95, 51];
  const grain = ((Math.floor(along * 4) * 7 + Math.floor((left_m + 9) * 4) * 13) % 5) * 2;
  const edge = Math.abs(left_m + 1.7) < 0.08 || Math.abs(left_m - 5.2) < 0.08;
  const dash = Math.abs(left_m - 1.75) < 0.08 && along % 9 < 4;
  return edge || dash ? [228, 228, 222] : [78 + grain, 80 + grain, 83 + grain];
}

function trees(way_m: number): { ahead_m: number; left_m: number }[] {
  const all = [-4, -3, -2, -1, 0, 1, 2, 3, 4].flatMap((row) => [
    { ahead_m: row * PERIOD_M - way_m + 4, left_m: 10.5 },
    { ahead_m: row * PERIOD_M - way_m + 13, left_m: -7.5 },
  ]);
  return all.sort((a, b) => Math.hypot(b.ahead_m, b.left_m) - Math.hypot(a.ahead_m, a.left_m));
}

function drawTree(picture: Picture, ahead_m: number, left_m: number, cos: number, sin: number): void {
  const depth_m = ahead_m * cos + left_m * sin;
  if (depth_m < 2) return;
  const side_m = left_m * cos - ahead_m * sin;
  const [x, scale] = [WIDTH / 2 - (side_m / depth_m) * FOCAL_PX, FOCAL_PX / depth_m];
  const foot = HORIZON + CAMERA_HEIGHT_M * scale;
  ellipse(picture, x, foot - 0.9 * scale, 0.16 * scale, 0.95 * scale, [82, 66, 50]);
  ellipse(picture, x, foot - 3.4 * scale, 1.25 * scale, 1.9 * scale, [52, 84, 46]);
  ellipse(picture, x - 0.3 * scale, foot - 3.8 * scale, 0.8 * scale, 1.2 * scale, [66, 100, 56]);
}

function ellipse({ data, width, height }: Picture, x: number, y: number, halfWidth: number, halfHeight: number, colour: Colour): void {
  for (let row = Math.max(0, Math.ceil(y - halfHeight)); row < Math.min(height, y + halfHeight); row += 1) {
    const half = halfWidth * Math.sqrt(Math.max(0, 1 - ((row - y) / halfHeight) ** 2));
    for (let column = Math.max(0, Math.ceil(x - half)); column < Math.min(width, x + half); column += 1) put(data, (row * width + column) * 3, colour);
  }
}

function drawBonnet(picture: Picture): void {
  ellipse(picture, WIDTH / 2, HEIGHT + 40, 330, 105, [44, 52, 66]);
  ellipse(picture, WIDTH / 2, HEIGHT + 48, 300, 98, [54, 63, 79]);
}

function put(data: Uint8Array, at: number, [r, g, b]: Colour): void {
  data[at] = r;
  data[at + 1] = g;
  data[at + 2] = b;
}
