// Finds a station by its id: on the map, else in the cache of the node.

import type { StationFeature } from "./api";
import { byId, setText } from "./dom";
import { ApiError, get } from "./net/client";

export interface SearchTarget {
  select(id: number): void;
  show(lon: number, lat: number): void;
  known(id: number): { lon: number; lat: number } | undefined;
}

export function startSearch(target: SearchTarget): { focus(): void; clear(): void } {
  const input = byId("search-id") as HTMLInputElement;
  const hint = byId("search-hint");
  const clear = (): void => setText(hint, "");
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    void find(input.value.trim(), target).then((text) => setText(hint, text));
  });
  input.addEventListener("input", clear);
  input.addEventListener("blur", clear);
  return { focus: () => input.select(), clear };
}

/** Shows the station. Returns a message for the reader, which is empty on success. */
async function find(text: string, target: SearchTarget): Promise<string> {
  if (!/^\d{1,10}$/.test(text)) return text === "" ? "" : "A station id is a whole number.";
  const id = Number(text);
  const known = target.known(id);
  if (known) {
    target.select(id);
    target.show(known.lon, known.lat);
    return "";
  }
  const answer = await get<StationFeature>(`/v1/stations/${id}`).catch((error: unknown) => error);
  if (answer instanceof Error) return answer instanceof ApiError && answer.status === 404 ? `The node has no message of station ${id}.` : answer.message;
  target.select(id);
  const [lon, lat] = (answer as StationFeature).geometry?.coordinates ?? [];
  if (lon !== undefined && lat !== undefined) target.show(lon, lat);
  return "";
}
