//! What a station counts, and what of it its machine counts for itself.

use std::collections::BTreeMap;
use std::io;

use viaduct_bus::Counter;
use viaduct_its::{Counters, DropReason, Station};
use viaduct_node::Context;

use super::ItsStation;
use super::channel::DccCounts;
use super::filter::Filtered;

/// Why the link refuses a frame, as the system says it; the last one is any other reason.
const SEND_FAILURES: [(Option<io::ErrorKind>, &str); 6] = [
    (Some(io::ErrorKind::NetworkDown), "network_down"),
    (Some(io::ErrorKind::NetworkUnreachable), "network_unreachable"),
    (Some(io::ErrorKind::WouldBlock), "queue_full"),
    (Some(io::ErrorKind::PermissionDenied), "permission_denied"),
    (Some(io::ErrorKind::Unsupported), "capture_takes_no_frames"),
    (None, "other"),
];

/// What the router has counted since it began.
type Read = fn(&Station) -> u64;

/// Name of a counter, and where the router has it. Packets taken = transmitted + suppressed + lost by reason + held.
const TOTALS: &[(&str, Read)] = &[
    ("packets_taken", |station| station.counters().taken),
    ("packets_transmitted", |station| station.counters().transmitted),
    ("packets_forwarded", |station| station.counters().forwarded),
    ("packets_suppressed", |station| station.counters().suppressed),
    ("repetitions", |station| station.counters().repetitions),
    ("beacons_sent", |station| station.counters().beacons_sent),
    ("beacons_skipped", |station| station.counters().beacons_skipped),
    ("location_requests_sent", |station| station.counters().location_requests_sent),
    ("location_replies_sent", |station| station.counters().location_replies_sent),
    ("stations_evicted", Station::evicted_stations),
];

/// Reads the count of one reason.
type ReadReason = fn(&Counters, DropReason) -> u64;

/// Why packets go no further: given up after they were taken, delivered and not forwarded, due again and not sent again.
const REASONS: [ByReason; 3] = [
    ByReason {
        name: "packets_lost",
        read: Counters::lost,
        what: "packets that were taken to be sent were given up",
        is_loss: |_| true,
    },
    ByReason {
        name: "packets_not_forwarded",
        read: Counters::not_forwarded,
        what: "packets that were delivered could not be sent on",
        // For any other reason a packet that was delivered has come to its end, as it should.
        is_loss: |reason| {
            matches!(reason, DropReason::BufferOverflow | DropReason::TransmitQueueFull | DropReason::SourceTooFast)
        },
    },
    ByReason {
        name: "packets_not_repeated",
        read: Counters::not_repeated,
        what: "messages that were due again were not sent",
        is_loss: |_| true,
    },
];

/// A counter of packets by reason.
struct ByReason {
    name: &'static str,
    read: ReadReason,
    /// What has happened, in words.
    what: &'static str,
    is_loss: fn(DropReason) -> bool,
}

/// What was lost after it was taken, since that was asked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// What has happened, in words.
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
    /// What the reason means, where its label does not say all.
    pub(super) explanation: Option<&'static str>,
    pub(super) count: u64,
}

