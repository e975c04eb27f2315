//! The HTTP API and the dashboard.
//!
//! | module | does |
//! |---|---|
//! | `params` | parses queries |
//! | `geojson`, `objects`, `kpis` | write answers |
//! | `stream` | writes live events |
//! | `links` | writes absolute links |
//! | `problem` | describes errors |
//!
//! The OpenAPI document is generated from the handlers in this file ([`openapi`]). It is committed as `openapi.json`, and a test
//! compares the two.

mod budget;
mod dashboard;
mod datetime;
mod geojson;
mod kpis;
mod links;
mod map;
mod objects;
mod params;
mod problem;
mod schema;
mod server;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::Semaphore;
use tower_http::compression::predicate::{NotForContentType, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel, Predicate};
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use viaduct_bus::clock;

pub use kpis::{
    ClockOffsetKpi, CounterKpi, FiguresKpi, HopKpi, KpiSnapshot, KpiSource, LatencyKpi, LossKpi, RecentLatency,
    StageKpi, SubscriptionKpi, TopicKpi, TotalLatency,
};
pub(crate) use server::CONNECTIONS_MAX;
pub use server::serve;

use self::budget::Budget;
use self::links::Links;
use self::params::{LatestParams, LiveParams, MessagesParams, Pairs};
use self::problem::{Problem, shown};
use crate::Backend;
use crate::cache::{Resumed, TypeSet};
use crate::decoded::Decoded;
use crate::live::Full;
use crate::settings::{ApiSettings, SettingsError};
use crate::sync::read;

/// Largest number of messages in an answer that is written on an async worker; longer ones are written on the blocking pool.
const INLINE_MAX: usize = 200;

/// Search budget on an async worker, in messages examined (about 0.1 ms). A search beyond it restarts on the blocking pool.
const INLINE_STEPS: usize = 10_000;

/// Largest number of answers and searches on the blocking pool at the same time; further ones wait.
const LONG_ANSWERS_MAX: usize = 4;

/// Smallest answer that is compressed for clients that accept it, in bytes: one packet.
const COMPRESSED_BYTES_MIN: u64 = 1400;

/// Interval of the comments that keep an otherwise silent live stream open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The state that the handlers of the API share.
pub struct Api {
    backend: Arc<Backend>,
    decoded: Decoded,
    kpis: Arc<dyn KpiSource>,
    links: Links,
    map: Bytes,
    cors: Option<CorsLayer>,
    budget: Budget,
    long_answers: Arc<Semaphore>,
}

impl Api {
    /// Creates the API over a backend with the same settings.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, or the map cannot be read.
    pub fn new(
        settings: &ApiSettings,
        backend: Arc<Backend>,
        kpis: Arc<dyn KpiSource>,
    ) -> Result<Arc<Self>, SettingsError> {
        settings.check()?;
        Ok(Arc::new(Self {
            backend,
            decoded: Decoded::new(settings.cache.decoded_octets_max),
            kpis,
            links: Links::new(settings.public_url.as_deref(), settings.listen.to_string())?,
            map: map::load(settings.map.as_ref())?,
            cors: cors(&settings.cors_origins)?,
            budget: Budget::new(budget::IN_FLIGHT_BYTES_MAX),
            long_answers: Arc::new(Semaphore::new(LONG_ANSWERS_MAX)),
        }))
    }

    /// Writes an answer of at most `features` features: on this worker if it is short, else on the blocking pool.
    async fn answer(
        self: &Arc<Self>,
        features: usize,
        make: impl FnOnce(&Self) -> Vec<u8> + Send + 'static,
    ) -> Result<Response, Problem> {
        let answer = if features <= INLINE_MAX { make(self) } else { self.run_blocking(make).await? };
        Ok(geojson_response(self.budget.hold(answer)?))
    }

    /// Runs long work on the blocking pool; at most [`LONG_ANSWERS_MAX`] at a time, others wait.
    async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed. The work keeps the permit, because it continues if the client disconnects.
        let permit = self.long_answers.clone().acquire_owned().await.ok();
        let api = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&api)
        });
        done.await.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be written"))
    }
}

/// Returns the OpenAPI document, which is committed as `openapi.json`.
///
/// # Errors
/// Never returns an error; only the signature of the serialiser is fallible.
pub fn openapi() -> Result<String, serde_json::Error> {
    let mut text = documented().into_openapi().to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

/// Returns the router of the API, its document and the dashboard.
pub fn router(api: Arc<Api>) -> Router {
    let cors = api.cors.clone();
    let (resources, _) = documented().with_state(api).split_for_parts();
    let router = resources
        .route("/openapi.json", get(document))
        .route("/", get(dashboard::index))
        .fallback(dashboard::file)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(compression());
    match cors {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Viaduct",
        description = "V2X messages that the stations of a node received and sent recently, the events and infrastructure \
            that they describe, and the latency of each processing step.\n\n\
            Times are RFC 3339 in UTC with microseconds. The name of a number ends with its unit. Unknown values are absent. \
            Links are absolute. Addresses are octets in hexadecimal, separated by hyphens. Every error is a problem details \
            object (RFC 9457). Lists of messages are sorted by reception time and sequence number, and their cursors stay \
            valid while messages arrive.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "messages", description = "V2X messages in the cache, as GeoJSON"),
        (name = "objects", description = "Events and infrastructure that messages describe, as GeoJSON"),
        (name = "node", description = "The node itself"),
    ),
)]
struct Document;

