//! Rate control: measured delivery rate and queueing delay.
//!
//! Random loss says nothing about the rate of a link, so the rate does not depend on it below 40 %. A queue does: if the queueing
//! delay grows, the link delivers less than is sent.
//!
//! The thresholds are higher on a long path and on one with jitter: `queue_low` is at least a quarter of the round trip and
//! four times the jitter, `queue_high` twice as much, and `queue_stop` twice `queue_high` and 16 times the jitter.
//!
//! | queueing delay | reaction |
//! |---|---|
//! | below `queue_low`, the link delivers what is sent | the rate grows, about once per round trip |
//! | above `queue_low`, the link delivers less than is sent | the rate becomes the delivery rate |
//! | above `queue_high` | the rate becomes 85 % of the delivery rate, once per round trip |
//! | above `queue_stop` | no frames are sent until the queue is below `queue_high` |
//!
//! If the path becomes longer, for example because a modem changes its cell, the receiver measures the difference as a queueing
//! delay until it forgets the shorter path. A queue becomes shorter if less is sent, a longer path does not. The sender finds the
//! additional delay in this way and subtracts it from the queueing delay.

use std::time::Duration;

use viaduct_units::Mono;

/// Settings of the pacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingSettings {
    /// Rate at the start in bits per second. The default is 50 Mbit/s.
    pub initial_bits_per_second: u64,
    /// Lowest rate in bits per second, at least 10 kbit/s. The default is 100 kbit/s.
    pub floor_bits_per_second: u64,
    /// Highest rate in bits per second. The default is 1 Gbit/s.
    pub ceiling_bits_per_second: u64,
    /// Octets that lower layers add to a datagram, which count for the rate. The default is 95: encryption 29, UDP and
    /// IPv4 28, Ethernet 38.
    pub overhead_octets: usize,
    /// Longest burst at the current rate, 0 to 10 ms. The default is 0.5 ms. A burst has at least two datagrams. After
    /// a late timer it is up to twice as long.
    pub burst: Duration,
    /// Queueing delay up to which the rate may grow. The default is 3 ms.
    pub queue_low: Duration,
    /// Queueing delay above which the rate falls. The default is 25 ms.
    pub queue_high: Duration,
    /// Queueing delay above which no frames are sent. The default is 150 ms.
    pub queue_stop: Duration,
    /// Part of the rate that encoders may use, 0.1 to 1. The default is 0.8.
    pub encoder_share: f64,
}

impl Default for PacingSettings {
    fn default() -> Self {
        Self {
            initial_bits_per_second: 50_000_000,
            floor_bits_per_second: 100_000,
            ceiling_bits_per_second: 1_000_000_000,
            overhead_octets: 95,
            burst: Duration::from_micros(500),
            queue_low: Duration::from_millis(3),
            queue_high: Duration::from_millis(25),
            queue_stop: Duration::from_millis(150),
            encoder_share: 0.8,
        }
    }
}

/// An invalid setting of the pacing.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PacingSettingsError {
    /// The rates are not in order.
    #[error("rates must be in the order 10 kbit/s, floor, initial, ceiling, 100 Gbit/s")]
    Rates,
    /// The overhead is above the limit.
    #[error("the overhead of a datagram must be at most 1000 octets")]
    Overhead,
    /// The burst is above the limit.
    #[error("the longest burst must be at most 10 ms")]
    Burst,
    /// The queueing delays are not in order.
    #[error("queueing delays must be in the order 0, low, high, stop, 10 s")]
    Queues,
    /// The part of encoders is outside the limits.
    #[error("the part of encoders must be within 0.1 to 1")]
    EncoderShare,
}

impl PacingSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), PacingSettingsError> {
        let rates = [
            10_000,
            self.floor_bits_per_second,
            self.initial_bits_per_second,
            self.ceiling_bits_per_second,
            100_000_000_000,
        ];
        if !rates.is_sorted() {
            return Err(PacingSettingsError::Rates);
        }
        if self.overhead_octets > 1000 {
            return Err(PacingSettingsError::Overhead);
        }
        if self.burst > Duration::from_millis(10) {
            return Err(PacingSettingsError::Burst);
        }
        let queues = [Duration::ZERO, self.queue_low, self.queue_high, self.queue_stop, Duration::from_secs(10)];
        if !queues.is_sorted_by(|a, b| a < b) {
            return Err(PacingSettingsError::Queues);
        }
        if !(0.1..=1.0).contains(&self.encoder_share) {
            return Err(PacingSettingsError::EncoderShare);
        }
        Ok(())
    }
}

