//! One direction of the relay: the model, and its figures.

use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::{Gauge, clock};
use viaduct_netem::link::{Delivery, LinkDropReason, LinkSettingsError};
use viaduct_netem::{Link, LinkSettings};
use viaduct_node::{Context, StartError};
use viaduct_units::Mono;

use super::LinkEmulator;
use crate::counter_mirror::CounterMirror;
use crate::link::LatenessHistogram;

/// A link of one direction with real time.
pub(super) struct Direction {
    link: Link,
    /// Time of the last call of the link, which must not decrease.
    last: Mono,
    pub(super) lateness: LatenessHistogram,
}

impl Direction {
    /// Returns a link that starts now.
    pub(super) fn new(settings: LinkSettings, seed: u64) -> Result<Self, LinkSettingsError> {
        let now = clock::mono();
        Ok(Self { link: Link::starting_at(now, settings, seed)?, last: now, lateness: LatenessHistogram::new() })
    }

    /// Passes a packet to the link that arrived at the given time.
    pub(super) fn push(&mut self, at: Mono, packet: Bytes, header_octets: u16) {
        self.last = self.last.max(at);
        self.link.handle_payload(self.last, packet, header_octets);
    }

    /// Returns the next packet that is due, or `None`. Records its lateness.
    pub(super) fn poll(&mut self, now: Mono) -> Option<Bytes> {
        let (packet, late) = self.poll_late(now)?;
        self.lateness.record(late);
        Some(packet)
    }

    /// Returns the next packet that is due and its lateness, or `None`.
    pub(super) fn poll_late(&mut self, now: Mono) -> Option<(Bytes, Duration)> {
        self.last = self.last.max(now);
        let Delivery { due, packet } = self.link.poll_delivery(self.last)?;
        Some((packet, now.since(due)))
    }

    /// Returns the octets that a packet takes of the rate.
    pub(super) fn wire_octets(&self, payload_octets: usize, header_octets: u16) -> usize {
        self.link.wire_octets(payload_octets, header_octets)
    }

    /// Returns the time at which the next packet may be due.
    pub(super) fn due(&self) -> Option<Mono> {
        self.link.poll_timeout()
    }

    /// Returns the packets in the link and the octets in its queue.
    pub(super) fn load(&self, now: Mono) -> (usize, usize) {
        (self.link.packets(), self.link.queued_octets(self.last.max(now)))
    }

    /// Returns a total of the link.
    pub(super) fn total(&self, key: Total) -> u64 {
        let counters = self.link.counters();
        match key {
            Total::Received => counters.received,
            Total::Duplicated => counters.duplicated,
            Total::Delivered => counters.delivered,
            Total::Dropped(reason) => counters.dropped(reason),
        }
    }
}

/// A total of a direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    Received,
    Duplicated,
    Delivered,
    Dropped(LinkDropReason),
}

/// Counters and gauges of one direction.
pub(super) struct Figures {
    totals: CounterMirror<Total>,
    p50_us: Gauge,
    p99_us: Gauge,
    max_us: Gauge,
}

impl Figures {
    /// Opens the counters of a direction: `a_to_b` or `b_to_a`.
    pub(super) fn open(direction: &str, context: &Context<LinkEmulator>) -> Self {
        let totals = [Total::Received, Total::Duplicated, Total::Delivered];
        let totals = totals.into_iter().chain(LinkDropReason::ALL.map(Total::Dropped));
        let counter = |total: &Total| match total {
            Total::Received => context.counter(&format!("{direction}_received")),
            Total::Duplicated => context.counter(&format!("{direction}_duplicated")),
            Total::Delivered => context.counter(&format!("{direction}_delivered")),
            Total::Dropped(reason) => context.counter_for(&format!("{direction}_dropped"), reason.label()),
        };
        Self {
            totals: CounterMirror::new(totals, counter),
            p50_us: context.gauge_for("lateness_p50_us", direction),
            p99_us: context.gauge_for("lateness_p99_us", direction),
            max_us: context.gauge_for("lateness_max_us", direction),
        }
    }

    /// Brings the counters up to date with the totals.
    pub(super) fn sync(&mut self, total: impl Fn(Total) -> u64) {
        self.totals.sync(|key| total(*key));
    }

    /// Brings the gauges up to date.
    pub(super) fn show(&self, lateness: &LatenessHistogram) {
        let report = lateness.report();
        if report.packets > 0 {
            self.p50_us.set(report.p50_us);
            self.p99_us.set(report.p99_us);
            self.max_us.set(report.max_us);
        }
    }
}

/// Time between two updates of counters and gauges.
pub(super) const FIGURES_PERIOD: Duration = Duration::from_millis(500);

/// Returns the error of a link that was checked before.
pub(super) fn invalid(error: LinkSettingsError) -> StartError {
    StartError::Other(format!("`links`: {error}"))
}
