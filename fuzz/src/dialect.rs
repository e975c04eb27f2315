//! What applications write, in both dialects.

use std::time::Duration;

use viaduct_etsi::{JsonForm, JsonStyle};
use viaduct_its::{
    SendRequest,
    facilities::{Message, MessageKind},
};
use viaduct_units::{Mono, Now, StationId, TimestampIts};
use viaduct_v2x_json::dialect::Dialect;

use crate::{seeds, station};

/// Our own dialect: see [`vanetza_nap`].
pub fn viaduct(octets: &[u8]) {
    accepted(Dialect::Viaduct, octets);
}

/// The dialect of vanetza-nap: what is accepted is a message that decodes, is written in the dialect and read again, and that
/// a station sends or refuses. The first octet says which kind the topic has, if any; the text is behind it.
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
    let message = Message::decode(request.kind, &request.payload).expect("what is accepted decodes");
    assert_eq!(message.encode().as_deref(), Ok(&request.payload[..]));
    let mut text = Vec::new();
    message.write_json_in(style, &mut text);
    let read = Message::from_json_in(request.kind, JsonForm { style, header: None }, &text);
    assert_eq!(read.as_ref(), Ok(&message));
    send(request);
}

/// The station refuses what is too long or repeated too often, and sends the rest.
fn send(request: &SendRequest) {
    let now = Now { mono: Mono(Duration::from_secs(1)), tai: TimestampIts(650_000_012_345).tai() };
    let mut sender = station::make_station(1, 0);
    sender.set_ego(now, station::ego(now, 0.0));
    if sender.send(now, &request.clone().from_station(StationId(7))).is_ok() {
        station::take_frames(&mut sender, now);
        station::check(&sender);
    }
}

/// The captured CAM in every form that the dialect has, and a whole message of each kind.
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
    untold(enveloped.into_iter().chain(whole))
}

/// A whole message of each kind, and the captured CAM as the dialect gives it.
pub(crate) fn vanetza_nap_texts() -> Vec<Vec<u8>> {
    let given = texts(JsonStyle::Scaled).into_iter().take(1);
    let given = given.map(|cam| format!("{{\"timestamp\":1.5,\"newInfo\":true,\"stationID\":5,\"fields\":{cam}}}"));
    untold(given.chain(texts(JsonStyle::Scaled)))
}

/// With the first octet that says no kind.
fn untold(texts: impl Iterator<Item = String>) -> Vec<Vec<u8>> {
    texts.map(|text| [&[0xFF], text.as_bytes()].concat()).collect()
}

/// A CAM first.
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
    fn every_seed_is_read() {
        for (dialect, texts) in [(Dialect::Viaduct, viaduct_texts()), (Dialect::VanetzaNap, vanetza_nap_texts())] {
            for text in texts {
                let read = dialect.read_request(None, &text[1..]);
                assert!(read.is_ok(), "{read:?}");
            }
        }
    }
}
