//! `GET /topics/echo?pattern=its/rx/*`: a stream of samples as they are published, for inspection.
//!
//! The body is a sequence of `viaduct.observe.EchoPart`, each after its length as a varint. A part with the type (full
//! name, encoding and schema) precedes the first sample of that type, so that a client can decode unknown types.
//!
//! A stream costs the data path one more reference for each sample. The observer has room for one sample and is never
//! woken. It is polled every [`POLL_PERIOD`], and only after the client has taken the previous sample. The octets are
//! copied at once and the sample is released, so that a slow client holds no buffer of a pool. Missed samples are
//! counted and reported with the next sample of the topic.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use prost::Message as _;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};
use viaduct_bus::{Bus, ClockState, Counter, HopKind, HopStamp, ObserveError, Observer, TypeInfo, UntypedSample};
use viaduct_messages::topic;
use viaduct_messages::viaduct::observe::echo_part::Part;
use viaduct_messages::viaduct::observe::{EchoClock, EchoPart, EchoSample, EchoStamp, EchoStampKind, EchoType};

use super::Shared;

/// Period in which an observer is polled.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// Longest message whose octets are sent, 16 MiB. For a longer message, only the length is sent.
const OCTETS_MAX: usize = 16 << 20;

/// Number of types that a stream remembers. A type beyond it is sent again. The client may forget older ones.
const TYPES_MAX: usize = 1024;

/// Media type of the stream, in the form of Prometheus' media type for protobuf.
const MEDIA_TYPE: &str = "application/vnd.google.protobuf; proto=viaduct.observe.EchoPart; encoding=delimited";

/// Query of the request.
#[derive(Deserialize)]
pub(super) struct EchoQuery {
    /// Name of a topic, or a pattern.
    pattern: String,
}

/// Reason why a stream is rejected.
#[derive(Clone, Debug, thiserror::Error)]
enum EchoError {
    /// The text is not a pattern, or there are too many observers.
    #[error(transparent)]
    Bus(#[from] ObserveError),
    /// The node has no topic of that name. Observing the name would create the topic; a pattern creates none.
    #[error("the node has no topic `{0}`")]
    NoTopic(String),
}

pub(super) async fn echo(State(shared): State<Shared>, Query(query): Query<EchoQuery>) -> Response {
    match observe(&shared.bus, &query.pattern) {
        Ok(observer) => ([(CONTENT_TYPE, MEDIA_TYPE)], body(EchoStream::new(observer, &shared))).into_response(),
        Err(error) => (error.status(), format!("{error}\n")).into_response(),
    }
}

fn observe(bus: &Bus, pattern: &str) -> Result<Observer, EchoError> {
    let is_name = topic::check_name(pattern).is_ok();
    if is_name && !bus.snapshot().topics.iter().any(|known| known.topic == pattern) {
        return Err(EchoError::NoTopic(pattern.to_owned()));
    }
    Ok(bus.observe(pattern)?)
}

impl EchoError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Bus(ObserveError::Open(_)) => StatusCode::BAD_REQUEST,
            Self::Bus(ObserveError::TooMany) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoTopic(_) => StatusCode::NOT_FOUND,
        }
    }
}

fn body(stream: EchoStream) -> Body {
    Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let octets = stream.next().await?;
        Some((Ok::<_, Infallible>(octets), stream))
    }))
}

/// Stream of one client.
struct EchoStream {
    observer: Observer,
    running: watch::Receiver<()>,
    poll: Interval,
    history: History,
    counts: Counts,
}

impl EchoStream {
    fn new(observer: Observer, shared: &Shared) -> Self {
        let mut poll = interval(POLL_PERIOD);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let counts = Counts::of(&shared.bus);
        Self { observer, running: shared.running.clone(), poll, history: History::default(), counts }
    }