/// Growth of the rate per round trip while nothing is known about the link.
const GROWTH_MAX: f64 = 1.0;
/// Growth of the rate per round trip after the link was found to be slower.
const GROWTH_MIN: f64 = 0.02;
/// Growth of the rate per round trip after a stop.
const GROWTH_AFTER_STOP: f64 = 0.1;
/// Factor of the growth from round trip to round trip.
const GROWTH_FACTOR: f64 = 1.5;
/// Part of the delivery rate that is sent while a queue is drained.
const DRAIN: f64 = 0.85;
/// Part of the rate that a link must deliver to be regarded as able to carry it.
const CARRIES: f64 = 0.9;
/// Random loss above which the rate falls as if there were a queue: a link without a queue drops what it cannot carry.
const LOSS_MAX: f64 = 0.4;
/// Number of delivery rates that are remembered.
const RECENT_MEASUREMENTS: usize = 4;
/// Number of consecutive measurements below that part that are no noise, even if there is no queue.
const SLOW_MEASUREMENTS: u32 = 3;
/// Part of the rate that remains at least when the rate follows the delivery.
const FOLLOW_MIN: f64 = 0.7;
/// Growth of the rate per round trip near a rate that was too high.
const GROWTH_AT_LIMIT: f64 = 0.04;
/// Range of that growth, as parts of the rate that was too high.
const LIMIT_RANGE: (f64, f64) = (0.8, 1.3);
/// Time for which a rate that was too high is remembered.
const LIMIT_MEMORY: Duration = Duration::from_secs(10);

/// Rate in octets per second below which a picture is too short for a measurement: 1 Mbit/s.
const BLIND_OCTETS_PER_SECOND: f64 = 125_000.0;
/// Growth of such a rate per measurement.
const GROWTH_BLIND: f64 = 0.1;

/// One measurement of the delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Octets with the overhead of lower layers per second of arrival. Lost datagrams count.
    pub(crate) rate: f64,
    /// Time of sending over time of arrival: below 1 if the link delivers less than is sent.
    pub(crate) carried: f64,
    /// Time of sending of the first datagram.
    pub(crate) since: Mono,
    /// Shortest queueing delay.
    pub(crate) queue: Duration,
    /// `true` if the sender had enough to send all the time.
    pub(crate) busy: bool,
    /// Estimated probability of random loss.
    pub(crate) loss: f64,
}

/// The queueing delays at which the rate changes. A long or irregular path looks like a short queue.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    low: Duration,
    high: Duration,
    stop: Duration,
}

impl Thresholds {
    fn new(settings: &PacingSettings, round_trip: Duration, jitter: Duration) -> Self {
        let high = settings.queue_high.max(round_trip / 2).max(8 * jitter);
        Self {
            low: settings.queue_low.max(round_trip / 4).max(4 * jitter),
            high,
            stop: settings.queue_stop.max(2 * high).max(16 * jitter),
        }
    }
}

/// The rate of the sender.
#[derive(Debug)]
pub(crate) struct RateController {
    settings: PacingSettings,
    /// Rate in octets per second.
    rate: f64,
    growth: f64,
    queue: Duration,
    detour: Detour,
    thresholds: Thresholds,
    stopped: bool,
    /// Number of times that frames were stopped.
    stops: u64,
    next_decrease: Mono,
    /// Time of the latest change of the rate.
    changed: Mono,
    /// Latest delivery rates, newest first.
    recent: [f64; RECENT_MEASUREMENTS],
    /// Number of consecutive measurements in which the link delivered less than was sent.
    slow: u32,
    /// Rate at which the link was found to be slower, and the time.
    limit: Option<(f64, Mono)>,
}

impl RateController {
    pub(crate) fn new(settings: PacingSettings) -> Self {
        Self {
            settings,
            rate: settings.initial_bits_per_second as f64 / 8.0,
            growth: GROWTH_MAX,
            queue: Duration::ZERO,
            detour: Detour::default(),
            thresholds: Thresholds::new(&settings, Duration::ZERO, Duration::ZERO),
            stopped: false,
            stops: 0,
            next_decrease: Mono::default(),
            changed: Mono::default(),
            recent: [settings.ceiling_bits_per_second as f64 / 8.0; RECENT_MEASUREMENTS],
            slow: 0,
            limit: None,
        }
    }

