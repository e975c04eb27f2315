//! The JSON form of a V2X message: one shape on MQTT, in the HTTP API and on the command line.
//!
//! ```json
//! {"direction":"received","type":"cam","edition":"TS 103 900 V2.3.1","station_id":100,"station_type":5,
//!  "link_address":"48:a9:8a:90:82:7f","geonet_address":"...","receiver":"edge/station","access":"udp_multicast",
//!  "security":"unsecured","reception_time":"2024-09-11T13:30:34.092870Z","generation_time":"...",
//!  "position":{"latitude_deg":45.0,"longitude_deg":7.5,"altitude_m":269.8},"speed_mps":0,"heading_deg":270.5,
//!  "message":{"header":{},"cam":{}}}
//! ```
//!
//! Unknown values are absent. `message` is the decoded message with ASN.1 names and raw ETSI integers; it is present
//! if the caller has decoded the message.

use serde::Serialize;
use serde_json::value::RawValue;
use viaduct_units::Tai;

use crate::viaduct::its::{MessageType, V2xError, V2xMessage};

/// The members in their order.
#[derive(Serialize)]
struct Envelope<'a> {
    direction: &'static str,
    r#type: &'static str,
    edition: &'static str,
    station_id: u32,
    #[serde(skip_serializing_if = "is_unknown")]
    station_type: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    geonet_address: Option<String>,
    receiver: &'a str,
    access: &'static str,
    security: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reception_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading_deg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
}

/// Station type 0 is "unknown" (TS 102 894-2).
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_unknown(station_type: &u32) -> bool {
    *station_type == 0
}

#[derive(Serialize)]
struct Place {
    latitude_deg: f64,
    longitude_deg: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    altitude_m: Option<f64>,
}

impl V2xMessage {
    /// Appends the JSON form to `out`, with the decoded message if the caller has it.
    ///
    /// # Errors
    /// No message causes an error; only the signature of the serializer is fallible.
    pub fn write_json(&self, message: Option<&RawValue>, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let envelope = Envelope {
            direction: self.direction().label(),
            r#type: self.r#type().topic_level(),
            edition: self.edition().label(),
            station_id: self.station_id,
            station_type: self.station_type,
            link_address: address(&self.link_address),
            geonet_address: address(&self.geonet_address),
            receiver: &self.receiver,
            access: self.access().label(),
            security: self.security().label(),
            signer_digest: digest(&self.signer_digest),
            reception_time: self.reception().map(rfc3339),
            generation_time: self.generation().map(rfc3339),
            position: self.position.as_ref().map(|at| Place {
                latitude_deg: at.latitude_deg,
                longitude_deg: at.longitude_deg,
                altitude_m: at.altitude_m,
            }),
            speed_mps: self.speed_mps,
            heading_deg: self.heading_deg,
            message,
        };
        serde_json::to_writer(out, &envelope)
    }
}

/// The members of an error in their order.
#[derive(Serialize)]
struct ErrorText<'a> {
    subject: &'static str,
    reason: &'a str,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    station: &'a str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    octets: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    station_id: Option<u32>,
}

impl V2xError {
    /// Appends the JSON form to `out`. `topic` is the topic on which the request was received.
    ///
    /// # Errors
    /// No message causes an error; only the signature of the serializer is fallible.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let kind = self.r#type();
        let topic = self.reply_to.as_ref().map(|reply| &*reply.request_topic);
        let text = ErrorText {
            subject: self.subject().label(),
            reason: &self.reason,
            error: &self.error,
            time: self.time.as_ref().map(|time| rfc3339(crate::its::tai_of(time))),
            station: &self.station,
            count: self.count,
            r#type: (kind != MessageType::Unknown).then(|| kind.topic_level()),
            octets: self.octets,
            link_address: address(&self.link_address),
            topic: topic.filter(|topic| !topic.is_empty()),
            event: &self.event,
            station_id: (self.station_id != 0).then_some(self.station_id),
        };
        serde_json::to_writer(out, &text)
    }
}