    /// Waits for the next sample and returns its octets, after those of its type if that is new. Returns `None` if the
    /// node stops. Called after the client has taken the previous octets.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                _ = self.running.changed() => return None,
                _ = self.poll.tick() => {}
            }
            if let Some(sample) = self.observer.try_recv() {
                return Some(self.parts(&sample).into());
            }
        }
    }

    fn parts(&mut self, sample: &UntypedSample) -> Vec<u8> {
        let (type_id, new_type) = self.history.type_of(sample);
        let missed = self.history.missed_before(sample);
        let part = echo_sample(sample, type_id, missed);
        self.counts.count(&part);
        let parts = new_type.map(Part::Type).into_iter().chain([Part::Sample(part)]);
        let mut octets = Vec::new();
        for part in parts {
            // The only error is a buffer that is too small, and a `Vec` grows.
            let _ = EchoPart { part: Some(part) }.encode_length_delimited(&mut octets);
        }
        octets
    }
}

/// Returns the sample as it is sent. It refers to the octets; they are copied once, into the stream.
fn echo_sample(sample: &UntypedSample, type_id: u32, missed: u64) -> EchoSample {
    let (meta, encoded) = (sample.meta(), sample.encoded());
    let skipped = encoded.len() > OCTETS_MAX;
    EchoSample {
        type_id,
        topic: sample.topic().to_owned(),
        sequence: meta.sequence,
        missed,
        origin_tai_ns: meta.origin.nanos(),
        stamps: meta.stamps().iter().map(echo_stamp).collect(),
        length: encoded.len() as u64,
        skipped,
        octets: if skipped { Vec::new() } else { encoded.chunks().to_vec() },
    }
}

fn echo_stamp(stamp: &HopStamp) -> EchoStamp {
    let kind = match stamp.kind() {
        HopKind::Published => EchoStampKind::Published,
        HopKind::Taken => EchoStampKind::Taken,
        HopKind::Sent => EchoStampKind::Sent,
        HopKind::Received => EchoStampKind::Received,
    };
    let (clock, error) = match stamp.clock() {
        ClockState::Unknown => (EchoClock::Unknown, None),
        ClockState::Shared => (EchoClock::Shared, None),
        ClockState::Within(error) => (EchoClock::Synchronised, u64::try_from(error.as_nanos()).ok()),
        ClockState::Unsynchronised => (EchoClock::Unsynchronised, None),
    };
    EchoStamp {
        hop: stamp.hop.to_string(),
        at_tai_ns: stamp.at.nanos(),
        kind: kind.into(),
        clock: clock.into(),
        clock_error_ns: error.unwrap_or_default(),
    }
}

/// Types and sequence numbers that a stream has sent. Bounded by the number of topics of a bus.
#[derive(Default)]
struct History {
    /// The latest types with their numbers, counted from 1.
    types: VecDeque<(u32, Arc<TypeInfo>)>,
    /// Number of types that were sent.
    sent: u32,
    /// Newest sequence by topic.
    sequences: HashMap<String, u64>,
}

impl History {
    /// Returns the number of the sample's type, and the part that describes the type if it is new.
    fn type_of(&mut self, sample: &UntypedSample) -> (u32, Option<EchoType>) {
        let info = sample.type_info();
        let is_known = |known: &TypeInfo| known.is_same(info) && known.schema() == info.schema();
        if let Some((id, _)) = self.types.iter().find(|(_, known)| is_known(known)) {
            return (*id, None);
        }
        // A topic may change its type any number of times.
        if self.types.len() >= TYPES_MAX {
            self.types.pop_front();
        }
        self.sent += 1;
        let id = self.sent;
        self.types.push_back((id, Arc::clone(info)));
        let new = EchoType {
            id,
            full_name: info.full_name().to_owned(),
            schema: info.schema().clone(),
            message_encoding: info.format().message_encoding().to_owned(),
        };
        (id, Some(new))
    }