/// What the station counts. Frames received = delivered + relayed + beacons + location service + dropped by reason; those
/// that the filter leaves unread are not among them.
pub(super) struct Counts {
    filtered: BTreeMap<Filtered, Counter>,
    pub(super) received: Counter,
    pub(super) delivered: Counter,
    pub(super) relayed: Counter,
    pub(super) beacons: Counter,
    pub(super) location_service: Counter,
    dropped: BTreeMap<DropReason, Counter>,
    /// Dropped before the station saw them.
    kernel_drops: Counter,
    kernel_drops_seen: u32,
    pub(super) dcc: DccCounts,
    pub(super) sent: Counter,
    /// Frames that the link refused, by reason; the last one is any other. The number is what was not told yet.
    send_failed: [(Option<io::ErrorKind>, &'static str, Counter, u64); SEND_FAILURES.len()],
    /// Packets after they were taken to be sent.
    pub(super) router: RouterCounts,
    /// Of these, those that waited when a capture began again.
    pub(super) capture_repeated: Counter,
    pub(super) requests: Counter,
    pub(super) refused: Counter,
    /// Messages of the services that the machine refused.
    pub(super) unsent: Counter,
}

impl Counts {
    pub(super) fn new(context: &Context<ItsStation>) -> Self {
        let dropped = |reason: DropReason| (reason, context.counter_for("dropped", reason.label()));
        let filtered = |reason: Filtered| (reason, context.counter_for("filtered", reason.label()));
        Self {
            filtered: Filtered::ALL.into_iter().map(filtered).collect(),
            received: context.counter("received"),
            delivered: context.counter("delivered"),
            relayed: context.counter("relayed"),
            beacons: context.counter("beacons"),
            location_service: context.counter("location_service"),
            dropped: DropReason::ALL.into_iter().map(dropped).collect(),
            kernel_drops: context.counter_for("missed", "kernel_queue_full"),
            kernel_drops_seen: 0,
            dcc: DccCounts::new(context),
            sent: context.counter("sent"),
            send_failed: SEND_FAILURES.map(|(kind, label)| (kind, label, context.counter_for("send_failed", label), 0)),
            router: RouterCounts::new(context),
            capture_repeated: context.counter_for("packets_lost", "capture_repeated"),
            requests: context.counter("requests"),
            refused: context.counter("requests_refused"),
            unsent: context.counter("services_refused"),
        }
    }

    /// Takes the socket's total over.
    pub(super) fn count_kernel_drops(&mut self, total: u32) {
        self.kernel_drops.add(u64::from(total.wrapping_sub(self.kernel_drops_seen)));
        self.kernel_drops_seen = total;
    }

    pub(super) fn filter(&self, reason: Filtered) {
        if let Some(counter) = self.filtered.get(&reason) {
            counter.increment();
        }
    }

    pub(super) fn drop(&self, reason: DropReason) {
        if let Some(counter) = self.dropped.get(&reason) {
            counter.increment();
        }
    }

    pub(super) fn send_failed(&mut self, cause: &io::Error) {
        let known = self.send_failed.iter_mut().find(|(kind, ..)| kind.is_none_or(|kind| kind == cause.kind()));
        if let Some((.., counter, untold)) = known {
            counter.increment();
            *untold += 1;
        }
    }

    /// Frames that the link refused since that was asked last.
    pub(super) fn take_send_failures(&mut self) -> impl Iterator<Item = Loss> {
        self.send_failed.iter_mut().filter(|(.., untold)| *untold > 0).map(|(_, reason, _, untold)| Loss {
            what: "the link refused frames",
            reason,
            explanation: None,
            count: std::mem::take(untold),
        })
    }
}

/// Counters that follow the router's.
pub(super) struct RouterCounts {
    /// In the order of [`TOTALS`].
    totals: Vec<(Read, Follower)>,
    /// For each of [`REASONS`] each reason.
    by_reason: Vec<(&'static ByReason, DropReason, Follower)>,
}

/// A counter that follows one of a machine.
struct Follower {
    counter: Counter,
    /// What was there when the counter last followed.
    seen: u64,
}

impl RouterCounts {
    fn new(context: &Context<ItsStation>) -> Self {
        let totals = TOTALS.iter().map(|(name, read)| (*read, Follower::new(context.counter(name))));
        let reasons = REASONS.iter().flat_map(|counter| {
            let follower = |reason: DropReason| Follower::new(context.counter_for(counter.name, reason.label()));
            DropReason::ALL.into_iter().map(move |reason| (counter, reason, follower(reason)))
        });
        Self { totals: totals.collect(), by_reason: reasons.collect() }
    }

    /// The next router counts from nothing.
    pub(super) fn restart(&mut self) {
        let totals = self.totals.iter_mut().map(|(_, follower)| follower);
        totals.chain(self.by_reason.iter_mut().map(|(.., follower)| follower)).for_each(|it| it.seen = 0);
    }

    /// Takes over what the router has counted; what it has lost since.
    pub(super) fn follow(&mut self, station: &Station) -> Vec<Loss> {
        for (read, follower) in &mut self.totals {
            follower.follow(read(station));
        }
        let mut losses = Vec::new();
        for (counter, reason, follower) in &mut self.by_reason {
            let count = follower.follow((counter.read)(station.counters(), *reason));
            if count > 0 && (counter.is_loss)(*reason) {
                let explanation = Some(reason.explain());
                losses.push(Loss { what: counter.what, reason: reason.label(), explanation, count });
            }
        }
        losses
    }
}

impl Follower {
    const fn new(counter: Counter) -> Self {
        Self { counter, seen: 0 }
    }

    /// How many came since the counter last followed.
    fn follow(&mut self, now: u64) -> u64 {
        let more = now.saturating_sub(self.seen);
        self.counter.add(more);
        self.seen = now;
        more
    }
}