    /// Returns the rate in octets per second, with the overhead of lower layers.
    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the latest queueing delay.
    pub(crate) const fn queue(&self) -> Duration {
        self.queue
    }

    /// Returns `true` while the queue is so long that no frames are sent.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Returns `true` if the link was found to be slower than the sender could be.
    pub(crate) fn is_settled(&self) -> bool {
        self.growth < GROWTH_MAX || self.rate >= self.settings.ceiling_bits_per_second as f64 / 8.0
    }

    pub(crate) const fn stops(&self) -> u64 {
        self.stops
    }

    /// Processes a queueing delay without a measurement of the delivery. Returns `true` if the path has become longer.
    pub(crate) fn handle_queue(
        &mut self,
        now: Mono,
        measured: Duration,
        round_trip: Duration,
        jitter: Duration,
    ) -> bool {
        self.thresholds = Thresholds::new(&self.settings, round_trip, jitter);
        let mut queue = self.detour.queue(measured);
        let mut is_longer = false;
        if queue < self.thresholds.high {
            self.detour.end_trial();
        } else if let Some(rate) = self.detour.find(now, queue, self.rate, self.stopped) {
            self.set(rate);
            self.changed = now;
            queue = self.detour.queue(measured);
            is_longer = true;
        }
        self.queue = queue;
        if !self.stopped && queue > self.thresholds.stop {
            self.stopped = true;
            self.stops += 1;
            self.set(self.rate / 2.0);
            self.growth = self.growth.min(GROWTH_AFTER_STOP);
        } else if queue < self.thresholds.high {
            self.stopped = false;
        }
        is_longer
    }

    /// Processes a measurement of the delivery.
    pub(crate) fn handle_delivery(&mut self, now: Mono, delivery: &Delivery, round_trip: Duration) {
        let Thresholds { low, high, .. } = self.thresholds;
        let delivery = &Delivery { queue: self.detour.queue(delivery.queue), ..*delivery };
        let carries = delivery.carried >= CARRIES;
        if delivery.busy && !carries {
            self.detour.end_trial();
        }
        if delivery.busy {
            self.recent.rotate_right(1);
            if let Some(newest) = self.recent.first_mut() {
                *newest = delivery.rate;
            }
            self.slow = if carries { 0 } else { self.slow.saturating_add(1) };
        }
        if delivery.queue > high || delivery.loss > LOSS_MAX {
            self.drain(now, round_trip);
        } else if !delivery.busy {
            // The link may be able to carry more than was sent. At a low rate no measurement is busy.
            if delivery.queue < low && self.rate < BLIND_OCTETS_PER_SECOND {
                self.set(self.rate * (1.0 + GROWTH_BLIND));
            }
        } else if !carries && (delivery.queue > low || self.slow >= SLOW_MEASUREMENTS) {
            self.follow(now);
        } else if carries && delivery.queue <= low {
            self.grow(now, delivery);
        }
    }

    /// Returns the highest of the latest delivery rates: a single one may be too low because of jitter.
    fn delivered(&self) -> f64 {
        self.recent.iter().copied().fold(0.0, f64::max)
    }

    /// Lowers the rate to the delivery rate.
    fn follow(&mut self, now: Mono) {
        let delivered = self.delivered();
        if delivered < self.rate {
            self.set(delivered.max(self.rate * FOLLOW_MIN));
            self.limit = Some((self.rate, now));
        }
        self.growth = GROWTH_MIN;
        self.changed = now;
    }

    /// Raises the rate, if the measurement is one of the present rate.
    fn grow(&mut self, now: Mono, delivery: &Delivery) {
        if delivery.since < self.changed {
            return;
        }
        self.changed = now;
        let (below, above) = LIMIT_RANGE;
        let near_limit = |&(limit, found): &(f64, Mono)| {
            now.since(found) < LIMIT_MEMORY && (below * limit..above * limit).contains(&self.rate)
        };
        let growth =
            if self.limit.as_ref().is_some_and(near_limit) { self.growth.min(GROWTH_AT_LIMIT) } else { self.growth };
        self.set(self.rate * (1.0 + growth));
        self.growth = (growth * GROWTH_FACTOR).min(GROWTH_MAX);
    }

