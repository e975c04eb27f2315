import type { MessageCollection, MessageFeature } from "../api";
import { GONE_AFTER_MS } from "../limits";

/** Returns the features of GET /v1/latest with their age by the node's clock, oldest first, without those that are too old to show. */
export function latestAges(latest: MessageCollection): { feature: MessageFeature; age_ms: number }[] {
  const times = latest.features.map(({ properties }) => Date.parse(properties.reception_time ?? ""));
  const now = Date.parse(latest.timeStamp);
  return latest.features
    .map((feature, i) => {
      const age_ms = now - (times[i] ?? NaN);
      return { feature, age_ms: Number.isNaN(age_ms) ? 0 : Math.max(0, age_ms) };
    })
    .filter(({ age_ms }) => age_ms < GONE_AFTER_MS)
    .sort((a, b) => b.age_ms - a.age_ms);
}