/// Returns octets in the form `48:a9:8a:90:82:7f`, or `None` if there are none.
fn address(octets: &[u8]) -> Option<String> {
    if octets.is_empty() {
        return None;
    }
    let pairs: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    Some(pairs.join(":"))
}

/// Returns a digest as 16 hexadecimal digits, or `None` if there is none.
fn digest(octets: &[u8]) -> Option<String> {
    if octets.is_empty() {
        return None;
    }
    Some(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

fn rfc3339(moment: Tai) -> String {
    let mut text = String::with_capacity(27);
    write_timestamp(moment, &mut text);
    text
}

/// Appends the time in UTC in the format of RFC 3339, with microseconds: `2024-09-11T13:30:34.092870Z`.
pub fn write_timestamp(moment: Tai, out: &mut String) {
    use std::fmt::Write as _;
    let nanos = moment.unix_nanos();
    let (days, of_day) = (nanos.div_euclid(86_400_000_000_000), nanos.rem_euclid(86_400_000_000_000));
    let (year, month, day) = civil_from_days(days);
    let (seconds, micros) = (of_day / 1_000_000_000, of_day / 1_000 % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Writing into a String cannot fail.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
}

/// Returns year, month and day for a number of days since 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years are counted from 1 March, so that the leap day is the last of its year, in eras of 400 years (146 097 days).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viaduct::its::{Direction, Position, ReplyTo, SecurityState, v2x_error::Subject};

    #[test]
    fn timestamps_are_written_in_utc() {
        for (nanos, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_726_061_434_092_870_999, "2024-09-11T13:30:34.092870Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999Z"),
        ] {
            assert_eq!(rfc3339(Tai::from_unix_nanos(nanos)), expected);
        }
    }

    #[test]
    fn unknown_values_are_absent() {
        let message = V2xMessage {
            direction: Direction::Received.into(),
            r#type: MessageType::Cam.into(),
            station_id: 100,
            position: Some(Position { latitude_deg: 45.5, longitude_deg: 7.25, altitude_m: None }),
            ..Default::default()
        };
        let mut out = Vec::new();
        message.write_json(None, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"direction\":\"received\",\"type\":\"cam\",\"edition\":\"unknown\",\"station_id\":100,\
             \"receiver\":\"\",\"access\":\"unknown\",\"security\":\"unknown\",\
             \"position\":{\"latitude_deg\":45.5,\"longitude_deg\":7.25}}"
        );
    }

    #[test]
    fn a_signed_message_has_the_digest_of_its_signer() {
        let message = V2xMessage {
            security: SecurityState::Unverified.into(),
            signer_digest: vec![0x0D, 0x3A, 0x1D, 0x0D, 0xDF, 0x3F, 0x5B, 0x7D].into(),
            ..Default::default()
        };
        let mut out = Vec::new();
        message.write_json(None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""security":"unverified","signer_digest":"0d3a1d0ddf3f5b7d""#), "{text}");
    }

    #[test]
    fn an_error_has_its_subject_and_reason() {
        let error = V2xError {
            subject: Subject::Request.into(),
            reason: "no_position".into(),
            error: "the station has no position yet".into(),
            station: "edge/station".into(),
            count: 1,
            r#type: MessageType::Denm.into(),
            octets: 90,
            reply_to: Some(ReplyTo { request_topic: "v/in/denm".into(), ..Default::default() }),
            event: "jam".into(),
            ..Default::default()
        };
        let mut out = Vec::new();
        error.write_json(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"subject\":\"request\",\"reason\":\"no_position\",\"error\":\"the station has no position yet\",\
             \"station\":\"edge/station\",\"count\":1,\"type\":\"denm\",\"octets\":90,\"topic\":\"v/in/denm\",\
             \"event\":\"jam\"}"
        );
    }
}
