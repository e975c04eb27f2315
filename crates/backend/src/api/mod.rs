//! The HTTP API and the dashboard.
//!
//! One file a subject: [`params`] reads what is asked for, `geojson` and `kpis` write the answers, `stream` the live
//! events, `problem` what goes wrong. The OpenAPI document is made from the handlers here ([`openapi`]); it is committed as
//! `openapi.json` and compared by a test.

mod budget;
mod dashboard;
mod datetime;
mod geojson;
mod kpis;
mod map;
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

pub use kpis::{CounterKpi, HopKpi, KpiSnapshot, KpiSource, RecentLatency, SubscriptionKpi, TopicKpi, TotalLatency};
pub use server::serve;

use self::budget::Budget;
use self::params::{LatestParams, LiveParams, MessagesParams, Pairs};
use self::problem::{Problem, shown};
use crate::Backend;
use crate::cache::{Cache as _, Resumed};
use crate::decoded::Decoded;
use crate::live::Full;
use crate::settings::{ApiSettings, SettingsError};

/// Messages in an answer that is made on the thread that serves others too; longer ones are made beside it.
const INLINE_MAX: usize = 200;

/// What a search on such a thread may look at, in messages: about a tenth of a millisecond. One that does not end with it starts
/// anew beside the thread.
const INLINE_STEPS: usize = 10_000;

/// Longer answers and searches that are made at the same time; further ones wait.
const LONG_ANSWERS_MAX: usize = 4;

/// Octets from which an answer is compressed for clients that accept it: one packet.
const COMPRESSED_OCTETS_MIN: u64 = 1400;

/// A live stream says at least every so often that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The API: what its handlers share.
pub struct Api {
    backend: Arc<Backend>,
    decoded: Decoded,
    kpis: Arc<dyn KpiSource>,
    map: Bytes,
    cors: Option<CorsLayer>,
    budget: Budget,
    long_answers: Arc<Semaphore>,
}

impl Api {
    /// The API over a back-end with the same settings.
    ///
    /// # Errors
    /// A setting that cannot be used: a map that cannot be read, an origin that is none.
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
            map: map::load(settings.map.as_ref())?,
            cors: cors(&settings.cors_origins)?,
            budget: Budget::new(budget::IN_FLIGHT_OCTETS_MAX),
            long_answers: Arc::new(Semaphore::new(LONG_ANSWERS_MAX)),
        }))
    }

    /// Makes an answer of up to `features` features, beside the serving threads where that takes long.
    async fn answer(
        self: &Arc<Self>,
        features: usize,
        make: impl FnOnce(&Self) -> Vec<u8> + Send + 'static,
    ) -> Result<Response, Problem> {
        let octets = if features <= INLINE_MAX { make(self) } else { self.beside(make).await? };
        Ok(geojson_response(self.budget.hold(octets)?))
    }

    /// Does what takes long beside the serving threads; a few at a time, the others wait.
    async fn beside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed. The turn goes with the work, which goes on where the client does not.
        let turn = self.long_answers.clone().acquire_owned().await.ok();
        let api = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&api)
        });
        done.await.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be made"))
    }
}

/// The document of the API: what `openapi.json` in this crate has.
///
/// # Errors
/// None that occurs; serialisation is fallible by its type.
pub fn openapi() -> Result<String, serde_json::Error> {
    let mut text = documented().into_openapi().to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

/// The whole service: API, document and dashboard.
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
        description = "What a node's stations received and sent lately, and how long each step takes.\n\n\
            Times are RFC 3339 in UTC with microseconds; a number carries its unit in its name; what is not known is \
            absent. Every error is a problem details object (RFC 9457). Lists are sorted by reception time and sequence \
            number, and their cursors stay valid while messages arrive.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "messages", description = "V2X messages in the cache, as GeoJSON"),
        (name = "node", description = "The node itself"),
    ),
)]
struct Document;

/// The documented resources.
fn documented() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(messages))
        .routes(routes!(latest))
        .routes(routes!(station))
        .routes(routes!(live))
        .routes(routes!(kpis_now))
        .routes(routes!(road_map))
}

