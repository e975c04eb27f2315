//! Repetition of a source's packets, EN 302 636-4-1, annex J.2 and the last step of each source operation.

use std::time::Duration;

use viaduct_units::Mono;

use super::{
    Router,
    forwarding::Decision,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    Destination, DropReason, Repetition,
    limits::{REPETITIONS_MAX, TRANSMITS_MAX},
    send_error::SendError,
};

/// The content of a repetition.
#[derive(Clone, Debug)]
pub(super) enum Repeated {
    /// A multi-hop broadcast, repeated unchanged with its sequence number: stations that have it drop it as a
    /// duplicate.
    Packet(Pdu, Route),
    /// A single-hop broadcast or a unicast, built again each time. It then contains the current position of this
    /// station, and a unicast is sent to the current position of its destination.
    Request(GnRequest, Destination),
}

/// A repeated packet.
#[derive(Debug)]
pub(super) struct Repeating {
    due: Mono,
    until: Mono,
    interval: Duration,
    what: Repeated,
}

impl Router {
    /// Checks that the repetition is permitted and that there is room for it.
    pub(super) fn check_repetition(
        &self,
        request: &GnRequest,
        destination: Destination,
        repetition: Option<Repetition>,
    ) -> Result<(), SendError> {
        let Some(Repetition { interval, duration }) = repetition else { return Ok(()) };
        let minimum = self.mib.min_packet_repetition_interval.max(Duration::from_millis(1));
        if interval < minimum {
            return Err(SendError::RepetitionInterval { interval, minimum });
        }
        let lifetime = request.lifetime.duration();
        if destination.repeats_same_packet() && duration > lifetime {
            return Err(SendError::RepetitionDuration { duration, lifetime });
        }
        if self.repetitions.len() >= REPETITIONS_MAX { Err(SendError::RepetitionsFull) } else { Ok(()) }
    }

    pub(super) fn repeat(&mut self, now: Mono, repetition: Option<Repetition>, what: Repeated) {
        let Some(Repetition { interval, duration }) = repetition else { return };
        let (due, until) = (now.plus(interval), now.plus(duration));
        if due <= until {
            self.repetitions.push(Repeating { due, until, interval, what });
        }
    }

    /// Returns the time of the next repetition.
    pub(super) fn next_repetition(&self) -> Option<Mono> {
        self.repetitions.iter().map(|repeating| repeating.due).min()
    }

    pub(super) fn repeat_due(&mut self, now: Mono) {
        for mut repeating in std::mem::take(&mut self.repetitions) {
            if repeating.due <= now && self.transmits.len() < TRANSMITS_MAX {
                self.send_again(now, &repeating.what);
                repeating.advance(now);
            }
            if repeating.due <= repeating.until && !repeating.is_over(now) {
                self.repetitions.push(repeating);
            }
        }
    }

    /// Returns `true` if the packet is still stored since its last transmission.
    fn is_stored(&self, now: Mono, what: &Repeated) -> bool {
        match what {
            Repeated::Packet(pdu, route) => self.decide(now, pdu, route, None) == Ok(Decision::Store),
            Repeated::Request(request, _) => request.class.store_carry_forward() && !self.table.has_neighbour(now),
        }
    }

    fn send_again(&mut self, now: Mono, what: &Repeated) {
        if self.is_stored(now, what) {
            return;
        }
        let sent = match what {
            Repeated::Packet(pdu, route) => self.emit(now, pdu.clone(), *route),
            Repeated::Request(request, Destination::Station(address)) => self.send_guc(now, request, *address),
            Repeated::Request(request, _) => self.send_shb(now, request),
        };
        match sent {
            Ok(()) => self.counters.repetitions += 1,
            Err(SendError::NotSent(reason)) => self.counters.count_not_repeated(reason),
            // After the first transmission, a missing position is the only possible error.
            Err(_) => self.counters.count_not_repeated(DropReason::OwnPositionUnknown),
        }
    }
}

impl Repeating {
    /// Schedules the next repetition. Missed repetitions are not made up for.
    fn advance(&mut self, now: Mono) {
        let next = self.due.plus(self.interval);
        self.due = if next > now { next } else { now.plus(self.interval) };
    }

    /// Returns `true` if the repetition has ended, at the latest with the lifetime of the packet.
    fn is_over(&self, now: Mono) -> bool {
        matches!(&self.what, Repeated::Packet(pdu, _) if pdu.expires() <= now)
    }
}
