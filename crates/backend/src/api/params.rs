//! Query strings, parsed once into valid values.

use axum::extract::Query;
use axum::http::Uri;
use utoipa::IntoParams;
use viaduct_messages::viaduct::its::MessageType;
use viaduct_units::{BoundingBox, Tai};

use super::datetime;
use super::problem::{Problem, shown};
use crate::cache::{self, Cursor, Filter, TypeSet};
use crate::run::EventId;

/// Number of messages in an answer if the request has no `limit`.
const LIMIT_DEFAULT: usize = 100;
/// Largest number of messages in an answer.
pub(super) const LIMIT_MAX: usize = 10_000;

/// Query parameters of `/v1/messages`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; `Pairs` reads them")]
pub(super) struct MessagesParams {
    /// Only messages with a position in this box: west,south,east,north in degrees. If west is larger than east, the box crosses
    /// the antimeridian.
    #[param(example = "7.0,45.0,7.1,45.1")]
    bbox: Option<String>,
    /// Only messages received at this time or in this interval, by RFC 3339: `a`, `a/b`, `../b` or `a/..`, ends included.
    #[param(example = "2026-01-31T12:00:00Z/..")]
    datetime: Option<String>,
    /// Only messages of this station.
    #[param(example = 1001)]
    station: Option<u32>,
    /// Only messages of these types, separated by commas.
    #[param(example = "cam,cpm")]
    r#type: Option<String>,
    /// Largest number of messages in the answer. An answer that reaches 16 MiB has fewer, and a link to the next page.
    #[param(minimum = 1, maximum = 10_000, default = 100)]
    limit: Option<u32>,
    /// Only messages after this place: the `cursor` of an earlier answer. A cursor from before a restart of the node continues
    /// after the reception time of that answer's last message.
    cursor: Option<String>,
}

/// Query parameters of `/v1/latest`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; `Pairs` reads them")]
pub(super) struct LatestParams {
    /// Only stations whose newest position lies in this box: west,south,east,north in degrees.
    #[param(example = "7.0,45.0,7.1,45.1")]
    bbox: Option<String>,
    /// Only consider messages of these types, separated by commas. Default: the types whose position is that of their sender.
    #[param(example = "cam,cpm", default = "cam,vam,cpm,srem")]
    r#type: Option<String>,
}

/// Query parameters of `/v1/live`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; `Pairs` reads them")]
pub(super) struct LiveParams {
    /// Only messages with a position in this box: west,south,east,north in degrees.
    #[param(example = "7.0,45.0,7.1,45.1")]
    bbox: Option<String>,
    /// Only messages of this station.
    #[param(example = 1001)]
    station: Option<u32>,
    /// Only messages of these types, separated by commas.
    #[param(example = "cam,cpm")]
    r#type: Option<String>,
    /// The `id` of the last event that the client received: the stream continues after it, if the cache still holds the
    /// messages. For clients that cannot send `Last-Event-ID`, which takes precedence.
    cursor: Option<String>,
}

pub(super) const MESSAGES: &[&str] = &["bbox", "datetime", "station", "type", "limit", "cursor"];
pub(super) const LATEST: &[&str] = &["bbox", "type"];
pub(super) const LIVE: &[&str] = &["bbox", "station", "type", "cursor"];