    /// Returns the number of samples of the topic that the stream missed since its previous one. Samples before the
    /// first are not missed.
    fn missed_before(&mut self, sample: &UntypedSample) -> u64 {
        let sequence = sample.meta().sequence;
        let before = self.sequences.insert(sample.topic().to_owned(), sequence);
        before.map_or(0, |before| sequence.saturating_sub(before.saturating_add(1)))
    }
}

/// Counters of all streams of a node, under the component `echo`.
struct Counts {
    sent: Counter,
    missed: Counter,
    skipped: Counter,
}

impl Counts {
    fn of(bus: &Bus) -> Self {
        let counter = |name| bus.counter("echo", name, None);
        Self { sent: counter("sent"), missed: counter("missed"), skipped: counter("skipped") }
    }

    fn count(&self, sample: &EchoSample) {
        let counter = if sample.skipped { &self.skipped } else { &self.sent };
        counter.increment();
        self.missed.add(sample.missed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::{Encoded, MessageFormat, Meta, Qos, TypeInfo};
    use viaduct_units::Tai;

    /// Publishes a message of `length` octets on a topic, and returns the sample.
    fn sample(bus: &Bus, topic: &str, type_name: &str, length: usize) -> UntypedSample {
        let info = TypeInfo::foreign(MessageFormat::Protobuf, type_name, Bytes::from_static(b"schema"));
        let publisher = bus.publisher_untyped(topic, info, Qos::keep_last(1), "p").unwrap();
        let reader = bus.subscribe_untyped(topic, Qos::keep_last(1), "r").unwrap();
        let octets = Encoded::from(Bytes::from(vec![7; length]));
        publisher.publish_from(Meta::from_origin(Tai::from_nanos(5)), octets).unwrap();
        reader.try_recv().unwrap()
    }

    #[test]
    fn a_type_is_sent_once() {
        let (bus, mut history) = (Bus::new("n"), History::default());
        let (id, new_type) = history.type_of(&sample(&bus, "a", "x.A", 1));
        assert_eq!((id, new_type.unwrap().full_name.as_str()), (1, "x.A"));
        assert_eq!(history.type_of(&sample(&bus, "b", "x.A", 1)), (1, None));
        assert_eq!(history.type_of(&sample(&bus, "c", "x.C", 1)).0, 2);
    }

    #[test]
    fn missed_samples_are_counted_by_topic_from_the_first_sample_on() {
        let (bus, mut history) = (Bus::new("n"), History::default());
        sample(&bus, "a", "x.A", 1);
        assert_eq!(history.missed_before(&sample(&bus, "a", "x.A", 1)), 0, "samples before the first are not missed");
        sample(&bus, "a", "x.A", 1);
        sample(&bus, "b", "x.A", 1);
        sample(&bus, "a", "x.A", 1);
        assert_eq!(history.missed_before(&sample(&bus, "a", "x.A", 1)), 2);
        assert_eq!(history.missed_before(&sample(&bus, "b", "x.A", 1)), 0);
    }

    #[test]
    fn a_too_long_message_is_sent_as_its_length_only() {
        let bus = Bus::new("n");
        let long = echo_sample(&sample(&bus, "a", "x.A", OCTETS_MAX + 1), 1, 0);
        assert!(long.skipped && long.octets.is_empty());
        assert_eq!(long.length, OCTETS_MAX as u64 + 1);
        let short = echo_sample(&sample(&bus, "a", "x.A", OCTETS_MAX), 1, 0);
        assert_eq!((short.skipped, short.octets.concat().len()), (false, OCTETS_MAX));
    }

    #[test]
    fn an_unknown_name_creates_no_topic() {
        let bus = Bus::new("n");
        let status = |pattern: &str| observe(&bus, pattern).err().map(|error| error.status());
        assert_eq!(status("no/such"), Some(StatusCode::NOT_FOUND));
        assert_eq!(status("no/#"), Some(StatusCode::BAD_REQUEST));
        assert_eq!(status("no/*"), None, "a pattern may wait for topics");
        assert!(bus.snapshot().topics.is_empty());
    }
}
