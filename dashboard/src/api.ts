// The HTTP API as the page uses it. The names are those of the OpenAPI document; `npm run types` generates api.gen.ts from it.

import type { Feature, FeatureCollection, Geometry, LineString, Point } from "geojson";

export interface MessageProperties {
  direction: "received" | "sent";
  type: string;
  edition: string;
  station_id: number;
  station_type: string | number;
  receiver: string;
  access: string;
  security: string;
  link_address?: string;
  geonet_address?: string;
  reception_time?: string;
  generation_time?: string;
  speed_mps?: number;
  heading_deg?: number;
  /** Decoded ETSI message: ASN.1 names, raw integers. Only where a whole message is asked for. */
  message?: unknown;
}

export type MessageFeature = Feature<Point | null, MessageProperties>;

export type MessageCollection = FeatureCollection<Point | null, MessageProperties> & {
  numberReturned?: number;
  timeStamp?: string;
};

export interface StationProperties {
  station_id: number;
  station_type: string | number;
  first_seen: string;
  last_seen: string;
  speed_mps?: number;
  heading_deg?: number;
  /** Count of messages by type. */
  messages: Record<string, number>;
  /** Newest message of each type. */
  latest: Record<string, MessageProperties>;
}

export type StationFeature = Feature<Point | null, StationProperties>;

export interface Lost {
  count: number;
}

export interface CacheKpis {
  messages: number;
  octets: number;
  octets_max: number;
  stations: number;
  oldest?: string;
  newest?: string;
  inserted: number;
  evicted: number;
  rejected: Record<string, number>;
}

export interface TypeKpis {
  type: string;
  count: number;
  rate_hz: number;
}

export interface SubscriptionKpis {
  subscriber: string;
  delivered: number;
  queued: number;
  dropped: Record<string, number>;
}

export interface TopicKpis {
  topic: string;
  type: string;
  published: number;
  rate_hz: number;
  dropped: number;
  subscriptions: SubscriptionKpis[];
}

export interface HopKpis {
  hop: string;
  from: string;
  to: string;
  count: number;
  rate_hz: number;
  /** The last whole second. */
  recent: { count: number; p50_us: number; p99_us: number; max_us: number };
  total: { count: number; p50_us: number; p99_us: number; p999_us: number; max_us: number; mean_us: number };
}

export interface CounterKpis {
  component: string;
  name: string;
  reason?: string;
  value: number;
  rate_hz: number;
}

export interface Kpis {
  node: string;
  time: string;
  uptime_s: number;
  cache: CacheKpis;
  types: TypeKpis[];
  topics: TopicKpis[];
  hops: HopKpis[];
  counters: CounterKpis[];
}

export type RoadMap = FeatureCollection<Geometry | LineString, { name?: string } | null>;

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  parameter?: string;
}
