// The HTTP API by the names that the page uses. The shapes come from the OpenAPI document: `npm run types` writes api.gen.ts.

import type { FeatureCollection, LineString, MultiLineString } from "geojson";
import type { components } from "./api.gen";

type Schemas = components["schemas"];

export type MessageProperties = Schemas["MessageProperties"];
export type MessageFeature = Schemas["MessageFeature"];
export type MessageCollection = Schemas["MessageCollection"];
export type StationFeature = Schemas["StationFeature"];
export type Kpis = Schemas["Kpis"];
export type HopKpi = Schemas["HopKpi"];
export type TopicKpi = Schemas["TopicKpi"];
export type TypeKpi = Schemas["TypeKpi"];
export type CounterKpi = Schemas["CounterKpi"];
export type Problem = Schemas["Problem"];

/** The document leaves the features of GET /v1/map open. */
export type RoadMap = FeatureCollection<LineString | MultiLineString, { name?: string } | null>;

/** Data of the live stream's `lost` event. */
export interface Lost {
  count: number;
}
