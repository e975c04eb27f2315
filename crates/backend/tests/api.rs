//! The API from a client's side: every resource, every error, and one stream over a real socket.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;
use viaduct_backend::api::{Api, CounterKpi, KpiSnapshot, KpiSource, openapi, router, serve};
use viaduct_backend::{ApiSettings, Backend};
use viaduct_bus::Bus;
use viaduct_its::facilities::Message;
use viaduct_its::facilities::denm::{self, ActionId, Cause, DenmInput, Situation};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{self, Direction, Edition, MessageType, V2xMessage};
use viaduct_node::listen::{Gate, GateLimits, Hosts};
use viaduct_units::{Mono, Now, StationId, Tai};

/// A CAM in UPER. Origin: the payload of testdata/its/cam.hex (ms-van3t, sample_trace.pcapng, frame 3).
const CAM: &str = "0202000000649dcd005a0f33c8adf995c59ffffffc223e009e00a91fc0007ebfe9ea7737fee9fffa00";

/// 2024-09-11T13:30:34.092870Z
const START_UNIX_NANOS: i64 = 1_726_061_434_092_870_000;

struct Figures;

impl KpiSource for Figures {
    fn kpis(&self) -> KpiSnapshot {
        let dropped = CounterKpi {
            component: "station".into(),
            name: "dropped".into(),
            reason: Some("duplicate".into()),
            value: 3,
            rate_hz: 1.0,
        };
        let time = Tai::from_unix_nanos(START_UNIX_NANOS);
        KpiSnapshot { node: "edge".into(), time, uptime_s: 12.5, counters: vec![dropped], ..KpiSnapshot::default() }
    }
}

fn settings(json: Value) -> ApiSettings {
    serde_json::from_value(json).unwrap()
}

fn service(json: Value) -> (Arc<Backend>, Router) {
    let settings = settings(json);
    let backend = Backend::new(&settings).unwrap();
    let api = Api::new(&settings, backend.clone(), Arc::new(Figures)).unwrap();
    (backend, router(api))
}

/// Returns a CAM received `tenths` of a second after the start.
fn cam(station: u32, tenths: i64) -> V2xMessage {
    let payload: Vec<u8> =
        (0..CAM.len() / 2).map(|at| u8::from_str_radix(&CAM[2 * at..2 * at + 2], 16).unwrap()).collect();
    V2xMessage {
        direction: Direction::Received.into(),
        r#type: MessageType::Cam.into(),
        edition: Edition::CamTs103900V231.into(),
        station_id: station,
        station_type: 5,
        receiver: "edge/station".into(),
        reception_time: Some(timestamp(Tai::from_unix_nanos(START_UNIX_NANOS + tenths * 100_000_000))),
        position: Some(its::Position { latitude_deg: 45.0, longitude_deg: 7.5, altitude_m: Some(269.5) }),
        speed_mps: Some(13.5),
        heading_deg: Some(270.5),
        payload: payload.into(),
        ..Default::default()
    }
}

