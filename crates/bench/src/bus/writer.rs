//! The publisher of a case: filling, stamping and sending of messages.

use std::thread::ThreadId;
use std::time::Duration;

use viaduct_bus::{Loan, Publisher};
use viaduct_messages::foxglove::PointCloud;

use super::case::{Case, Fill};
use super::message::{HEADER_OCTETS, Header, room, stamp};
use super::producer::{Producer, fill};
use crate::error::BenchError;
use crate::floor::{self, WARM_UP, nanos};
use crate::sys::{self, ThreadUsage};

/// Period of the warm-up's messages.
pub(super) const WARM_UP_PERIOD: Duration = Duration::from_millis(1);

/// Record of the publisher's thread.
pub(super) struct Written {
    pub(super) lateness: Vec<u64>,
    /// Address of each message by number.
    pub(super) addresses: Vec<usize>,
    pub(super) cost: ThreadUsage,
    /// Cost of filling the messages, if another thread did.
    pub(super) producer: ThreadUsage,
    pub(super) thread: ThreadId,
}

/// Sends the warm-up and `samples` messages from a dedicated thread.
pub(super) fn publish(
    publisher: Publisher<PointCloud>,
    case: &Case,
    samples: usize,
    cores: &[usize],
) -> Result<Written, BenchError> {
    let content = vec![0x5A_u8; case.size.max(HEADER_OCTETS)];
    let producer = case.has_producer().then(|| Producer::start(content.clone(), &case.producer(cores))).transpose()?;
    let writer = Writer { publisher, fill: case.fill, content, producer };
    let period = case.period();
    let work = move || writer.publish_all(samples, period);
    let thread = floor::spawn_placed("bench-publisher", &case.publisher(cores), work)?;
    floor::join("bench-publisher", thread)??
}

/// The publisher's thread.
struct Writer {
    publisher: Publisher<PointCloud>,
    fill: Fill,
    content: Vec<u8>,
    /// Producer that fills loans before their tick, if the case has one.
    producer: Option<Producer<Loan>>,
}

impl Writer {
    fn publish_all(self, samples: usize, period: Duration) -> Result<Written, BenchError> {
        sys::exact_timers();
        let (mut lateness, mut addresses) = (room(samples, 1), room(samples, 1));
        let start = sys::monotonic();
        for number in 1..=WARM_UP {
            let moment = start + WARM_UP_PERIOD * u32::try_from(number).unwrap_or(0);
            self.publish_one(Tick { moment, number: 0 })?;
        }
        // Allocating memory takes longer than a period; the measured messages start on time.
        let mut moment = sys::monotonic();
        let before = ThreadUsage::now();
        for number in 1..=samples as u64 {
            moment += period;
            let sent = self.publish_one(Tick { moment, number })?;
            lateness.push(nanos(sent.woke.saturating_sub(moment)));
            addresses.push(sent.address);
        }
        let cost = ThreadUsage::now().since(before);
        let producer = self.producer.map(Producer::finish).transpose()?.unwrap_or_default();
        Ok(Written { lateness, addresses, cost, producer, thread: std::thread::current().id() })
    }

    /// Sleeps until the tick and sends a message.
    fn publish_one(&self, tick: Tick) -> Result<Sent, BenchError> {
        if let Some(producer) = &self.producer {
            producer.refill(self.loan()?)?;
        }
        sys::sleep_until(tick.moment);
        let woke = sys::monotonic();
        let buffer = match &self.producer {
            Some(producer) => producer.take()?,
            None => {
                let mut buffer = self.loan()?;
                fill(&mut buffer, &self.content);
                buffer
            }
        };
        let mut cloud = message(buffer, tick);
        stamp(&mut cloud, if self.fill == Fill::Loan { sys::monotonic() } else { woke });
        let address = cloud.data.as_ptr().addr();
        // A message that a reliable subscriber has no space for is missing in its record, from which losses are
        // counted.
        let _ = self.publisher.publish(cloud);
        Ok(Sent { woke, address })
    }

    fn loan(&self) -> Result<Loan, BenchError> {
        self.publisher.loan(self.content.len()).map_err(BenchError::part("cannot loan a buffer"))
    }
}

fn message(mut buffer: Loan, tick: Tick) -> PointCloud {
    Header { tick_ns: nanos(tick.moment), number: tick.number }.write(&mut buffer);
    PointCloud { data: buffer.freeze(), ..PointCloud::default() }
}

/// Scheduled time and number of a message.
#[derive(Clone, Copy)]
struct Tick {
    moment: Duration,
    number: u64,
}

struct Sent {
    woke: Duration,
    /// Returns the address of the message's first byte.
    address: usize,
}
