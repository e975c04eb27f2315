//! What a station could not do, as messages on the bus: refused requests, samples of dropped frames, and what was lost later.

use std::collections::BTreeMap;

use bytes::Bytes;
use viaduct_bus::{Meta, Publisher, Qos};
use viaduct_its::{DropReason, SendError};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::v2x_error::Subject;
use viaduct_messages::viaduct::its::{MessageType, V2xError, V2xSendRequest};
use viaduct_node::{Context, StartError};
use viaduct_units::Now;

use super::ItsStation;
use super::counters::Loss;
use super::services::{Input, InputError};
use crate::rate_limiter::RateLimiter;
use crate::v2x::request::RequestError;

/// What the topic offers: nobody waits for it, and a reader that is slow gets the newest.
pub(super) const OFFERED: Qos = Qos::keep_last(256);
/// Dropped frames of one reason that are told each second; the others are counted in the next one that is told.
const FRAMES_PER_SECOND_MAX: u32 = 2;
/// Refused requests and inputs of one type and reason that are told each second.
const REQUESTS_PER_SECOND_MAX: u32 = 50;
/// Characters of an event's name that are told.
const EVENT_CHARACTERS_MAX: usize = 64;

/// Why a request was not sent.
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
    /// The reason as counters have it.
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

/// Publishes errors, not more often than somebody can read them.
pub(super) struct Errors {
    publisher: Publisher<V2xError>,
    /// The node and the component.
    station: String,
    frames: BTreeMap<DropReason, RateLimiter>,
    /// By what was refused and why, so that a wrong input does not take another one's turn; of labels there are as many as
    /// [`Refusal::label`] and [`InputError::label`] know.
    requests: BTreeMap<(MessageType, &'static str), RateLimiter>,
}

impl Errors {
    pub(super) fn new(topic: &str, context: &Context<ItsStation>) -> Result<Self, StartError> {
        Ok(Self {
            publisher: context.publisher(topic, OFFERED)?,
            station: format!("{}/{}", context.node(), context.name()),
            frames: BTreeMap::new(),
            requests: BTreeMap::new(),
        })
    }

    /// A frame was dropped.
    pub(super) fn dropped(&mut self, now: Now, reason: DropReason, frame: &[u8], cause: &Meta) {
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
                error: format!("a received frame was dropped: {}", reason.explain()),
                time: Some(timestamp(now.tai)),
                count,
                octets: frame.len().try_into().unwrap_or(u32::MAX),
                link_address,
                ..V2xError::default()
            },
        );
    }

    /// Something was lost after it was taken; who follows the counters tells it at most as often as it looks.
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

    /// A request to send was refused.
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

    /// What an application tells the services was refused.
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
        self.request_refused(now, refusal.label(), error, input.meta());
    }

    fn request_refused(&mut self, now: Now, label: &'static str, error: V2xError, cause: &Meta) {
        let limiter = self.requests.entry((error.r#type(), label));
        let limiter = limiter.or_insert_with(|| RateLimiter::new(REQUESTS_PER_SECOND_MAX));
        let Some(count) = limiter.admit(now.mono) else {
            return;
        };
        let (subject, time) = (Subject::Request.into(), Some(timestamp(now.tai)));
        self.publish(cause, V2xError { subject, time, count, ..error });
    }

    fn publish(&self, cause: &Meta, error: V2xError) {
        // A subscriber without room has counted the drop.
        let _ = self.publisher.try_publish_from(cause, V2xError { station: self.station.clone(), ..error });
    }
}
