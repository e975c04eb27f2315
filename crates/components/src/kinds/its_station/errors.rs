//! Error reports of a station on the bus: rejected requests and inputs, samples of dropped frames, and losses.

use std::collections::BTreeMap;

use bytes::Bytes;
use viaduct_bus::{Meta, Publisher, Qos};
use viaduct_its::facilities::ldm::ClockReport;
use viaduct_its::{DropReason, SendError, explain_drop};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::v2x_error::Subject;
use viaduct_messages::viaduct::its::{AccessLayer, MessageType, V2xError, V2xSendRequest};
use viaduct_node::{Context, StartError};
use viaduct_units::Now;

use super::ItsStation;
use super::counters::Loss;
use super::services::{Input, InputError};
use crate::v2x::request::RequestError;
use viaduct_units::RateLimiter;

/// Quality of service of the topic: best effort, a slow reader receives the newest reports.
pub(super) const OFFERED: Qos = Qos::keep_last(256);
/// Maximum number of reports of dropped frames per second and reason. The next report includes the number of those that
/// were suppressed.
const FRAMES_PER_SECOND_MAX: u32 = 2;
/// Maximum number of reports of rejected requests and inputs per second, message type and reason.
const REQUESTS_PER_SECOND_MAX: u32 = 50;
/// Maximum number of reports of stations with a wrong clock per second. Each station is reported once, but station IDs
/// can be forged.
const CLOCKS_PER_SECOND_MAX: u32 = 50;
/// Maximum number of characters of an event's name in a report.
const EVENT_CHARACTERS_MAX: usize = 64;

/// Reason why a request was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Request(#[from] RequestError),
    #[error("{0}")]
    Message(#[from] viaduct_etsi::UperError),
    #[error("{0}")]
    Station(#[from] SendError),
}

impl Refusal {
    /// Returns the reason as it appears in counters.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Request(_) => "request_invalid",
            Self::Message(_) => "message_invalid",
            Self::Station(error) => send_error_label(error),
        }
    }
}

const fn send_error_label(error: &SendError) -> &'static str {
    match error {
        SendError::NoPosition => "no_position",
        SendError::WrongMessage { .. } => "wrong_message",
        SendError::TooLong { .. } => "too_long",
        SendError::Lifetime { .. } => "lifetime",
        SendError::NoHops => "no_hops",
        SendError::Area => "area",
        SendError::AreaTooLarge { .. } => "area_too_large",
        SendError::RepetitionInterval { .. } => "repetition_interval",
        SendError::RepetitionDuration { .. } => "repetition_duration",
        SendError::RepetitionsFull => "repetitions_full",
        SendError::NotSent(reason) => reason.label(),
        SendError::QueueFull => "queue_full",
    }
}

/// A publisher of error reports with rate limits.
pub(super) struct Errors {
    publisher: Publisher<V2xError>,
    /// `node/component`.
    station: String,
    access: AccessLayer,
    frames: BTreeMap<DropReason, RateLimiter>,
    /// One limiter per message type and reason, so that one invalid input does not suppress reports about another. The number
    /// of keys is bounded by the labels of [`Refusal`] and [`InputError`].
    requests: BTreeMap<(MessageType, &'static str), RateLimiter>,
    clocks: RateLimiter,
}

impl Errors {
    pub(super) fn new(topic: &str, access: AccessLayer, context: &Context<ItsStation>) -> Result<Self, StartError> {
        Ok(Self {
            publisher: context.publisher(topic, OFFERED)?,
            station: format!("{}/{}", context.node(), context.name()),
            access,
            frames: BTreeMap::new(),
            requests: BTreeMap::new(),
            clocks: RateLimiter::new(CLOCKS_PER_SECOND_MAX),
        })
    }

    /// Reports a dropped frame. Echoes and repetitions on UDP multicast are no errors and are not reported.
    pub(super) fn dropped(&mut self, now: Now, reason: DropReason, frame: &Bytes, cause: &Meta) {
        if is_normal(self.access, reason) {
            return;
        }
        let limiter = self.frames.entry(reason).or_insert_with(|| RateLimiter::new(FRAMES_PER_SECOND_MAX));
        let Some(count) = limiter.admit(now.mono) else {
            return;
        };
        // The source is the second address of an Ethernet header.
        let link_address = frame.get(6..12).map(Bytes::copy_from_slice).unwrap_or_default();
        self.publish(
            cause,
            V2xError {
                subject: Subject::Frame.into(),
                reason: reason.label().to_owned(),
                error: format!("a received frame was dropped: {}", explain_drop(reason, frame)),
                time: Some(timestamp(now.tai)),
                count,
                octets: frame.len().try_into().unwrap_or(u32::MAX),
                link_address,
                ..V2xError::default()
            },
        );
    }

