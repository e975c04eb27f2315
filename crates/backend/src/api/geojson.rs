//! Answers as GeoJSON: the cached texts of features, joined into one body.

use std::sync::Arc;

use axum::http::Uri;
use serde::Serialize;
use viaduct_bus::clock;
use viaduct_messages::write_timestamp;
use viaduct_units::Tai;

use super::params::write_cursor;
use crate::cache::{Cursor, Entry, Page, StationSummary, TypeSet};
use crate::decoded::Decoded;

pub(super) const MEDIA_TYPE: &str = "application/geo+json";

/// Octets of one answer, give or take one feature. A page ends there, with a link to the next.
pub(super) const RESPONSE_OCTETS_MAX: usize = 16 << 20;

/// Features of which decoded messages are held at the same time while an answer is made.
const CHUNK: usize = 256;

/// What stands behind the features of a collection.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tail {
    number_returned: usize,
    time_stamp: String,
    links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Serialize)]
struct Link {
    rel: &'static str,
    href: String,
    r#type: &'static str,
}

/// A page of messages, whole; `uri` is what was asked for.
pub(super) fn page(page: &Page, decoded: &Decoded, uri: &Uri) -> Vec<u8> {
    let mut out = start(page.entries.len().saturating_mul(4096).min(RESPONSE_OCTETS_MAX));
    let mut written = 0;
    for chunk in page.entries.chunks(CHUNK) {
        for (entry, message) in chunk.iter().zip(decoded.texts(chunk)) {
            if written > 0 && out.len() >= RESPONSE_OCTETS_MAX {
                break;
            }
            write_feature(entry, &message, written, &mut out);
            written += 1;
        }
    }
    let more = page.more || written < page.entries.len();
    let last = page.entries.get(written.wrapping_sub(1)).filter(|_| more).map(|entry| entry.cursor());
    end(written, links(uri, last), last.map(write_cursor), out)
}

/// Messages without the decoded part.
pub(super) fn summaries(entries: &[Arc<Entry>], uri: &Uri) -> Vec<u8> {
    let mut out = start(entries.len().saturating_mul(640));
    for (index, entry) in entries.iter().enumerate() {
        write_feature(entry, b"", index, &mut out);
    }
    end(entries.len(), links(uri, None), None, out)
}

/// What is known of a station.
pub(super) fn station(station: &StationSummary, decoded: &Decoded) -> Vec<u8> {
    let latest: Vec<Arc<Entry>> = station.kinds.iter().map(|kind| kind.latest.clone()).collect();
    let texts = decoded.texts(&latest);
    let located = station.located(TypeSet::ALL);
    let mut out = format!("{{\"type\":\"Feature\",\"id\":{},\"geometry\":", station.station_id).into_bytes();
    out.extend_from_slice(located.map_or(b"null", |entry| entry.geometry()));
    out.extend_from_slice(b",\"properties\":");
    append(&StationProperties::of(station, located.map(Arc::as_ref)), &mut out);
    // The object goes on with the newest messages, whose texts are there.
    out.pop();
    out.extend_from_slice(b",\"latest\":{");
    for (index, (entry, text)) in latest.iter().zip(&texts).enumerate() {
        let separator = if index > 0 { "," } else { "" };
        out.extend_from_slice(format!("{separator}\"{}\":", entry.kind().topic_level()).as_bytes());
        entry.write_properties(text, &mut out);
    }
    out.extend_from_slice(b"}}}");
    out
}

/// Properties of a station but its newest messages.
#[derive(Serialize)]
struct StationProperties {
    station_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    station_type: Option<u32>,
    first_seen: String,
    last_seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading_deg: Option<f64>,
    messages: std::collections::BTreeMap<&'static str, u64>,
}

impl StationProperties {
    fn of(station: &StationSummary, located: Option<&Entry>) -> Self {
        Self {
            station_id: station.station_id,
            station_type: station.station_type,
            first_seen: timestamp(station.first_seen),
            last_seen: timestamp(station.last_seen),
            speed_mps: located.and_then(Entry::speed_mps),
            heading_deg: located.and_then(Entry::heading_deg),
            messages: station.kinds.iter().map(|kind| (kind.kind.topic_level(), kind.count)).collect(),
        }
    }
}

/// The moment in UTC as RFC 3339 has it, with microseconds.
pub(super) fn timestamp(moment: Tai) -> String {
    let mut text = String::with_capacity(27);
    write_timestamp(moment, &mut text);
    text
}

fn start(capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity + 512);
    out.extend_from_slice(b"{\"type\":\"FeatureCollection\",\"features\":[");
    out
}

fn write_feature(entry: &Entry, message: &[u8], index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
    entry.write_feature(message, out);
}

fn end(number_returned: usize, links: Vec<Link>, cursor: Option<String>, mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(b"],");
    let tail = out.len();
    append(&Tail { number_returned, time_stamp: timestamp(clock::tai()), links, cursor }, &mut out);
    // The members of the tail are members of the collection: without their opening brace.
    out.remove(tail);
    out
}

/// `self`, and `next` where something follows `last`. They are relative: the server does not know its public name.
fn links(uri: &Uri, last: Option<Cursor>) -> Vec<Link> {
    let this = uri.path_and_query().map_or("/", |path| path.as_str());
    let link = |rel, href| Link { rel, href, r#type: MEDIA_TYPE };
    let mut links = vec![link("self", this.to_owned())];
    if let Some(last) = last {
        let others = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let others: String =
            others.filter(|pair| !pair.starts_with("cursor=")).map(|pair| format!("{pair}&")).collect();
        links.push(link("next", format!("{}?{others}cursor={}", uri.path(), write_cursor(last))));
    }
    links
}

/// Appends a value that cannot fail to be written: strings, numbers and maps with string keys.
fn append(value: &impl Serialize, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}
