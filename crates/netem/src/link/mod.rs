//! One direction of a link: a bottleneck with a queue, then loss, duplication and delay.
//!
//! ```text
//! handle_packet -> queue -> serialisation -> loss -> duplication -> delay, jitter -> poll_deliver
//!                    |                        |                        |
//!                 queue_full                 lost                  link_full
//! ```
//!
//! A lost packet has used the bottleneck: it was sent but not received. The fate of a packet is determined when it
//! enters, since no later packet can overtake it in the queue.
//!
//! **After each [`Link::handle_packet`], and at each [`Link::poll_timeout`], take every packet from [`Link::poll_deliver`].**

mod bottleneck;
mod counters;
mod delay;
mod loss;
mod settings;
mod trace;

use std::{cmp::Reverse, collections::BinaryHeap};

use bytes::Bytes;
use viaduct_units::{Mono, Rng};

use crate::limits::{LINK_OCTETS_MAX, PACKET_OCTETS_MAX, PACKET_WEIGHT_MIN};
use bottleneck::Queue;
use loss::LossState;

pub use bottleneck::Bottleneck;
pub use counters::{LinkCounters, LinkDropReason};
pub use delay::{Delay, Jitter, Order};
pub use loss::{GilbertElliott, Loss};
pub use settings::{LinkSettings, LinkSettingsError};
pub use trace::{DeliveryTrace, OPPORTUNITY_OCTETS, TraceError};

/// One direction of an emulated link.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    queue: Queue,
    loss: LossState,
    /// Random numbers of the loss model. They are separate, so that a change of the delay does not change which packets
    /// are lost.
    loss_random: Rng,
    /// Random numbers for duplication.
    duplicate_random: Rng,
    /// Random numbers for the jitter.
    delay_random: Rng,
    /// Packets in transit, the next to arrive first.
    travelling: BinaryHeap<Reverse<Travelling>>,
    /// Octets of `travelling`, at most [`LINK_OCTETS_MAX`].
    travelling_octets: usize,
    /// Number of packets that entered transit; it orders packets with equal arrival times.
    sequence: u64,
    /// Arrival time of the last packet, if packets keep their order.
    last_arrival: Mono,
    counters: LinkCounters,
}

/// A packet in transit, ordered by arrival, then by the order of sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Travelling {
    arrival: Mono,
    sequence: u64,
    packet: Bytes,
}

impl Link {
    /// Returns an idle link. The seed determines losses, duplicates and delays.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: LinkSettings, seed: u64) -> Result<Self, LinkSettingsError> {
        settings.check()?;
        let mut random = Rng::new(seed);
        Ok(Self {
            queue: Queue::default(),
            loss: LossState::default(),
            loss_random: random.fork(),
            duplicate_random: random.fork(),
            delay_random: random.fork(),
            travelling: BinaryHeap::new(),
            travelling_octets: 0,
            sequence: 0,
            last_arrival: Mono::default(),
            counters: LinkCounters::default(),
            settings,
        })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Returns the octets in the queue of the bottleneck at the given time, the packet in transmission included.
    #[must_use]
    pub fn queued_octets(&self, now: Mono) -> usize {
        self.queue.octets(now)
    }

    /// Enters one packet at the sender's end. The time must not decrease from call to call.
    pub fn handle_packet(&mut self, now: Mono, packet: Bytes) {
        self.counters.received += 1;
        if packet.len() > PACKET_OCTETS_MAX {
            return self.counters.count_drop(LinkDropReason::TooLong);
        }
        let Some(sent) = self.queue.admit(&self.settings.bottleneck, now, packet.len()) else {
            return self.counters.count_drop(LinkDropReason::QueueFull);
        };
        if self.loss.loses(&self.settings.loss, sent, &mut self.loss_random) {
            return self.counters.count_drop(LinkDropReason::Lost);
        }
        if self.settings.duplicate.draw(&mut self.duplicate_random) {
            self.counters.duplicated += 1;
            self.put_on_its_way(sent, packet.clone());
        }
        self.put_on_its_way(sent, packet);
    }

    /// Returns the next packet that has arrived at the receiver's end, or `None`.
    pub fn poll_deliver(&mut self, now: Mono) -> Option<Bytes> {
        self.travelling.peek().filter(|Reverse(next)| next.arrival <= now)?;
        let Reverse(next) = self.travelling.pop()?;
        self.travelling_octets = self.travelling_octets.saturating_sub(weight(&next.packet));
        self.counters.delivered += 1;
        Some(next.packet)
    }

    /// Returns the arrival time of the next packet, or `None` if none is in transit.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.travelling.peek().map(|Reverse(next)| next.arrival)
    }

    fn put_on_its_way(&mut self, sent: Mono, packet: Bytes) {
        let octets = self.travelling_octets + weight(&packet);
        if octets > LINK_OCTETS_MAX {
            return self.counters.count_drop(LinkDropReason::LinkFull);
        }
        let mut arrival = sent.plus(self.settings.delay.draw(&mut self.delay_random));
        if self.settings.delay.order == Order::Kept {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        self.travelling_octets = octets;
        self.sequence += 1;
        self.travelling.push(Reverse(Travelling { arrival, sequence: self.sequence, packet }));
    }
}

/// Returns the octets that a packet counts for in [`LINK_OCTETS_MAX`].
fn weight(packet: &Bytes) -> usize {
    packet.len().max(PACKET_WEIGHT_MIN)
}