    /// Reports a loss. Its rate is limited by the interval at which the counters are synchronised.
    pub(super) fn lost(&self, now: Now, loss: &Loss) {
        let why = loss.explanation.map_or_else(|| loss.reason.replace('_', " "), str::to_owned);
        let error = V2xError {
            subject: Subject::Loss.into(),
            reason: loss.reason.to_owned(),
            error: format!("{}: {why}", loss.description),
            time: Some(timestamp(now.tai)),
            count: loss.count,
            ..V2xError::default()
        };
        self.publish(&Meta::from_origin(now.tai), error);
    }

    /// Reports a station whose clock is wrong, on the topic and in the log.
    pub(super) fn clock_offset(&mut self, now: Now, report: &ClockReport, cause: &Meta) {
        let Some(count) = self.clocks.admit(now.mono) else {
            return;
        };
        let ClockReport { offset, corrected, .. } = *report;
        let station_id = u32::from(report.station_id);
        let late_s = offset.late_s;
        tracing::warn!(component = %self.station, station_id, late_s, corrected, "the clock of a station is wrong");
        let direction = if late_s > 0 { "late" } else { "early" };
        let effect = if corrected {
            "the local dynamic map corrects its times"
        } else {
            "the local dynamic map takes its times as sent, see `services.ldm.clock_tolerance`"
        };
        let error = V2xError {
            subject: Subject::Clock.into(),
            reason: "clock_offset".to_owned(),
            error: format!("the clock of station {station_id} is {} s {direction}; {effect}", late_s.unsigned_abs()),
            time: Some(timestamp(now.tai)),
            count,
            station_id,
            ..V2xError::default()
        };
        self.publish(cause, error);
    }

    /// Reports a rejected send request.
    pub(super) fn refused(&mut self, now: Now, refusal: &Refusal, request: &V2xSendRequest, cause: &Meta) {
        let error = V2xError {
            reason: refusal.label().to_owned(),
            error: refusal.to_string(),
            r#type: request.r#type,
            octets: request.payload.len().try_into().unwrap_or(u32::MAX),
            reply_to: request.reply_to.clone(),
            ..V2xError::default()
        };
        self.request_refused(now, refusal.label(), error, cause);
    }

    /// Reports a rejected input of the services.
    pub(super) fn input_refused(&mut self, now: Now, refusal: &InputError, input: &Input) {
        let (kind, event, reply_to) = match input {
            Input::Vehicle(state) => (MessageType::Unknown, "", &state.reply_to),
            Input::Objects(objects) => (MessageType::Cpm, "", &objects.reply_to),
            Input::Event(request) => (MessageType::Denm, &*request.name, &request.reply_to),
        };
        let error = V2xError {
            reason: refusal.label().to_owned(),
            error: refusal.to_string(),
            r#type: kind.into(),
            event: event.chars().take(EVENT_CHARACTERS_MAX).collect(),
            reply_to: reply_to.clone(),
            ..V2xError::default()
        };
        self.request_refused(now, refusal.label(), error, &input.meta());
    }

    fn request_refused(&mut self, now: Now, label: &'static str, error: V2xError, cause: &Meta) {
        let limiter = self.requests.entry((error.r#type(), label));
        let limiter = limiter.or_insert_with(|| RateLimiter::new(REQUESTS_PER_SECOND_MAX));
        let Some(count) = limiter.admit(now.mono) else {
            return;
        };
        let subject = Subject::Request.into();
        let time = Some(timestamp(now.tai));
        self.publish(cause, V2xError { subject, time, count, ..error });
    }

    fn publish(&self, cause: &Meta, error: V2xError) {
        // A subscriber whose queue is full counts the drop.
        let _ = self.publisher.try_publish_from(cause, V2xError { station: self.station.clone(), ..error });
    }
}

/// Returns `true` if normal operation causes such drops: UDP multicast returns the packets of the station itself, and each
/// forwarder repeats a packet.
const fn is_normal(access: AccessLayer, reason: DropReason) -> bool {
    matches!((access, reason), (AccessLayer::UdpMulticast, DropReason::OwnPacket | DropReason::Duplicate))
}
