//! One direction of a link: a bottleneck with a queue, then outages, loss, duplication, delay and reordering.
//!
//! ```text
//! handle_packet -> queue -> serialisation -> outages, loss -> duplication -> delay, jitter -> poll_deliver
//!                    |                           |
//!           queue_full, link_full           outage, lost
//! ```
//!
//! A lost packet has used the bottleneck: it was sent but not received. Each stage applies the settings that are valid
//! when the packet reaches it. So [`Link::set_settings`] changes the rate, loss and delay of packets in the queue, and
//! nothing about packets that have left it.
//!
//! # Correlated jitter
//!
//! The jitter is an autoregressive process of first order: as in tc-netem(8), each value is the previous one times the
//! correlation `r`, plus a new random part. In tc-netem the weights of both add up to one, which multiplies the deviation
//! by `sqrt((1 - r) / (1 + r))`. Here the distribution of the delay is the same for every correlation:
//! - normal: the new part has the weight `sqrt(1 - r^2)`;
//! - uniform: the jitter is the distribution function of such a normal process with the correlation `2 sin(pi r / 6)`;
//! - exponential: the new part is exponential, and zero with the probability `r` (Gaver and Lewis, "First-order
//!   autoregressive gamma sequences and point processes", 1980).
//!
//! # Use
//!
//! **After each [`Link::handle_packet`], and at each [`Link::poll_timeout`], take every packet from [`Link::poll_deliver`].**

mod bottleneck;
mod counters;
mod delay;
mod loss;
mod outages;
pub mod overhead;
mod settings;
mod trace;
mod trace_model;
mod transit;

use bytes::Bytes;
use viaduct_units::{Mono, Rng};

use crate::limits::{LINK_OCTETS_MAX, PACKET_OCTETS_MAX, PACKET_WEIGHT_MIN};
use bottleneck::Queue;
use delay::DelayState;
use loss::LossState;
use outages::OutageState;
use transit::Transit;

pub use bottleneck::Bottleneck;
pub use counters::{LinkCounters, LinkDropReason};
pub use delay::{Correlation, Delay, Jitter, Order};
pub use loss::{Bursts, GilbertElliott, Loss};
pub use outages::{Outage, Outages, PeriodicOutages, RandomOutages};
pub use settings::{LinkSettings, LinkSettingsError, Reorder};
pub use trace::{DeliveryTrace, OPPORTUNITY_OCTETS, TraceError};
pub use trace_model::{TraceModel, Variation};

/// One direction of an emulated link.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    queue: Queue,
    outages: OutageState,
    loss: LossState,
    delay: DelayState,
    random: Randoms,
    /// Packets that have left the bottleneck.
    transit: Transit,
    /// Octets of the packets in the queue and in transit, at most [`LINK_OCTETS_MAX`].
    octets: usize,
    /// Arrival time of the last packet, if packets keep their order.
    last_arrival: Mono,
    counters: LinkCounters,
}

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time of arrival. An emulator that is late returns the packet after it.
    pub due: Mono,
    /// The packet.
    pub packet: Bytes,
}

/// Random numbers of each stage. They are separate, so that a change of the delay does not change which packets are lost.
#[derive(Debug)]
struct Randoms {
    loss: Rng,
    duplicate: Rng,
    delay: Rng,
    outages: Rng,
    reorder: Rng,
}

impl Randoms {
    fn new(seed: u64) -> Self {
        let mut seeds = Rng::new(seed);
        Self {
            loss: seeds.fork(),
            duplicate: seeds.fork(),
            delay: seeds.fork(),
            outages: seeds.fork(),
            reorder: seeds.fork(),
        }
    }
}

impl Link {
    /// Returns an idle link that starts at time zero. The seed determines outages, losses, duplicates and delays.
    ///
    /// # Errors
    /// Returns the invalid setting.
    pub fn new(settings: LinkSettings, seed: u64) -> Result<Self, LinkSettingsError> {
        Self::starting_at(Mono::default(), settings, seed)
    }

    /// Returns an idle link that starts at the given time: its trace begins and its outages count from there.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn starting_at(now: Mono, settings: LinkSettings, seed: u64) -> Result<Self, LinkSettingsError> {
        settings.check()?;
        Ok(Self {
            queue: Queue::starting_at(now),
            outages: OutageState::starting_at(now),
            loss: LossState::default(),
            delay: DelayState::default(),
            random: Randoms::new(seed),
            transit: Transit::default(),
            octets: 0,
            last_arrival: now,
            counters: LinkCounters::default(),
            settings,
        })
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// Changes the settings. The time must not be before that of the last call.
    ///
    /// - Packets that have left the bottleneck arrive at the time that was determined. If packets keep their order, later
    ///   packets do not arrive before them.
    /// - Packets in the queue leave at the new rate. From one rate to another, the bits of the first packet that have been
    ///   sent stay sent. The new loss, delay and so on apply to them.
    /// - If the new capacity of the queue is smaller than its content, no packet is dropped. The queue accepts no further
    ///   packet until there is room.
    /// - If they change, a trace begins anew, and the times of outages count from now on.
    ///
    /// # Errors
    /// The invalid setting. The link continues with the settings that it had.
    pub fn set_settings(&mut self, now: Mono, settings: LinkSettings) -> Result<(), LinkSettingsError> {
        settings.check()?;
        self.send_departed(now);
        self.queue.reschedule(&self.settings.bottleneck, &settings.bottleneck, now);
        if settings.outages != self.settings.outages {
            self.outages = OutageState::starting_at(now);
        }
        if settings.delay.jitter != self.settings.delay.jitter {
            self.delay = DelayState::default();
        }
        self.settings = settings;
        self.send_departed(now);
        Ok(())
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Returns the number of packets in the queue and in transit.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.queue.len() + self.transit.len()
    }