async fn request(router: &Router, request: Request<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

async fn get(router: &Router, uri: &str) -> (StatusCode, HeaderMap, Value) {
    let (status, headers, body) = request(router, Request::get(uri).body(Body::empty()).unwrap()).await;
    (status, headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn good(router: &Router, uri: &str) -> Value {
    let (status, _, body) = get(router, uri).await;
    assert_eq!(status, StatusCode::OK, "{uri}: {body}");
    body
}

/// Returns the sequence numbers of a collection's features.
fn ids(collection: &Value) -> Vec<u64> {
    collection["features"].as_array().unwrap().iter().map(|feature| feature["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_message_is_a_feature_with_the_decoded_message() {
    let (backend, router) = service(json!({}));
    backend.insert(&cam(100, 0)).unwrap();
    let (status, headers, body) = get(&router, "/v1/messages").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "application/geo+json");
    assert_eq!(body["type"], "FeatureCollection");
    assert_eq!(body["numberReturned"], 1);
    assert!(body["timeStamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        body["links"],
        json!([{ "rel": "self", "href": "http://127.0.0.1:8080/v1/messages", "type": "application/geo+json" }])
    );
    assert!(body.get("cursor").is_none());
    let mut feature = body["features"][0].clone();
    let message = feature["properties"].as_object_mut().unwrap().remove("message").unwrap();
    assert_eq!(message.pointer("/header/stationId"), Some(&json!(100)));
    assert_eq!(message.pointer("/cam/generationDeltaTime"), Some(&json!(40397)));
    assert_eq!(
        feature,
        json!({
            "type": "Feature", "id": 1,
            "geometry": { "type": "Point", "coordinates": [7.5, 45.0, 269.5] },
            "properties": {
                "direction": "received", "type": "cam", "edition": "TS 103 900 V2.3.1", "station_id": 100,
                "station_type": 5, "receiver": "edge/station", "access": "unknown", "security": "unknown",
                "reception_time": "2024-09-11T13:30:34.092870Z", "speed_mps": 13.5, "heading_deg": 270.5,
            },
        })
    );
}

#[tokio::test]
async fn an_undecodable_message_is_returned_without_its_content_and_counted() {
    let (backend, router) = service(json!({}));
    backend.insert(&V2xMessage { payload: vec![0xFF; 3].into(), ..cam(1, 0) }).unwrap();
    let body = good(&router, "/v1/messages").await;
    assert!(body["features"][0]["properties"].get("message").is_none());
    assert_eq!(good(&router, "/v1/kpis").await["cache"]["undecodable"], 1);
}

#[tokio::test]
async fn messages_are_filtered_by_position_time_station_and_type() {
    let (backend, router) = service(json!({}));
    for (station, tenths) in [(1, 0), (2, 10), (1, 20), (3, 30)] {
        backend.insert(&cam(station, tenths)).unwrap();
    }
    let elsewhere = its::Position { latitude_deg: -17.0, longitude_deg: 179.5, altitude_m: None };
    backend.insert(&V2xMessage { position: Some(elsewhere), r#type: MessageType::Cpm.into(), ..cam(4, 40) }).unwrap();
    for (query, expected) in [
        ("", vec![1, 2, 3, 4, 5]),
        ("?station=1", vec![1, 3]),
        ("?type=cpm", vec![5]),
        ("?type=cpm,cam&limit=2", vec![1, 2]),
        ("?bbox=7,44,8,46", vec![1, 2, 3, 4]),
        ("?bbox=177,-20,-178,-15", vec![5]),
        ("?datetime=2024-09-11T13:30:35.092870Z", vec![2]),
        ("?datetime=2024-09-11T13:30:35Z/2024-09-11T13:30:37Z", vec![2, 3]),
        ("?datetime=2024-09-11T15:30:37%2B02:00/..", vec![4, 5]),
        ("?datetime=../2024-09-11T13:30:35Z&station=1", vec![1]),
    ] {
        let body = good(&router, &format!("/v1/messages{query}")).await;
        assert_eq!(ids(&body), expected, "{query}");
    }
}

#[tokio::test]
async fn the_links_lead_through_all_pages_while_messages_arrive() {
    let (backend, router) = service(json!({}));
    for number in 0..25_u32 {
        backend.insert(&cam(number, i64::from(number))).unwrap();
    }
    let (mut uri, mut seen) = ("/v1/messages?limit=4&bbox=7%2C44,8,46".to_owned(), Vec::new());
    loop {
        let body = good(&router, &uri).await;
        seen.extend(ids(&body));
        backend.insert(&cam(99, 0)).unwrap();
        let Some(next) = body["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next") else { break };
        assert!(next["href"].as_str().unwrap().ends_with(body["cursor"].as_str().unwrap()));
        next["href"].as_str().unwrap().clone_into(&mut uri);
    }
    // The messages that arrive in between have the time of the first message, which the first page has passed.
    assert_eq!(seen, (1..=25).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_long_answer_is_complete_and_a_huge_one_links_to_the_rest() {
    let (backend, router) = service(json!({ "cache": { "decoded_octets_max": 0 } }));
    let wordy = V2xMessage { receiver: "x".repeat(20_000), payload: Vec::new().into(), ..cam(1, 0) };
    for _ in 0..1000 {
        backend.insert(&wordy).unwrap();
    }
    let body = good(&router, "/v1/messages?limit=300").await;
    assert_eq!((body["numberReturned"].as_u64(), ids(&body).len()), (Some(300), 300));
    let body = good(&router, "/v1/messages?limit=10000").await;
    let first = ids(&body);
    assert!((500..1000).contains(&first.len()), "{}", first.len());
    let rest = good(&router, &format!("/v1/messages?limit=10000&cursor={}", body["cursor"].as_str().unwrap())).await;
    assert_eq!([first, ids(&rest)].concat(), (1..=1000).collect::<Vec<u64>>());
    assert!(rest.get("cursor").is_none());
}

#[tokio::test]
async fn a_rare_message_is_found_among_many_others() {
    let (backend, router) = service(json!({}));
    for tenths in 0..12_000 {
        backend.insert(&cam(u32::try_from(tenths % 300).unwrap(), tenths)).unwrap();
    }
    assert!(ids(&good(&router, "/v1/messages?type=denm&limit=1").await).is_empty());
    backend.insert(&V2xMessage { r#type: MessageType::Denm.into(), ..cam(1, 13_000) }).unwrap();
    assert_eq!(ids(&good(&router, "/v1/messages?type=denm&limit=1").await), [12_001]);
    assert_eq!(good(&router, "/v1/latest").await["numberReturned"], 300);
}

#[tokio::test]
async fn latest_is_one_feature_per_station_without_the_message() {
    let (backend, router) = service(json!({}));
    for (station, tenths) in [(7, 5), (7, 2), (3, 1)] {
        backend.insert(&cam(station, tenths)).unwrap();
    }
    let body = good(&router, "/v1/latest?bbox=7,44,8,46&type=cam").await;
    assert_eq!(ids(&body), [3, 1], "sorted by station");
    assert!(body["features"][0]["properties"].get("message").is_none());
    assert_eq!(body["numberReturned"], 2);
    assert!(ids(&good(&router, "/v1/latest?type=denm").await).is_empty());
}

#[tokio::test]
async fn a_station_is_at_its_own_position_and_not_at_that_of_its_event() {
    let (backend, router) = service(json!({}));
    backend.insert(&cam(1001, 0)).unwrap();
    let elsewhere = its::Position { latitude_deg: 46.0, longitude_deg: 8.0, altitude_m: None };
    let now = viaduct_bus::clock::tai();
    backend.insert(&V2xMessage { position: Some(elsewhere), ..denm(now) }).unwrap();
    let here = json!([7.5, 45.0, 269.5]);
    assert_eq!(good(&router, "/v1/latest").await["features"][0]["geometry"]["coordinates"], here);
    assert_eq!(good(&router, "/v1/stations/1001").await["geometry"]["coordinates"], here);
    let events = good(&router, "/v1/latest?type=denm").await;
    assert_eq!(events["features"][0]["geometry"]["coordinates"], json!([8.0, 46.0]));
}

#[tokio::test]
async fn a_station_is_a_feature_with_its_newest_messages() {
    let (backend, router) = service(json!({}));
    backend.insert(&cam(100, 0)).unwrap();
    backend.insert(&cam(100, 10)).unwrap();
    backend.insert(&V2xMessage { r#type: MessageType::Denm.into(), position: None, ..cam(100, 20) }).unwrap();
    let body = good(&router, "/v1/stations/100").await;
    assert_eq!((&body["type"], &body["id"]), (&json!("Feature"), &json!(100)));
    assert_eq!(body["geometry"]["coordinates"], json!([7.5, 45.0, 269.5]));
    let properties = &body["properties"];
    assert_eq!(properties["first_seen"], "2024-09-11T13:30:34.092870Z");
    assert_eq!(properties["last_seen"], "2024-09-11T13:30:36.092870Z");
    assert_eq!(properties["messages"], json!({ "cam": 2, "denm": 1 }));
    assert_eq!((&properties["station_type"], &properties["speed_mps"]), (&json!(5), &json!(13.5)));
    assert_eq!(properties["latest"]["cam"]["reception_time"], "2024-09-11T13:30:35.092870Z");
    assert_eq!(properties["latest"]["cam"]["message"]["header"]["stationId"], 100);
}

#[tokio::test]
async fn an_unknown_station_type_is_absent() {
    let (backend, router) = service(json!({}));
    backend.insert(&V2xMessage { station_type: 0, ..cam(100, 0) }).unwrap();
    assert!(good(&router, "/v1/messages").await["features"][0]["properties"].get("station_type").is_none());
    assert!(good(&router, "/v1/stations/100").await["properties"].get("station_type").is_none());
}

#[tokio::test]
async fn key_figures_join_the_cache_and_the_node() {
    let (backend, router) = service(json!({}));
    let now = |seconds| Now {
        mono: Mono(std::time::Duration::from_secs(seconds)),
        tai: Tai::from_unix_nanos(START_UNIX_NANOS),
    };
    backend.tick(now(1));
    for tenths in 0..6 {
        backend.insert(&cam(1, tenths)).unwrap();
    }
    backend.insert(&V2xMessage { reception_time: None, ..cam(1, 0) }).unwrap_err();
    backend.tick(now(3));
    let body = good(&router, "/v1/kpis").await;
    assert_eq!((&body["node"], &body["uptime_s"]), (&json!("edge"), &json!(12.5)));
    assert_eq!(body["time"], "2024-09-11T13:30:34.092870Z");
    assert_eq!(body["types"], json!([{ "type": "cam", "count": 6, "rate_hz": 3.0 }]));
    let cache = &body["cache"];
    assert_eq!((&cache["messages"], &cache["stations"], &cache["inserted"]), (&json!(6), &json!(1), &json!(6)));
    assert_eq!(cache["rejected"], json!({ "no_reception_time": 1, "too_large": 0, "too_old": 0 }));
    assert_eq!(cache["oldest"], "2024-09-11T13:30:34.092870Z");
    assert!(cache["octets"].as_u64().unwrap() < cache["octets_max"].as_u64().unwrap());
    assert_eq!(body["counters"][0]["reason"], "duplicate");
}

#[tokio::test]
async fn messages_older_than_the_retention_are_dropped_by_the_tick() {
    let (backend, _) = service(json!({ "cache": { "retention_s": 60, "bucket_s": 1 } }));
    backend.insert(&cam(1, 0)).unwrap();
    backend.insert(&cam(1, 1000)).unwrap();
    let tai = Tai::from_unix_nanos(START_UNIX_NANOS + 100_000_000_000);
    backend.tick(Now { mono: Mono::default(), tai });
    assert_eq!(backend.cache().stats().messages, 1);
    assert_eq!(backend.cache().latest(None, viaduct_backend::cache::TypeSet::ALL).len(), 1);
}

#[tokio::test]
async fn the_map_is_empty_or_the_file() {
    let (_, router) = service(json!({}));
    assert_eq!(good(&router, "/v1/map").await, json!({ "type": "FeatureCollection", "features": [] }));
    let file = tempfile::NamedTempFile::new().unwrap();
    let map = json!({ "type": "FeatureCollection", "features": [{ "type": "Feature", "properties": { "name": "A4" },
        "geometry": { "type": "LineString", "coordinates": [[7.0, 45.0], [7.1, 45.0]] } }] });
    std::fs::write(file.path(), map.to_string()).unwrap();
    let (_, router) = service(json!({ "map": "town" }));
    assert_eq!(good(&router, "/v1/map").await["features"][0]["geometry"]["type"], "LineString");
    let (_, router) = service(json!({ "map": { "file": file.path() } }));
    assert_eq!(good(&router, "/v1/map").await, map);
}

#[tokio::test]
async fn every_invalid_request_is_answered_with_a_problem_that_names_the_cause() {
    let (_, router) = service(json!({ "live": { "clients_max": 0 } }));
    for (uri, status, parameter, detail) in [
        ("/v1/messages?bbox=1,2,3", 400, "bbox", "`1,2,3` is not four numbers"),
        ("/v1/messages?bbox=1,2,3,x", 400, "bbox", "four numbers"),
        ("/v1/messages?bbox=0,2,1,1", 400, "bbox", "the southern edge 2 lies north"),
        ("/v1/messages?bbox=0,0,1,91", 400, "bbox", "latitude 91"),
        ("/v1/latest?bbox=nan,0,1,1", 400, "bbox", "longitude NaN"),
        ("/v1/messages?datetime=yesterday", 400, "datetime", "`yesterday` is not a time"),
        ("/v1/messages?datetime=2025-01-01T00:00:00Z/2024-01-01T00:00:00Z", 400, "datetime", "ends before"),
        ("/v1/messages?limit=0", 400, "limit", "`0` is not a whole number from 1 to 10000"),
        ("/v1/messages?limit=10001", 400, "limit", "10001"),
        ("/v1/messages?cursor=12", 400, "cursor", "`12` is not a cursor"),
        ("/v1/messages?station=-1", 400, "station", "`-1` is not a station id"),
        ("/v1/messages?type=cam,bus", 400, "type", "`bus` is not a message type; there are denm, cam"),
        ("/v1/messages?type=", 400, "type", "is not a message type"),
        ("/v1/messages?box=1", 400, "box", "there is no parameter `box`; there are bbox, datetime"),
        ("/v1/messages?limit=1&limit=2", 400, "limit", "`limit` occurs twice"),
        ("/v1/latest?station=1", 400, "station", "there is no parameter `station`"),
        ("/v1/kpis?x=1", 400, "x", "this resource has none"),
        ("/v1/map?x=1", 400, "x", "this resource has none"),
        ("/v1/events?x=1", 400, "x", "this resource has none"),
        ("/v1/infrastructure?x=1", 400, "x", "this resource has none"),
        ("/v1/stations/1?x=1", 400, "x", "this resource has none"),
        ("/v1/live?cursor=x", 400, "cursor", "`x` is not an event id"),
        ("/v1/live?cursor=7", 400, "cursor", "`7` is not an event id"),
        ("/v1/live?limit=1", 400, "limit", "there is no parameter"),
        ("/v1/live", 503, "", "maximum number of live clients"),
        ("/v1/stations/first", 400, "id", "`first` is not a station id"),
        ("/v1/stations/%FF", 400, "id", "not valid UTF-8"),
        ("/v1/stations/5", 404, "", "no message of station 5"),
        ("/v1/stations", 404, "", "no resource `/v1/stations`"),
        ("/v2/messages", 404, "", "no resource `/v2/messages`"),
    ] {
        let (found, headers, body) = get(&router, uri).await;
        assert_eq!(found.as_u16(), status, "{uri}: {body}");
        assert_eq!(headers["content-type"], "application/problem+json", "{uri}");
        assert_eq!((&body["type"], &body["status"]), (&json!("about:blank"), &json!(status)), "{uri}");
        assert_eq!(body["title"], found.canonical_reason().unwrap(), "{uri}");
        assert_eq!(body.get("parameter").and_then(Value::as_str).unwrap_or_default(), parameter, "{uri}");
        assert!(body["detail"].as_str().unwrap().contains(detail), "{uri}: {body}");
        assert_eq!(headers.contains_key("retry-after"), status == 503, "{uri}");
    }
}

#[tokio::test]
async fn a_problem_shortens_long_values() {
    let (_, router) = service(json!({}));
    let long = "ä9".repeat(1000);
    let escaped = "%C3%A49".repeat(1000);
    let number = "9".repeat(300);
    for uri in [
        format!("/v1/messages?station={escaped}"),
        format!("/v1/messages?bbox={escaped}"),
        format!("/v1/messages?bbox=0,0,0,{number}"),
        format!("/v1/messages?datetime={escaped}/.."),
        format!("/v1/messages?type={escaped}"),
        format!("/v1/messages?limit={escaped}"),
        format!("/v1/messages?cursor={escaped}"),
        format!("/v1/messages?{escaped}=1"),
        format!("/v1/live?cursor={escaped}"),
        format!("/v1/stations/{escaped}"),
        format!("/{escaped}"),
    ] {
        let (status, _, body) = get(&router, &uri).await;
        assert!(status.is_client_error(), "{uri}");
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains('…') && detail.chars().count() < 240, "{uri}: {detail}");
        assert!(!body.to_string().contains(&long), "{uri}");
    }
}

#[tokio::test]
async fn an_unsupported_method_is_answered_with_a_problem_and_the_supported_ones() {
    let (_, router) = service(json!({}));
    for uri in ["/v1/messages", "/v1/stations/1", "/openapi.json", "/"] {
        let post = Request::builder().method(Method::POST).uri(uri).body(Body::empty()).unwrap();
        let (status, headers, body) = request(&router, post).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{uri}");
        assert_eq!(headers["allow"], "GET,HEAD", "{uri}");
        assert!(body["detail"].as_str().unwrap().contains("not POST"), "{uri}");
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_clients_that_accept_gzip() {
    let (backend, router) = service(json!({}));
    for tenths in 0..50 {
        backend.insert(&cam(1, tenths)).unwrap();
    }
    let ask = |uri: &str| Request::get(uri).header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let (_, headers, packed) = request(&router, ask("/v1/messages")).await;
    assert_eq!(headers["content-encoding"], "gzip");
    let (_, _, plain) = request(&router, Request::get("/v1/messages").body(Body::empty()).unwrap()).await;
    assert!(packed.len() * 10 < plain.len());
    let (_, headers, _) = request(&router, ask("/v1/map")).await;
    assert!(!headers.contains_key("content-encoding"), "too small to be worth it");
}

#[tokio::test]
async fn other_origins_are_allowed_only_by_the_settings() {
    let ask = || Request::get("/v1/map").header("origin", "https://desk:5173").body(Body::empty()).unwrap();
    let allowed = "access-control-allow-origin";
    let (_, router) = service(json!({}));
    assert!(!request(&router, ask()).await.1.contains_key(allowed));
    let (_, router) = service(json!({ "cors_origins": ["https://desk:5173"] }));
    assert_eq!(request(&router, ask()).await.1[allowed], "https://desk:5173");
    let (_, router) = service(json!({ "cors_origins": ["https://other"] }));
    assert!(!request(&router, ask()).await.1.contains_key(allowed));
    let (_, router) = service(json!({ "cors_origins": ["*"] }));
    assert_eq!(request(&router, ask()).await.1[allowed], "*");
    let bad = settings(json!({ "cors_origins": ["desk"] }));
    let error = Api::new(&bad, Backend::new(&bad).unwrap(), Arc::new(Figures)).err().unwrap();
    assert_eq!(error.key, "cors_origins");
}

#[tokio::test]
async fn links_are_absolute() {
    let (backend, router) = service(json!({}));
    backend.insert(&cam(1, 0)).unwrap();
    backend.insert(&cam(1, 1)).unwrap();
    let ask = || {
        let uri = "/v1/messages?limit=1&type=cam";
        let head = Request::get(uri).header("host", "edge:8080").header("x-forwarded-proto", "https");
        head.header("x-forwarded-host", "example.org").body(Body::empty()).unwrap()
    };
    let body: Value = serde_json::from_slice(&request(&router, ask()).await.2).unwrap();
    assert_eq!(body["links"][0]["href"], "https://example.org/v1/messages?limit=1&type=cam");
    let next = body["links"][1]["href"].as_str().unwrap();
    assert!(next.starts_with("https://example.org/v1/messages?limit=1&type=cam&cursor="), "{next}");

    let (backend, router) = service(json!({ "public_url": "https://api.example.org/viaduct/" }));
    backend.insert(&cam(1, 0)).unwrap();
    for path in ["/v1/latest", "/v1/messages", "/v1/events", "/v1/infrastructure"] {
        let asked = Request::get(path).header("host", "edge:8080").body(Body::empty()).unwrap();
        let body: Value = serde_json::from_slice(&request(&router, asked).await.2).unwrap();
        assert_eq!(body["links"][0]["href"], format!("https://api.example.org/viaduct{path}"));
    }
    let bad = settings(json!({ "public_url": "example.org" }));
    let error = Api::new(&bad, Backend::new(&bad).unwrap(), Arc::new(Figures)).err().unwrap();
    assert_eq!(error.key, "public_url");
}

/// Returns a DENM in UPER: a stationary vehicle at 45 N, 7.5 E, valid for 600 s.
fn denm(reception: Tai) -> V2xMessage {
    let action_id = ActionId { originating_station: StationId(1001), sequence_number: 7 };
    let input = DenmInput {
        position: Some(viaduct_units::Position::new(45.0, 7.5)),
        situation: Some(Situation::new(3, Cause { code: 94, sub_code: 0 })),
        ..DenmInput::new(StationId(1001), action_id, reception)
    };
    let payload = Message::Denm(Box::new(denm::build(&input))).encode().unwrap();
    V2xMessage {
        r#type: MessageType::Denm.into(),
        edition: Edition::DenmTs103831V231.into(),
        station_id: 1001,
        reception_time: Some(timestamp(reception)),
        position: Some(its::Position { latitude_deg: 45.0, longitude_deg: 7.5, altitude_m: Some(269.5) }),
        payload: payload.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_event_is_a_feature_at_its_position() {
    let (backend, router) = service(json!({}));
    let now = viaduct_bus::clock::tai();
    backend.insert(&denm(now)).unwrap();
    backend.insert(&denm(now)).unwrap();
    let (status, headers, body) = get(&router, "/v1/events").await;
    assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &"application/geo+json".parse().unwrap()));
    assert_eq!((&body["type"], &body["numberReturned"]), (&json!("FeatureCollection"), &json!(1)));
    let feature = &body["features"][0];
    assert_eq!((&feature["type"], &feature["id"]), (&json!("Feature"), &json!("1001-7")));
    assert_eq!(feature["geometry"], json!({ "type": "Point", "coordinates": [7.5, 45.0, 269.5] }));
    let properties = &feature["properties"];
    assert_eq!((&properties["state"], &properties["cause_text"]), (&json!("active"), &json!("stationary vehicle")));
    assert_eq!((&properties["messages"], &properties["updates"]), (&json!(2), &json!(0)));
    assert_eq!(good(&router, "/v1/kpis").await["cache"]["events"], 1);
    assert!(good(&router, "/v1/infrastructure").await["features"].as_array().unwrap().is_empty());
}

/// OGR takes a text like `02:00:00:00:03:fc` for a time, and keeps three of its octets.
#[tokio::test]
async fn ogr_reads_addresses_as_text() {
    if std::process::Command::new("ogrinfo").arg("--version").output().is_err() {
        assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "ogrinfo is missing: install gdal-bin");
        eprintln!("skipped: no ogrinfo on this machine");
        return;
    }
    let (backend, router) = service(json!({}));
    for address in [[2, 0, 0, 0, 3, 0xFC], [0x12, 1, 5, 0, 3, 4]] {
        let geonet_address = [&[0x14, 0][..], &address[..]].concat();
        let message =
            V2xMessage { link_address: address.to_vec().into(), geonet_address: geonet_address.into(), ..cam(1, 0) };
        backend.insert(&message).unwrap();
    }
    let answer = request(&router, Request::get("/v1/messages").body(Body::empty()).unwrap()).await.2;
    let file = tempfile::Builder::new().suffix(".geojson").tempfile().unwrap();
    std::fs::write(file.path(), answer).unwrap();
    let output = std::process::Command::new("ogrinfo").arg("-al").arg(file.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for line in [
        "link_address: String (0.0)",
        "link_address (String) = 02-00-00-00-03-fc",
        "link_address (String) = 12-01-05-00-03-04",
        "geonet_address (String) = 14-00-02-00-00-00-03-fc",
        "reception_time: DateTime (0.0)",
        "station_id: Integer (0.0)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn the_start_page_exists_with_and_without_the_dashboard() {
    let (_, router) = service(json!({}));
    let (status, headers, page) = request(&router, Request::get("/").body(Body::empty()).unwrap()).await;
    assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &"text/html; charset=utf-8".parse().unwrap()));
    assert!(String::from_utf8(page).unwrap().contains("<title>"));
    let again = Request::get("/").header("if-none-match", &headers["etag"]).body(Body::empty()).unwrap();
    assert_eq!(request(&router, again).await.0, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn every_documented_resource_answers_as_documented() {
    let (backend, router) = service(json!({}));
    backend.insert(&cam(1001, 0)).unwrap();
    let document: Value = serde_json::from_str(&openapi().unwrap()).unwrap();
    assert_eq!(good(&router, "/openapi.json").await, document);
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 8);
    for (path, item) in paths {
        let uri = path.replace("{id}", "1001");
        let response = router.clone().oneshot(Request::get(&uri).body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{uri}");
        let content = item["get"]["responses"]["200"]["content"].as_object().unwrap();
        let documented = content.keys().next().unwrap();
        assert_eq!(&response.headers()["content-type"], documented, "{uri}");
    }
}

#[test]
fn the_committed_document_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let document = openapi().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == document,
        "the API has changed: run UPDATE_GOLDEN=1 cargo test -p viaduct-backend and review the difference"
    );
}

/// A client of `/v1/live` over a socket.
struct LiveClient {
    /// Id of the last event that had one: `run-seq`.
    last_id: String,
    lines: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    _writer: tokio::net::tcp::OwnedWriteHalf,
}

impl LiveClient {
    /// Connects and reads the head of the response.
    async fn connect(address: std::net::SocketAddr, query: &str, header: &str) -> Self {
        let (reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
        let head = format!("GET /v1/live{query} HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n{header}\r\n");
        writer.write_all(head.as_bytes()).await.unwrap();
        let mut client = Self { last_id: String::new(), lines: BufReader::new(reader).lines(), _writer: writer };
        assert_eq!(client.line().await, "HTTP/1.1 200 OK");
        while !client.line().await.is_empty() {}
        client
    }

    async fn line(&mut self) -> String {
        self.lines.next_line().await.unwrap().expect("the stream goes on")
    }

    /// Returns name, sequence number and data of the next event. Skips the lengths of chunks.
    async fn event(&mut self) -> (String, Option<u64>, Value) {
        let (mut name, mut id) = (String::new(), None);
        loop {
            let line = self.line().await;
            match line.split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("id", text)) => {
                    text.clone_into(&mut self.last_id);
                    id = text.split_once('-').and_then(|(_, seq)| seq.parse().ok());
                }
                Some(("data", text)) => return (name, id, serde_json::from_str(text).unwrap()),
                _ => {}
            }
        }
    }
}

/// Starts a server. Returns its backend, its address and a function that stops it.
async fn start(settings: &ApiSettings) -> (Arc<Backend>, std::net::SocketAddr, impl AsyncFnOnce()) {
    let backend = Backend::new(settings).unwrap();
    let api = Api::new(settings, backend.clone(), Arc::new(Figures)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let gate = Gate::new(&Bus::new("test"), "api", GateLimits::new(16));
    let server = tokio::spawn(serve(listener, Hosts::of(address, Vec::new()), gate, api, async {
        let _ = stopped.await;
    }));
    let stop = async move || {
        stop.send(()).unwrap();
        server.await.unwrap();
    };
    (backend, address, stop)
}

#[tokio::test]
async fn a_live_client_receives_restarted_and_all_messages_after_a_restart() {
    let settings = settings(json!({}));
    let (old, address, stop) = start(&settings).await;
    let mut client = LiveClient::connect(address, "", "").await;
    for tenths in 0..5 {
        old.insert(&cam(1, tenths)).unwrap();
    }
    for seq in 1..=5 {
        assert_eq!(client.event().await.1, Some(seq));
    }
    stop().await;

    let (new, address, stop) = start(&settings).await;
    new.insert(&cam(1, 10)).unwrap();
    let header = format!("last-event-id: {}\r\n", client.last_id);
    let mut back = LiveClient::connect(address, "", &header).await;
    let (name, seq, data) = back.event().await;
    let run = back.last_id.trim_end_matches("-0").to_owned();
    assert_eq!((name.as_str(), seq, &data), ("restarted", Some(0), &json!({ "run": run })));
    assert_eq!(back.event().await.1, Some(1), "from the start of the cache");
    let mut again = LiveClient::connect(address, &format!("?cursor={run}-0"), "").await;
    assert_eq!(again.event().await.0, "message", "received once");
    stop().await;
}

#[tokio::test]
async fn live_clients_receive_new_missed_and_lost_messages() {
    let settings = settings(json!({ "live": { "queue": 3, "clients_max": 2 } }));
    let (backend, address, stop) = start(&settings).await;
    let mut first = LiveClient::connect(address, "?station=1&type=cam&bbox=7,44,8,46", "").await;
    for (station, tenths) in [(1, 0), (2, 1), (1, 2)] {
        backend.insert(&cam(station, tenths)).unwrap();
    }
    let (name, id, feature) = first.event().await;
    assert_eq!((name.as_str(), id, &feature["id"]), ("message", Some(1), &json!(1)));
    assert!(feature["properties"].get("message").is_none());
    assert_eq!(first.event().await.1, Some(3), "others are filtered out");
    let run = first.last_id.trim_end_matches("-3").to_owned();
    drop(first);

    for tenths in 3..7 {
        backend.insert(&cam(1, tenths)).unwrap();
    }
    // The header takes precedence: 4 to 7 were missed, and the queue holds three.
    let mut resumed =
        LiveClient::connect(address, &format!("?station=1&cursor={run}-1"), &format!("last-event-id: {run}-3\r\n"))
            .await;
    assert_eq!(resumed.event().await, ("lost".to_owned(), None, json!({ "count": 1 })));
    for expected in 5..=7 {
        assert_eq!(resumed.event().await.1, Some(expected));
    }
    backend.insert(&cam(1, 8)).unwrap();
    assert_eq!(resumed.event().await.1, Some(8), "followed by new messages");

    stop().await;
    assert!(matches!(resumed.lines.next_line().await, Ok(Some(_) | None) | Err(_)), "the stream has ended");
}

/// Returns the answer to a raw request.
async fn raw(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_name_that_is_not_of_this_machine_is_refused_and_the_page_cannot_be_framed() {
    let settings = ApiSettings::default();
    let (_, address, stop) = start(&settings).await;
    let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = raw(address, &get("rebound.example")).await;
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("localhost"), "{answer}");
    let answer = raw(address, &get(&address.to_string())).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    for header in ["x-frame-options: deny", "frame-ancestors 'none'", "x-content-type-options: nosniff"] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    stop().await;
}
