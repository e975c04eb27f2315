// Types of the HTTP API under the names that the page uses. `npm run types` generates api.gen.ts from the OpenAPI document.

import type { FeatureCollection, LineString, MultiLineString } from "geojson";
import type { components } from "./api.gen";

type Schemas = components["schemas"];

export type MessageProperties = Schemas["MessageProperties"];
export type MessageFeature = Schemas["MessageFeature"];
export type MessageCollection = Schemas["MessageCollection"];
export type StationFeature = Schemas["StationFeature"];
export type Kpis = Schemas["Kpis"];
export type HopKpi = Schemas["HopKpi"];
export type FiguresKpi = Schemas["FiguresKpi"];
export type StageKpi = Schemas["StageKpi"];
export type LatencyKpi = Schemas["LatencyKpi"];
export type TopicKpi = Schemas["TopicKpi"];
export type TypeKpi = Schemas["TypeKpi"];
export type CounterKpi = Schemas["CounterKpi"];
export type Problem = Schemas["Problem"];
export type EventCollection = Schemas["EventCollection"];
export type EventFeature = Schemas["EventFeature"];
export type EventProperties = Schemas["EventProperties"];
export type EventState = Schemas["EventState"];
export type Geometry = Schemas["Geometry"];
export type InfrastructureCollection = Schemas["InfrastructureCollection"];
export type InfrastructureFeature = Schemas["InfrastructureFeature"];
export type InfrastructureKind = Schemas["InfrastructureKind"];
export type SignalState = Schemas["SignalState"];

/** Features of GET /v1/map, which the document does not specify. */
export type RoadMap = FeatureCollection<LineString | MultiLineString, { name?: string } | null>;

/** Data of the live stream's `lost` event. */
export interface Lost {
  count: number;
}
