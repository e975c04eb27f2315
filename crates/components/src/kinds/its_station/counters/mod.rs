//! Counters of a station: those that the component increments itself, and mirrors of those of its state machines.

mod dcc;
mod router;
mod services;

use std::collections::BTreeMap;
use std::io;

use viaduct_bus::Counter;
use viaduct_its::DropReason;
use viaduct_node::Context;

use self::dcc::DccCounters;
use self::router::RouterCounters;
pub(super) use self::services::ServiceCounters;
use super::ItsStation;
use super::filter::Filtered;
use crate::capture::SkipReason;

/// Reasons why the access layer rejects a frame. The last row is any other reason.
const SEND_FAILURES: [(Option<io::ErrorKind>, &str); 6] = [
    (Some(io::ErrorKind::NetworkDown), "network_down"),
    (Some(io::ErrorKind::NetworkUnreachable), "network_unreachable"),
    (Some(io::ErrorKind::WouldBlock), "queue_full"),
    (Some(io::ErrorKind::PermissionDenied), "permission_denied"),
    (Some(io::ErrorKind::Unsupported), "capture_takes_no_frames"),
    (None, "other"),
];

/// Frames, messages or events that were lost after they were accepted, since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Text of the error report.
    pub(super) description: &'static str,
    /// Label of the reason, as in the counters.
    pub(super) reason: &'static str,
    /// Meaning of the reason; `None` if the label is clear by itself.
    pub(super) explanation: Option<&'static str>,
    pub(super) count: u64,
}

/// A counter of frames that the access layer rejected for one reason.
struct SendFailure {
    /// `None` for any other reason.
    kind: Option<io::ErrorKind>,
    label: &'static str,
    counter: Counter,
    /// Frames counted since the last report.
    unreported: u64,
}

/// The counters of a station. Frames received = delivered + relayed + beacons + location service + dropped by reason.
/// Frames that the filter rejects are not counted as received.
pub(super) struct StationCounters {
    filtered: BTreeMap<Filtered, Counter>,
    /// Records of a replayed capture that are not frames for the station.
    capture_skipped: BTreeMap<SkipReason, Counter>,
    pub(super) received: Counter,
    pub(super) delivered: Counter,
    pub(super) relayed: Counter,
    pub(super) beacons: Counter,
    pub(super) location_service: Counter,
    dropped: BTreeMap<DropReason, Counter>,
    /// Frames that the kernel dropped because the socket's queue was full.
    kernel_drops: Counter,
    /// The kernel's total at the last call; it wraps.
    kernel_drops_seen: u32,
    pub(super) dcc: DccCounters,
    pub(super) sent: Counter,
    send_failed: [SendFailure; SEND_FAILURES.len()],
    /// Packets after the router accepted them.
    pub(super) router: RouterCounters,
    /// Packets that the router held when a capture restarted; part of `packets_lost`.
    pub(super) capture_repeated: Counter,
    pub(super) requests: Counter,
    pub(super) refused: Counter,
    /// Messages of the services that the router rejected.
    pub(super) unsent: Counter,
}

impl StationCounters {
    pub(super) fn new(context: &Context<ItsStation>) -> Self {
        let dropped = |reason: DropReason| (reason, context.counter_for("dropped", reason.label()));
        let skipped = |reason: SkipReason| (reason, context.counter_for("capture_skipped", reason.label()));
        let filtered = |reason: Filtered| (reason, context.counter_for("filtered", reason.label()));
        Self {
            filtered: Filtered::ALL.into_iter().map(filtered).collect(),
            capture_skipped: SkipReason::ALL.into_iter().map(skipped).collect(),
            received: context.counter("received"),
            delivered: context.counter("delivered"),
            relayed: context.counter("relayed"),
            beacons: context.counter("beacons"),
            location_service: context.counter("location_service"),
            dropped: DropReason::ALL.into_iter().map(dropped).collect(),
            kernel_drops: context.counter_for("missed", "kernel_queue_full"),
            kernel_drops_seen: 0,
            dcc: DccCounters::new(context),
            sent: context.counter("sent"),
            send_failed: SEND_FAILURES.map(|(kind, label)| SendFailure {
                kind,
                label,
                counter: context.counter_for("send_failed", label),
                unreported: 0,
            }),
            router: RouterCounters::new(context),
            capture_repeated: context.counter_for("packets_lost", "capture_repeated"),
            requests: context.counter("requests"),
            refused: context.counter("requests_refused"),
            unsent: context.counter("services_refused"),
        }
    }

    /// Adds the increase of the socket's total, which wraps.
    pub(super) fn count_kernel_drops(&mut self, total: u32) {
        self.kernel_drops.add(u64::from(total.wrapping_sub(self.kernel_drops_seen)));
        self.kernel_drops_seen = total;
    }

    /// Counts a record of a capture that has no Ethernet frame.
    pub(super) fn count_skipped(&self, reason: SkipReason) {
        if let Some(counter) = self.capture_skipped.get(&reason) {
            counter.increment();
        }
    }

    pub(super) fn count_filtered(&self, reason: Filtered) {
        if let Some(counter) = self.filtered.get(&reason) {
            counter.increment();
        }
    }

    pub(super) fn count_dropped(&self, reason: DropReason) {
        if let Some(counter) = self.dropped.get(&reason) {
            counter.increment();
        }
    }

    pub(super) fn count_send_failure(&mut self, cause: &io::Error) {
        let matches = |failure: &&mut SendFailure| failure.kind.is_none_or(|kind| kind == cause.kind());
        if let Some(failure) = self.send_failed.iter_mut().find(matches) {
            failure.counter.increment();
            failure.unreported += 1;
        }
    }

    /// Returns the frames that the access layer rejected since the last call.
    pub(super) fn take_send_failures(&mut self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for failure in &mut self.send_failed {
            let count = std::mem::take(&mut failure.unreported);
            if count > 0 {
                losses.push(Loss {
                    description: "the access layer rejected frames",
                    reason: failure.label,
                    explanation: None,
                    count,
                });
            }
        }
        losses
    }
}