/// The parameters of a query string: names are known and unique.
#[derive(Debug)]
pub(super) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Splits the query of `uri`.
    ///
    /// # Errors
    /// Returns an error if a name is not in `known`, or occurs twice.
    pub(super) fn parse(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Problem::new(axum::http::StatusCode::BAD_REQUEST, shown(&error.body_text())))?;
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(Problem::parameter(name, unknown(name, known)));
            }
            if pairs.iter().take(index).any(|(earlier, _)| earlier == name) {
                return Err(Problem::parameter(name, format!("`{}` occurs twice", shown(name))));
            }
        }
        Ok(Self(pairs))
    }

    /// Returns the query of `/v1/messages`.
    pub(super) fn query(&self) -> Result<cache::Query, Problem> {
        let (from, to) = self.interval()?;
        Ok(cache::Query { filter: self.filter()?, from, to, after: self.cursor()?, limit: self.limit()? })
    }

    /// Returns the conditions on position, station and types.
    pub(super) fn filter(&self) -> Result<Filter, Problem> {
        Ok(Filter { bbox: self.bbox()?, station: self.station()?, types: self.types()?.unwrap_or(TypeSet::ALL) })
    }

    /// Returns the box, or `None` if the query has none.
    pub(super) fn bbox(&self) -> Result<Option<BoundingBox>, Problem> {
        self.read("bbox", |text| {
            let edges = text.split(',').map(|edge| edge.trim().parse().ok()).collect::<Option<Vec<f64>>>();
            let Some(&[west, south, east, north]) = edges.as_deref() else {
                return Err(format!("`{}` is not four numbers: west,south,east,north in degrees", shown(text)));
            };
            BoundingBox::new(west, south, east, north).map_err(|error| shown(&error.to_string()).into_owned())
        })
    }

    /// Returns the message types, or `None` if the query names none.
    pub(super) fn types(&self) -> Result<Option<TypeSet>, Problem> {
        self.read("type", |text| text.split(',').try_fold(TypeSet::NONE, with_type))
    }

    /// Returns the last event that a live client received.
    pub(super) fn last_event(&self) -> Result<Option<EventId>, Problem> {
        self.read("cursor", |text| {
            text.parse().map_err(|_| format!("`{}` is not an event id of this API", shown(text)))
        })
    }

    fn interval(&self) -> Result<(Option<Tai>, Option<Tai>), Problem> {
        Ok(self.read("datetime", datetime::interval)?.unwrap_or_default())
    }

    fn station(&self) -> Result<Option<u32>, Problem> {
        self.read("station", station_id)
    }

    fn limit(&self) -> Result<usize, Problem> {
        let limit = self.read("limit", |text| match text.parse() {
            Ok(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
            _ => Err(format!("`{}` is not a whole number from 1 to {LIMIT_MAX}", shown(text))),
        })?;
        Ok(limit.unwrap_or(LIMIT_DEFAULT))
    }

    fn cursor(&self) -> Result<Option<Cursor>, Problem> {
        self.read("cursor", |text| {
            read_cursor(text).ok_or_else(|| format!("`{}` is not a cursor of this API", shown(text)))
        })
    }

    fn read<T>(&self, name: &'static str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Problem> {
        let Some((_, text)) = self.0.iter().find(|(known, _)| known == name) else { return Ok(None) };
        parse(text).map(Some).map_err(|detail| Problem::parameter(name, detail))
    }
}

/// Parses a station id.
pub(super) fn station_id(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{}` is not a station id, a whole number from 0 to 4294967295", shown(text)))
}

/// Returns the text of a cursor: time and sequence number in hexadecimal, opaque to clients.
pub(super) fn write_cursor(cursor: Cursor) -> String {
    format!("{:016x}{:016x}", cursor.reception.nanos().cast_unsigned(), cursor.seq)
}

fn read_cursor(text: &str) -> Option<Cursor> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (time, seq) = text.split_at_checked(16)?;
    let nanos = u64::from_str_radix(time, 16).ok()?.cast_signed();
    Some(Cursor { reception: Tai::from_nanos(nanos), seq: u64::from_str_radix(seq, 16).ok()? })
}

fn with_type(types: TypeSet, name: &str) -> Result<TypeSet, String> {
    let Some(kind) = MessageType::from_topic_level(name) else {
        let known = MessageType::ALL.map(MessageType::topic_level).join(", ");
        return Err(format!("`{}` is not a message type; there are {known}", shown(name)));
    };
    Ok(types.with(kind))
}

fn unknown(name: &str, known: &[&str]) -> String {
    let name = shown(name);
    if known.is_empty() {
        return format!("there is no parameter `{name}`; this resource has none");
    }
    format!("there is no parameter `{name}`; there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use utoipa::openapi::path::ParameterIn;

    fn names<P: IntoParams>() -> Vec<String> {
        P::into_params(|| Some(ParameterIn::Query)).into_iter().map(|parameter| parameter.name).collect()
    }

    #[test]
    fn the_documented_parameters_are_the_parsed_ones() {
        assert_eq!(names::<MessagesParams>(), MESSAGES);
        assert_eq!(names::<LatestParams>(), LATEST);
        assert_eq!(names::<LiveParams>(), LIVE);
    }

    #[test]
    fn a_cursor_round_trips() {
        for nanos in [0, -1, i64::MIN, 1_726_061_434_092_870_999] {
            let cursor = Cursor { reception: Tai::from_nanos(nanos), seq: u64::MAX - 3 };
            assert_eq!(read_cursor(&write_cursor(cursor)), Some(cursor));
        }
        for bad in ["", "12", &"g".repeat(32), &"ä".repeat(16), &"+".repeat(32)] {
            assert_eq!(read_cursor(bad), None, "{bad}");
        }
    }
}
