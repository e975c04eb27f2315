//! Delivery rate and random loss, from feedback.

use std::time::Duration;

use viaduct_units::Mono;

use crate::{micros, pacing::Delivery, wire::Feedback};

/// Shortest and longest time of a measurement.
const SPANS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// Shortest time of a measurement as a multiple of the jitter.
const SPAN_JITTERS: u32 = 8;
/// Smallest number of datagrams of a measurement.
const DATAGRAMS_MIN: u64 = 4;
/// Number of datagrams over which the loss is averaged.
const LOSS_DATAGRAMS: f64 = 2000.0;

/// Measures the delivery between feedbacks.
///
/// A measurement compares the time in which datagrams were sent with the time in which they arrived. Lost datagrams count as
/// sent, so random loss does not lower the result.
#[derive(Debug, Default)]
pub(super) struct DeliveryMeter {
    /// First datagram of the current measurement.
    start: Option<Arrival>,
    /// Counters of the latest feedback.
    latest: Option<Counts>,
    /// Shortest queueing delay of the current measurement.
    queue: Option<Duration>,
    /// `true` if the sender had nothing to send at some time of the current measurement.
    idle: bool,
    loss: f64,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) transmission: u64,
    /// Time of sending.
    pub(super) sent: Mono,
    /// Octets of this datagram and all before it.
    pub(super) total: u64,
    /// Time of arrival by the receiver's clock, in microseconds.
    pub(super) arrived_us: u32,
}

/// The counters of a feedback.
#[derive(Clone, Copy, Debug)]
struct Counts {
    received: u32,
    lost_random: u32,
}

impl DeliveryMeter {
    /// Forgets the counters of the receiver, which has restarted.
    pub(super) fn restart(&mut self) {
        (self.start, self.latest, self.queue) = (None, None, None);
    }

    /// Notes that the sender has nothing to send.
    pub(super) const fn note_idle(&mut self) {
        self.idle = true;
    }

    /// Returns the estimated probability of random loss.
    pub(super) const fn loss(&self) -> f64 {
        self.loss
    }

    /// Processes a feedback and the datagram with the largest transmission number that has arrived, if it is a new one.
    /// Returns a measurement if one is complete.
    pub(super) fn handle(&mut self, feedback: &Feedback, arrival: Option<Arrival>) -> Option<Delivery> {
        let counts = Counts { received: feedback.received, lost_random: feedback.lost_random };
        if let Some(latest) = self.latest.replace(counts) {
            self.learn_loss(&latest, &counts);
        }
        let queue = micros::duration(feedback.queue_min_us);
        let queue = self.queue.map_or(queue, |shortest| shortest.min(queue));
        self.queue = Some(queue);
        let arrival = arrival?;
        let start = *self.start.get_or_insert(arrival);
        let span = micros::duration(arrival.arrived_us.wrapping_sub(start.arrived_us));
        let span_min = (SPAN_JITTERS * micros::duration(feedback.jitter_us)).clamp(SPANS.0, SPANS.1);
        if span < span_min || arrival.transmission < start.transmission + DATAGRAMS_MIN {
            return None;
        }
        let busy = !std::mem::take(&mut self.idle);
        (self.start, self.queue) = (Some(arrival), None);
        let octets = arrival.total.saturating_sub(start.total) as f64;
        let carried = arrival.sent.since(start.sent).as_secs_f64() / span.as_secs_f64();
        let rate = octets / span.as_secs_f64();
        Some(Delivery { rate, carried, since: start.sent, queue, busy, loss: self.loss })
    }

    fn learn_loss(&mut self, before: &Counts, after: &Counts) {
        // Negative if more losses were taken back than counted: datagrams were only late.
        let lost = f64::from(after.lost_random.wrapping_sub(before.lost_random).cast_signed());
        let received = f64::from(after.received.wrapping_sub(before.received).cast_signed().max(0));
        let datagrams = received + lost.max(0.0);
        if datagrams > 0.0 {
            let weight = (datagrams / LOSS_DATAGRAMS).min(1.0);
            self.loss = (self.loss + weight * (lost / datagrams - self.loss)).clamp(0.0, 1.0);
        }
    }
}