    /// Returns the octets in the queue of the bottleneck at the given time, the packet in transmission included.
    #[must_use]
    pub fn queued_octets(&self, now: Mono) -> usize {
        self.queue.octets(now)
    }

    /// Returns the octets that a packet takes of the rate: its payload, its headers and the link's overhead.
    #[must_use]
    pub fn wire_octets(&self, payload_octets: usize, header_octets: u16) -> usize {
        payload_octets + usize::from(header_octets) + usize::from(self.settings.overhead_octets)
    }

    /// Enters one packet at the sender's end. The time must not decrease from call to call.
    pub fn handle_packet(&mut self, now: Mono, packet: Bytes) {
        self.handle_payload(now, packet, 0);
    }

    /// Enters the payload of one packet, for example a datagram without its IP and UDP headers.
    ///
    /// `header_octets` is the number of octets that the packet has beside the payload: [`overhead::IPV4_UDP`] for a
    /// datagram. They count as if they were part of the packet, except for the limit of its length.
    pub fn handle_payload(&mut self, now: Mono, payload: Bytes, header_octets: u16) {
        self.send_departed(now);
        self.counters.received += 1;
        let (octets, held) = (self.wire_octets(payload.len(), header_octets), weight(&payload));
        if payload.len() > PACKET_OCTETS_MAX {
            return self.counters.count_drop(LinkDropReason::TooLong);
        }
        if self.octets + held > LINK_OCTETS_MAX {
            return self.counters.count_drop(LinkDropReason::LinkFull);
        }
        if !self.queue.admit(&self.settings.bottleneck, now, octets, payload) {
            return self.counters.count_drop(LinkDropReason::QueueFull);
        }
        self.octets += held;
        self.send_departed(now);
    }

    /// Returns the next packet that has arrived at the receiver's end, or `None`.
    pub fn poll_deliver(&mut self, now: Mono) -> Option<Bytes> {
        self.poll_delivery(now).map(|delivery| delivery.packet)
    }

    /// Returns the next packet that has arrived at the receiver's end with its time of arrival, or `None`.
    pub fn poll_delivery(&mut self, now: Mono) -> Option<Delivery> {
        self.send_departed(now);
        let delivery = self.transit.pop_until(now)?;
        self.octets = self.octets.saturating_sub(weight(&delivery.packet));
        self.counters.delivered += 1;
        Some(delivery)
    }

    /// Returns the earliest time at which the next packet may arrive, or `None` if the link is empty.
    ///
    /// A packet does not arrive at that time if it is lost, or if the jitter delays it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let in_transit = self.transit.next_arrival();
        let queued = self.queue.next_departure().map(|departure| {
            let arrival = departure.plus(self.settings.delay.least());
            if self.settings.delay.order == Order::Kept { arrival.max(self.last_arrival) } else { arrival }
        });
        in_transit.into_iter().chain(queued).min()
    }

    /// Passes the packets that have left the bottleneck by the given time to the stages after it.
    fn send_departed(&mut self, now: Mono) {
        while let Some((sent, packet)) = self.queue.pop_departed(now) {
            match self.drop_reason(sent) {
                Some(reason) => {
                    self.octets = self.octets.saturating_sub(weight(&packet));
                    self.counters.count_drop(reason);
                }
                None => self.duplicate_and_delay(sent, packet),
            }
        }
    }

    /// Returns the reason why the next packet does not arrive, or `None` if it does.
    fn drop_reason(&mut self, sent: Mono) -> Option<LinkDropReason> {
        let out = self.outages.covers(&self.settings.outages, sent, &mut self.random.outages);
        let lost = self.loss.loses(&self.settings.loss, &mut self.random.loss);
        if out {
            return Some(LinkDropReason::Outage);
        }
        lost.then_some(LinkDropReason::Lost)
    }

    fn duplicate_and_delay(&mut self, sent: Mono, packet: Bytes) {
        if self.settings.duplicate.draw(&mut self.random.duplicate) {
            self.counters.duplicated += 1;
            if self.octets + weight(&packet) > LINK_OCTETS_MAX {
                self.counters.count_drop(LinkDropReason::LinkFull);
            } else {
                self.octets += weight(&packet);
                self.put_in_transit(sent, packet.clone());
            }
        }
        self.put_in_transit(sent, packet);
    }

    fn put_in_transit(&mut self, sent: Mono, packet: Bytes) {
        let mut arrival = sent.plus(self.delay.draw(&self.settings.delay, sent, &mut self.random.delay));
        if self.settings.delay.order == Order::Kept {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        if self.settings.reorder.share.draw(&mut self.random.reorder) {
            arrival = arrival.plus(self.settings.reorder.by);
        }
        self.transit.push(arrival, packet);
    }
}

/// Returns the octets that a packet counts for in [`LINK_OCTETS_MAX`].
fn weight(packet: &Bytes) -> usize {
    packet.len().max(PACKET_WEIGHT_MIN)
}
