// Perceived objects of a decoded CPM (TS 103 324): x points east and y north from the reference position, in centimetres.

import { OBJECTS_MAX } from "../limits";
import type { PerceivedObject } from "../map/traffic";

/** Returns the objects of the first list in any container; objects of another shape are left out. */
export function perceivedObjects(message: unknown): PerceivedObject[] {
  const list = find(message, "perceivedObjects", 8);
  if (!Array.isArray(list)) return [];
  return list.slice(0, OBJECTS_MAX).flatMap((object): PerceivedObject[] => {
    const east = number(object, "position", "xCoordinate", "value");
    const north = number(object, "position", "yCoordinate", "value");
    return east === undefined || north === undefined ? [] : [{ east_m: east / 100, north_m: north / 100 }];
  });
}

function find(value: unknown, name: string, depth: number): unknown {
  if (depth === 0 || value === null || typeof value !== "object") return undefined;
  if (name in value) return (value as Record<string, unknown>)[name];
  for (const child of Object.values(value)) {
    const found = find(child, name, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function number(value: unknown, ...path: string[]): number | undefined {
  let at = value;
  for (const name of path) {
    if (at === null || typeof at !== "object") return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return typeof at === "number" ? at : undefined;
}