/// Returns the documented resources.
fn documented() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(messages))
        .routes(routes!(latest))
        .routes(routes!(station))
        .routes(routes!(events))
        .routes(routes!(infrastructure))
        .routes(routes!(live))
        .routes(routes!(kpis_now))
        .routes(routes!(road_map))
}

/// Messages by position, time, station and type.
///
/// Sorted by reception time, newest last. If there are more messages, the link `next` and the member `cursor` lead to the next
/// page. Each message is on exactly one page, even if messages arrive in between.
#[utoipa::path(
    get, path = "/v1/messages", tag = "messages", params(MessagesParams),
    responses(
        (status = 200, description = "The messages, decoded", body = schema::MessageCollection, content_type = "application/geo+json"),
        (status = 400, description = "A parameter is invalid", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server is busy", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn messages(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    let query = Pairs::parse(&uri, params::MESSAGES)?.query()?;
    let request = RequestUrl { headers, uri };
    if query.limit <= INLINE_MAX
        && let Some(page) = api.backend.cache().query_within(&query, INLINE_STEPS)
    {
        let write = move |api: &Api| geojson::page(&page, &api.decoded, &request.links(&api.links));
        return api.answer(query.limit, write).await;
    }
    let search =
        move |api: &Api| geojson::page(&api.backend.cache().query(&query), &api.decoded, &request.links(&api.links));
    let answer = api.run_blocking(search).await?;
    Ok(geojson_response(api.budget.hold(answer)?))
}

/// The newest message with its sender's position of each station.
#[utoipa::path(
    get, path = "/v1/latest", tag = "messages", params(LatestParams),
    responses(
        (status = 200, description = "One message per station, without the decoded message", body = schema::MessageCollection, content_type = "application/geo+json"),
        (status = 400, description = "A parameter is invalid", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server is busy", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn latest(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    let pairs = Pairs::parse(&uri, params::LATEST)?;
    let bbox = pairs.bbox()?;
    let types = pairs.types()?.unwrap_or_else(TypeSet::with_own_position);
    let request = RequestUrl { headers, uri };
    let features_max = api.backend.cache().stations();
    let write = move |api: &Api| {
        geojson::summaries(&api.backend.cache().latest(bbox.as_ref(), types), &request.links(&api.links))
    };
    api.answer(features_max, write).await
}

/// Events that DENMs describe, with their life cycle.
///
/// One feature per event (`ActionId`), at the position of the event, from its first message until 60 s after its end. Repetitions
/// count in `messages`, new versions in `updates`. At most 512 events; then the one with the oldest message is evicted.
#[utoipa::path(
    get, path = "/v1/events", tag = "objects",
    responses(
        (status = 200, description = "The events, sorted by originating station and sequence number", body = objects::EventCollection, content_type = "application/geo+json"),
        (status = 400, description = "The resource has no parameters", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server is busy", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn events(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    let href = RequestUrl { headers, uri }.links(&api.links).this;
    let features_max = read(api.backend.objects()).counts().events;
    api.answer(features_max, move |api| json(&objects::events(&read(api.backend.objects()), clock::tai(), href))).await
}

/// Lanes and stop lines (MAPEM) with the states of their signals (SPATEM), and road signs with their zones (IVIM).
///
/// Lines run along the middle of a lane; a stop line has one part per signal group. Each object is kept for 60 s after its last
/// message, a signal state for 2 s, a road sign until the end of its validity.
#[utoipa::path(
    get, path = "/v1/infrastructure", tag = "objects",
    responses(
        (status = 200, description = "The infrastructure", body = objects::InfrastructureCollection, content_type = "application/geo+json"),
        (status = 400, description = "The resource has no parameters", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server is busy", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn infrastructure(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    let href = RequestUrl { headers, uri }.links(&api.links).this;
    // An intersection has tens of lanes.
    let features_max = read(api.backend.objects()).counts().infrastructure * 32;
    let write = move |api: &Api| json(&objects::infrastructure(&read(api.backend.objects()), clock::tai(), href));
    api.answer(features_max, write).await
}

/// One station with its newest message of each type.
#[utoipa::path(
    get, path = "/v1/stations/{id}", tag = "messages",
    params(("id" = u32, Path, description = "Station id", example = 1001)),
    responses(
        (status = 200, description = "The station", body = schema::StationFeature, content_type = "application/geo+json"),
        (status = 400, description = "The id is not a number", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "The cache holds no message of the station", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server is busy", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn station(
    State(api): State<Arc<Api>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    let Path(id) = id.map_err(|_| Problem::parameter("id", "the station id is not valid UTF-8"))?;
    let id = params::station_id(&id).map_err(|detail| Problem::parameter("id", detail))?;
    let station = api.backend.cache().station(id);
    let station = station.ok_or_else(|| Problem::not_found(format!("the cache holds no message of station {id}")))?;
    api.answer(1, move |api| geojson::station(&station, &api.decoded)).await
}

/// New messages as server-sent events.
///
/// | event | data |
/// |---|---|
/// | `message` | a feature without the decoded message |
/// | `lost` | `{"count":N}`: N messages were left out, because the client was too slow or they were evicted from the cache |
/// | `restarted` | `{"run":"..."}`: the node has restarted since the client's last event; the stream continues from the start of the cache |
///
/// The `id` of an event is opaque: it contains the run of the node and the sequence number. A client that reconnects with
/// `Last-Event-ID` first receives the messages that it missed. The cache must still hold them, and the client's queue must have
/// room for them. Evicted messages count as lost even if the client's filter would not admit them.
#[utoipa::path(
    get, path = "/v1/live", tag = "messages",
    params(LiveParams, ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that the client received")),
    responses(
        (status = 200, description = "The stream", body = String, content_type = "text/event-stream"),
        (status = 400, description = "A parameter is invalid", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The maximum number of clients is reached", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn live(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    let pairs = Pairs::parse(&uri, params::LIVE)?;
    let filter = pairs.filter()?;
    let last = stream::last_event_id(&headers)?.or(pairs.last_event()?);
    let live = api.backend.live();
    // Subscribe before searching for missed messages, so that none is left out in between.
    let subscription = live
        .subscribe(filter)
        .map_err(|Full| Problem::busy("the maximum number of live clients is reached; try again"))?;
    let run = api.backend.run();
    let restarted = last.is_some_and(|last| last.run != run);
    let after = last.map(|last| if restarted { 0 } else { last.seq });
    let resumed = match after {
        Some(seq) => {
            api.run_blocking(move |api| api.backend.cache().since(seq, &filter, api.backend.live().queue_max())).await?
        }
        None => Resumed::default(),
    };
    let events = Sse::new(stream::events(run, restarted, subscription, resumed));
    Ok(events.keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Key figures: cache, rates, losses, and the latency of each hop.
#[utoipa::path(
    get, path = "/v1/kpis", operation_id = "kpis", tag = "node",
    responses(
        (status = 200, description = "The present figures", body = kpis::Kpis),
        (status = 400, description = "The resource has no parameters", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn kpis_now(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    Ok(Json(kpis::Kpis::of(&api)).into_response())
}

/// The road network.
#[utoipa::path(
    get, path = "/v1/map", operation_id = "map", tag = "node",
    responses(
        (status = 200, description = "The roads; none if no map is configured", body = schema::RoadMap, content_type = "application/geo+json"),
        (status = 400, description = "The resource has no parameters", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn road_map(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    Ok(geojson_response(api.map.clone()))
}

async fn document() -> Result<Response, Problem> {
    let text = openapi().map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` supports GET, not {}", shown(uri.path()), shown(method.as_str()));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// A request, for the links in its answer.
struct RequestUrl {
    headers: HeaderMap,
    uri: Uri,
}

impl RequestUrl {
    /// Returns the absolute links of the request.
    fn links(&self, links: &Links) -> geojson::RequestLinks {
        let this = self.uri.path_and_query().map_or("/", |path| path.as_str());
        geojson::RequestLinks {
            this: links.absolute(&self.headers, &self.uri, this),
            path: links.absolute(&self.headers, &self.uri, self.uri.path()),
            query: self.uri.query().unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the JSON of an answer, which consists of strings, numbers and lists only.
fn json(answer: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

fn geojson_response(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, geojson::MEDIA_TYPE)], body).into_response()
}

/// Returns a fast gzip layer for large answers. Live streams are excluded, because events must not wait in a compressor, and so
/// are images.
fn compression() -> CompressionLayer<impl Predicate> {
    let worth = SizeAbove::new(COMPRESSED_BYTES_MIN).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth)
}

fn cors(origins: &[String]) -> Result<Option<CorsLayer>, SettingsError> {
    if origins.is_empty() {
        return Ok(None);
    }
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().map(|origin| read_origin(origin)).collect::<Result<Vec<_>, _>>()?)
    };
    Ok(Some(CorsLayer::new().allow_origin(allowed).allow_methods([Method::GET])))
}

/// Parses an origin in the form of browsers: `scheme://host[:port]`.
fn read_origin(origin: &str) -> Result<HeaderValue, SettingsError> {
    let invalid = || SettingsError::new("cors_origins", &format_args!("`{origin}` is not like `https://host:port`"));
    let (scheme, host) = origin.split_once("://").ok_or_else(invalid)?;
    if scheme.is_empty() || host.is_empty() || host.contains('/') {
        return Err(invalid());
    }
    HeaderValue::from_str(origin).map_err(|_| invalid())
}
