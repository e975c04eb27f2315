//! Answers as GeoJSON: the cached texts of features, joined into one body.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_bus::clock;
use viaduct_v2x_json::timestamp_text;

use super::params::write_cursor;
use crate::cache::{Cursor, Entry, Page, StationSummary, TypeSet};
use crate::decoded::Decoded;

pub(super) const MEDIA_TYPE: &str = "application/geo+json";

/// Size of an answer at which its page ends, with a link to the next, in bytes. The last feature may exceed it.
pub(super) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// Number of features whose decoded messages are in memory at the same time.
const CHUNK: usize = 256;

/// The members of a collection after its features.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tail {
    number_returned: usize,
    time_stamp: String,
    links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// A link of an answer (RFC 8288).
#[derive(Serialize, ToSchema)]
pub(super) struct Link {
    /// `self` or `next`.
    pub(super) rel: &'static str,
    /// Absolute URL.
    pub(super) href: String,
    /// Media type of the linked resource.
    pub(super) r#type: &'static str,
}

/// The absolute URL of a request, for the links of its answer.
pub(super) struct RequestLinks {
    /// The URL with its query.
    pub(super) this: String,
    /// The URL without its query.
    pub(super) path: String,
    /// The query without the question mark.
    pub(super) query: String,
}

/// Returns a page of messages with the decoded messages.
pub(super) fn page(page: &Page, decoded: &Decoded, request: &RequestLinks) -> Vec<u8> {
    let mut out = start(page.entries.len().saturating_mul(4096).min(RESPONSE_BYTES_MAX));
    let mut written = 0;
    for chunk in page.entries.chunks(CHUNK) {
        for (entry, message) in chunk.iter().zip(decoded.texts(chunk)) {
            if written > 0 && out.len() >= RESPONSE_BYTES_MAX {
                break;
            }
            write_feature(entry, &message, written, &mut out);
            written += 1;
        }
    }
    let more = page.more || written < page.entries.len();
    let last = page.entries.get(written.wrapping_sub(1)).filter(|_| more).map(|entry| entry.cursor());
    end(written, links(request, last), last.map(write_cursor), out)
}

/// Returns messages without the decoded messages.
pub(super) fn summaries(entries: &[Arc<Entry>], request: &RequestLinks) -> Vec<u8> {
    let mut out = start(entries.len().saturating_mul(640));
    for (index, entry) in entries.iter().enumerate() {
        write_feature(entry, b"", index, &mut out);
    }
    end(entries.len(), links(request, None), None, out)
}

/// Returns a station with its newest messages.
pub(super) fn station(station: &StationSummary, decoded: &Decoded) -> Vec<u8> {
    let latest: Vec<Arc<Entry>> = station.kinds.iter().map(|kind| kind.latest.clone()).collect();
    let texts = decoded.texts(&latest);
    let located = station.located(TypeSet::with_own_position());
    let mut out = format!("{{\"type\":\"Feature\",\"id\":{},\"geometry\":", station.station_id).into_bytes();
    out.extend_from_slice(located.map_or(b"null", |entry| entry.geometry()));
    out.extend_from_slice(b",\"properties\":");
    append(&StationProperties::of(station, located.map(Arc::as_ref)), &mut out);
    // Replaces the closing brace with the newest messages.
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

/// Properties of a station without its newest messages.
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
            first_seen: timestamp_text(station.first_seen),
            last_seen: timestamp_text(station.last_seen),
            speed_mps: located.and_then(Entry::speed_mps),
            heading_deg: located.and_then(Entry::heading_deg),
            messages: station.kinds.iter().map(|kind| (kind.kind.topic_level(), kind.count)).collect(),
        }
    }
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
    append(&Tail { number_returned, time_stamp: timestamp_text(clock::tai()), links, cursor }, &mut out);
    // The members of the tail continue the collection, so the opening brace is removed.
    out.remove(tail);
    out
}

/// Returns the link `self`, and the link `next` if messages follow `last`.
fn links(request: &RequestLinks, last: Option<Cursor>) -> Vec<Link> {
    let link = |rel, href| Link { rel, href, r#type: MEDIA_TYPE };
    let mut links = vec![link("self", request.this.clone())];
    if let Some(last) = last {
        let others = request.query.split('&').filter(|pair| !pair.is_empty());
        let others: String =
            others.filter(|pair| !pair.starts_with("cursor=")).map(|pair| format!("{pair}&")).collect();
        links.push(link("next", format!("{}?{others}cursor={}", request.path, write_cursor(last))));
    }
    links
}

/// Appends a value as JSON. Cannot fail for strings, numbers and maps with string keys.
fn append(value: &impl Serialize, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}
