//! JSON messages of applications, in both dialects.

use std::time::Duration;

use viaduct_etsi::{JsonForm, JsonStyle, SCALED};
use viaduct_its::{
    SendRequest,
    facilities::{Message, MessageKind},
};
use viaduct_units::{Mono, Now, StationId, TimestampIts};
use viaduct_v2x_json::dialect::Dialect;

use crate::{seeds, station};

/// Checks Viaduct's dialect; see [`vanetza_nap`].
pub fn viaduct(octets: &[u8]) {
    accepted(Dialect::Viaduct, octets);
}

/// Checks the dialect of vanetza-nap. An accepted text results in a message that decodes and can be written in the
/// dialect and read again. A station sends or rejects the message. The first octet selects the kind of the topic, if
/// any; the text follows.
pub fn vanetza_nap(octets: &[u8]) {
    accepted(Dialect::VanetzaNap, octets);
}

fn accepted(dialect: Dialect, octets: &[u8]) {
    let Some((hint, text)) = octets.split_first() else { return };
    let hint = MessageKind::ALL.get(usize::from(*hint)).copied();
    match dialect.read_request(hint, text) {
        Ok(request) => check(dialect.style(), &request),
        Err(error) => assert!(error.to_string().chars().count() < 1024, "{error}"),
    }
}

fn check(style: JsonStyle, request: &SendRequest) {
    let message = Message::decode(request.kind, &request.payload).expect("an accepted message decodes");
    assert_eq!(message.encode().as_deref(), Ok(&request.payload[..]));
    let mut text = Vec::new();
    message.write_json_in(style, &mut text);
    let read = Message::from_json_in(request.kind, JsonForm { style, header: None }, &text);
    assert_eq!(read.as_ref(), Ok(&message));
    send(request);
}

/// Sends a request. The station may reject it if it is too long or repeated too often.
fn send(request: &SendRequest) {
    let now = Now { mono: Mono(Duration::from_secs(1)), tai: TimestampIts(650_000_012_345).tai() };
    let mut sender = station::make_station(1, 0);
    sender.set_ego(now, station::ego(now, 0.0));
    if sender.send(now, &request.clone().from_station(StationId(7))).is_ok() {
        station::take_frames(&mut sender, now);
        station::check(&sender);
    }
}

/// Returns the seeds: the captured CAM in every form of the dialect, and a complete message of each kind.
pub(crate) fn viaduct_texts() -> Vec<Vec<u8>> {
    let around = [
        r#""destination":{"area":{"latitude_deg":45.01,"longitude_deg":7.57,"circle":{"radius_m":500}}}"#,
        r#""destination":{"any_in":{"latitude_deg":45,"longitude_deg":7,"rectangle":{"a_m":5,"b_m":4,"azimuth_deg":90}}}"#,
        r#""destination":{"hops":3},"traffic_class":2,"lifetime_s":60,"repetition":{"interval_s":0.5,"duration_s":10}"#,
        r#""destination":{"station":"94:00:02:00:00:00:03:f8"}"#,
        r#""direction":"received","station_id":5"#,
    ];
    let whole = texts(JsonStyle::Raw);
    let cam = whole.first().cloned().unwrap_or_default();
    let enveloped = around.map(|around| format!("{{\"type\":\"cam\",\"message\":{cam},{around}}}"));
    without_kind(enveloped.into_iter().chain(whole))
}

/// Returns the seeds: a complete message of each kind, and the captured CAM in the dialect.
pub(crate) fn vanetza_nap_texts() -> Vec<Vec<u8>> {
    let given = texts(SCALED).into_iter().take(1);
    let given = given.map(|cam| format!("{{\"timestamp\":1.5,\"newInfo\":true,\"stationID\":5,\"fields\":{cam}}}"));
    without_kind(given.chain(texts(SCALED)))
}

/// Prefixes each text with the octet that selects no kind.
fn without_kind(texts: impl Iterator<Item = String>) -> Vec<Vec<u8>> {
    texts.map(|text| [&[0xFF], text.as_bytes()].concat()).collect()
}

/// Returns messages of all kinds in a style, a CAM first.
fn texts(style: JsonStyle) -> Vec<String> {
    let written = |(kind, octets): (MessageKind, Vec<u8>)| {
        let mut text = Vec::new();
        Message::decode(kind, &octets).expect("the seed decodes").write_json_in(style, &mut text);
        String::from_utf8(text).expect("JSON is UTF-8")
    };
    seeds::messages().into_iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_seed() {
        for (dialect, texts) in [(Dialect::Viaduct, viaduct_texts()), (Dialect::VanetzaNap, vanetza_nap_texts())] {
            for text in texts {
                let read = dialect.read_request(None, &text[1..]);
                assert!(read.is_ok(), "{read:?}");
            }
        }
    }
}