/// Messages by place, time, station and type.
///
/// Sorted by reception time, the newest last. Where there are more, `next` and `cursor` lead on; each message is in one page
/// only, whatever arrives meanwhile.
#[utoipa::path(
    get, path = "/v1/messages", tag = "messages", params(MessagesParams),
    responses(
        (status = 200, description = "The messages, decoded", body = schema::MessageCollection, content_type = "application/geo+json"),
        (status = 400, description = "A parameter is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too much is on its way", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn messages(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, Problem> {
    let query = Pairs::parse(&uri, params::MESSAGES)?.query()?;
    let prompt = query.limit <= INLINE_MAX;
    if let Some(page) = prompt.then(|| api.backend.cache().query_within(&query, INLINE_STEPS)).flatten() {
        return api.answer(page.entries.len(), move |api| geojson::page(&page, &api.decoded, &uri)).await;
    }
    let search = move |api: &Api| geojson::page(&api.backend.cache().query(&query), &api.decoded, &uri);
    let octets = api.beside(search).await?;
    Ok(geojson_response(api.budget.hold(octets)?))
}

/// The newest message with a position of each station.
#[utoipa::path(
    get, path = "/v1/latest", tag = "messages", params(LatestParams),
    responses(
        (status = 200, description = "One message a station, not decoded", body = schema::MessageCollection, content_type = "application/geo+json"),
        (status = 400, description = "A parameter is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too much is on its way", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn latest(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, Problem> {
    let pairs = Pairs::parse(&uri, params::LATEST)?;
    let (bbox, types) = (pairs.bbox()?, pairs.types()?);
    let looked_at = api.backend.cache().stations();
    api.answer(looked_at, move |api| geojson::summaries(&api.backend.cache().latest(bbox.as_ref(), types), &uri)).await
}

/// What is known of a station, with its newest message of each type.
#[utoipa::path(
    get, path = "/v1/stations/{id}", tag = "messages",
    params(("id" = u32, Path, description = "Station ID", example = 1001)),
    responses(
        (status = 200, description = "The station", body = schema::StationFeature, content_type = "application/geo+json"),
        (status = 400, description = "The ID is not a number", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "The cache holds no message of the station", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too much is on its way", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn station(
    State(api): State<Arc<Api>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, Problem> {
    Pairs::parse(&uri, &[])?;
    let Path(id) = id.map_err(|_| Problem::parameter("id", "the station ID is no text in UTF-8"))?;
    let id = params::station_id(&id).map_err(|detail| Problem::parameter("id", detail))?;
    let station = api.backend.cache().station(id);
    let station = station.ok_or_else(|| Problem::not_found(format!("the cache holds no message of station {id}")))?;
    api.answer(1, move |api| geojson::station(&station, &api.decoded)).await
}

/// Messages as they arrive: server-sent events.
///
/// An event `message` has a feature without the decoded message as its data, and an `id`, which clients take as it is: run of
/// the node and sequence number. A client that comes back with `Last-Event-ID` first gets what it missed, as far as the cache
/// has it and its queue can hold it. Where its ID is of another run, the node has started anew: an event `restarted` with
/// `{"run":"..."}` says so, and the stream goes on from the start of the cache. An event `lost` with `{"count":N}` says that N messages were left out; those that have left the cache meanwhile are
/// counted whether the client wanted them or not.
#[utoipa::path(
    get, path = "/v1/live", tag = "messages",
    params(LiveParams, ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that the client has")),
    responses(
        (status = 200, description = "The stream", body = String, content_type = "text/event-stream"),
        (status = 400, description = "A parameter is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "There are as many clients as may be", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn live(State(api): State<Arc<Api>>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    let pairs = Pairs::parse(&uri, params::LIVE)?;
    let (filter, named) = (pairs.filter()?, pairs.last_event()?);
    let last = stream::last_event_id(&headers)?.or(named);
    let live = api.backend.live();
    // First subscribe, then look for what was missed: so nothing falls between.
    let subscription =
        live.subscribe(filter).map_err(|Full| Problem::busy("there are as many live clients as may be; try again"))?;
    let run = api.backend.run();
    let restarted = last.is_some_and(|last| last.run != run);
    let after = last.map(|last| if restarted { 0 } else { last.seq });
    let resumed = match after {
        Some(seq) => {
            api.beside(move |api| api.backend.cache().since(seq, &filter, api.backend.live().queue_max())).await?
        }
        None => Resumed::default(),
    };
    let events = Sse::new(stream::events(run, restarted, subscription, resumed));
    Ok(events.keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Key figures: the cache, rates, losses, and the latency of each hop.
#[utoipa::path(
    get, path = "/v1/kpis", operation_id = "kpis", tag = "node",
    responses(
        (status = 200, description = "The figures at this moment", body = kpis::Kpis),
        (status = 400, description = "There are no parameters", body = Problem, content_type = "application/problem+json"),
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
        (status = 200, description = "The roads; none where no map is configured", body = schema::RoadMap, content_type = "application/geo+json"),
        (status = 400, description = "There are no parameters", body = Problem, content_type = "application/problem+json"),
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
    let detail = format!("`{}` can be read with GET, not {}", shown(uri.path()), shown(method.as_str()));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

fn geojson_response(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, geojson::MEDIA_TYPE)], body).into_response()
}

/// Fast gzip of what is large, and neither of live streams, which must not wait in a compressor, nor of images.
fn compression() -> CompressionLayer<impl Predicate> {
    let worth = SizeAbove::new(COMPRESSED_OCTETS_MIN).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
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

/// `scheme://host[:port]`, as browsers write it.
fn read_origin(origin: &str) -> Result<HeaderValue, SettingsError> {
    let refused = || SettingsError::new("cors_origins", &format_args!("`{origin}` is not like `https://host:port`"));
    let (scheme, host) = origin.split_once("://").ok_or_else(refused)?;
    if scheme.is_empty() || host.is_empty() || host.contains('/') {
        return Err(refused());
    }
    HeaderValue::from_str(origin).map_err(|_| refused())
}