    /// Lowers the rate so that a queue drains, once per round trip. A queue after a gap of the link says little about
    /// its rate, so the rate is halved at most.
    fn drain(&mut self, now: Mono, round_trip: Duration) {
        if now < self.next_decrease {
            return;
        }
        self.next_decrease = now.plus(round_trip + self.thresholds.high);
        self.detour.count_reduction();
        self.set((self.rate.min(self.delivered()) * DRAIN).max(self.rate / 2.0));
        self.growth = GROWTH_MIN;
        self.changed = now;
    }

    fn set(&mut self, rate: f64) {
        let floor = self.settings.floor_bits_per_second as f64 / 8.0;
        let ceiling = self.settings.ceiling_bits_per_second as f64 / 8.0;
        self.rate = rate.clamp(floor, ceiling);
    }
}

/// Reductions of the rate before the sender assumes a longer path.
const REDUCTIONS_MIN: u32 = 6;
/// Time for which a measurement of the queue must remain the same after a stop, in addition to twice the queue.
const TRIAL_STOPPED: Duration = Duration::from_millis(100);

/// The part of the measured queueing delay that is no queue, because the path has become longer.
#[derive(Debug, Default)]
struct Detour {
    delay: Duration,
    trial: Option<Trial>,
}

/// Measurements while less is sent than before.
#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Mono,
    /// Queueing delay when the trial began.
    first: Duration,
    /// Lowest queueing delay since then.
    lowest: Duration,
    /// Rate when the trial began.
    rate: f64,
    /// Number of times that the rate was reduced.
    reductions: u32,
}

impl Detour {
    /// Returns the queueing delay without the part that is no queue.
    fn queue(&mut self, measured: Duration) -> Duration {
        self.delay = self.delay.min(measured);
        measured - self.delay
    }

    /// Processes a long queue. If it has neither grown nor shrunk although nothing or much less is sent, the path has become
    /// longer: returns the rate before that, or `None` otherwise.
    fn find(&mut self, now: Mono, queue: Duration, rate: f64, stopped: bool) -> Option<f64> {
        let begun = Trial { since: now, first: queue, lowest: queue, rate, reductions: 0 };
        let trial = self.trial.get_or_insert(begun);
        trial.lowest = trial.lowest.min(queue);
        if trial.lowest < trial.first * 4 / 5 || queue > trial.first * 5 / 4 {
            *trial = begun;
            return None;
        }
        let waited = stopped && now.since(trial.since) >= 2 * trial.first + TRIAL_STOPPED;
        if !waited && trial.reductions < REDUCTIONS_MIN {
            return None;
        }
        self.delay += trial.lowest;
        self.trial.take().map(|trial| trial.rate)
    }

    fn count_reduction(&mut self) {
        if let Some(trial) = &mut self.trial {
            trial.reductions += 1;
        }
    }

    fn end_trial(&mut self) {
        self.trial = None;
    }
}

/// A token bucket that spaces datagrams.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// Octets that may be sent now. Below zero after a datagram that was longer.
    tokens: f64,
    updated: Mono,
}

impl Bucket {
    /// Adds the tokens of the time since the last call. The bucket has at most `octets_max` then.
    pub(crate) fn refill(&mut self, now: Mono, rate: f64, octets_max: f64) {
        let added = now.since(self.updated).as_secs_f64() * rate;
        self.tokens = (self.tokens + added).min(octets_max);
        self.updated = self.updated.max(now);
    }

    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens > 0.0
    }

    pub(crate) fn take(&mut self, octets: usize) {
        self.tokens -= octets as f64;
    }

    /// Returns the time at which the given number of octets can be sent.
    pub(crate) fn holds_at(&self, rate: f64, octets: f64) -> Mono {
        let wait = ((octets - self.tokens) / rate).clamp(0.0, 10.0);
        self.updated.plus(Duration::from_secs_f64(wait) + Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_on_a_long_path_stops_the_sender_once_at_most() {
        let mut rate = RateController::new(PacingSettings::default());
        for step in 0..100 {
            let now = Mono(Duration::from_millis(5 * step));
            rate.handle_queue(now, Duration::from_millis(180), Duration::from_millis(400), Duration::ZERO);
        }
        assert!(rate.stops() <= 1, "{}", rate.stops());
    }
}
