// The roads of the base map, as far as the page must know where they are: without a road in view it draws a graticule.

import type { RoadMap } from "../api";
import { GRATICULE_MIN_PX } from "../limits";
import { type Mercator, toMercator } from "../state/motion";
import type { View } from "./view";

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface Road {
  points: Mercator[];
  box: Box;
}

export class Roads {
  readonly #roads: readonly Road[];
  readonly #extent: Box | undefined;
  #answered: { view: View; visible: boolean } | undefined;

  constructor(map?: RoadMap) {
    this.#roads = map ? [...roadsOf(map)] : [];
    this.#extent = this.#roads.reduce<Box | undefined>((all, { box }) => (all ? union(all, box) : box), undefined);
  }

  /** Returns `true` if a road crosses the view and the roads are large enough to be seen. */
  inView(view: View): boolean {
    const last = this.#answered;
    if (last && sameView(last.view, view)) return last.visible;
    const visible = this.#find(view);
    this.#answered = { view, visible };
    return visible;
  }

  #find(view: View): boolean {
    if (!this.#extent || extent(this.#extent) * view.scale < GRATICULE_MIN_PX) return false;
    const window = windowOf(view);
    return this.#roads.some(({ points, box }) => overlap(box, window) && points.some((to, i) => i > 0 && crosses(points[i - 1] as Mercator, to, window)));
  }
}

function* roadsOf(map: RoadMap): Generator<Road> {
  for (const { geometry } of map.features) {
    const lines = geometry.type === "LineString" ? [geometry.coordinates] : geometry.coordinates;
    for (const line of lines) {
      const points = line.map(([lon = 0, lat = 0]) => toMercator(lon, lat));
      const [first] = points;
      if (first) yield { points, box: points.reduce((all, point) => union(all, boxOf(point)), boxOf(first)) };
    }
  }
}

function windowOf({ width, height, scale, shiftX, shiftY }: View): Box {
  return { left: -shiftX / scale, right: (width - shiftX) / scale, top: -shiftY / scale, bottom: (height - shiftY) / scale };
}

function sameView(a: View, b: View): boolean {
  return a.scale === b.scale && a.shiftX === b.shiftX && a.shiftY === b.shiftY && a.width === b.width && a.height === b.height;
}

function boxOf({ x, y }: Mercator): Box {
  return { left: x, right: x, top: y, bottom: y };
}

function union(a: Box, b: Box): Box {
  return { left: Math.min(a.left, b.left), right: Math.max(a.right, b.right), top: Math.min(a.top, b.top), bottom: Math.max(a.bottom, b.bottom) };
}

/** Returns the longer side of a box. */
function extent({ left, right, top, bottom }: Box): number {
  return Math.max(right - left, bottom - top);
}

function overlap(a: Box, b: Box): boolean {
  return a.left <= b.right && a.right >= b.left && a.top <= b.bottom && a.bottom >= b.top;
}

/** Returns `true` if a part of the segment is in the box (Liang and Barsky). */
function crosses(from: Mercator, to: Mercator, box: Box): boolean {
  let [enters, leaves] = [0, 1];
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  for (const [step, room] of [
    [-dx, from.x - box.left],
    [dx, box.right - from.x],
    [-dy, from.y - box.top],
    [dy, box.bottom - from.y],
  ] as const) {
    if (step === 0 && room < 0) return false;
    if (step < 0) enters = Math.max(enters, room / step);
    if (step > 0) leaves = Math.min(leaves, room / step);
  }
  return enters <= leaves;
}
