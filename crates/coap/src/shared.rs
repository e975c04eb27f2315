//! State that all peers of a machine share, and the messages between the layers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::{Mono, Rng};

use crate::budget::{Budget, Totals};
use crate::codec::{BlockSize, Code, OptionNumber, Token, WriteError, Writer, option_octets};
use crate::{Counters, DropReason, Event, Options, Resource, Settings};

/// State of a machine that does not belong to one peer.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) random: Rng,
    pub(crate) events: VecDeque<Event>,
    /// Messages of the request layer, for the transport.
    pub(crate) outgoing: VecDeque<Outgoing>,
    pub(crate) counters: Counters,
    /// Bodies and observations of all peers.
    pub(crate) totals: Totals,
    /// Messages of all peers that are remembered to detect duplicates.
    pub(crate) remembered: Budget,
    /// Sizes of blocks and messages.
    pub(crate) sizes: Sizes,
    /// Time to wait for an answer of the peer that is addressed. Only Q-Block uses it.
    pub(crate) wait: Duration,
    /// When the request layer sent the messages whose answer has arrived.
    pub(crate) measured: Option<Mono>,
    /// `true` on a reliable transport.
    pub(crate) reliable: bool,
    /// Datagrams to send.
    pub(crate) transmits: VecDeque<(SocketAddr, Bytes)>,
    /// Resources of `/.well-known/core`.
    pub(crate) resources: Vec<Resource>,
}

impl Core {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        Self {
            sizes: Sizes::of_datagrams(settings.block_size),
            wait: settings.retransmission.first,
            totals: Totals::new(&settings.limits),
            remembered: Budget::new(settings.limits.remembered),
            transmits: VecDeque::new(),
            measured: None,
            reliable: false,
            settings,
            random: Rng::new(seed),
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
            counters: Counters::default(),
            resources: Vec::new(),
        }
    }

    /// Queues a datagram.
    pub(crate) fn transmit(&mut self, to: SocketAddr, datagram: Bytes) {
        self.counters.sent += 1;
        self.counters.octets_sent += datagram.len() as u64;
        self.transmits.push_back((to, datagram));
    }

    pub(crate) fn drop_one(&mut self, reason: DropReason) {
        self.counters.drop_one(reason);
    }

    /// Returns a random token of the length of the settings.
    pub(crate) fn token(&mut self) -> Token {
        let octets = self.random.next_u64().to_be_bytes();
        let length = usize::from(self.settings.token_octets).min(octets.len());
        octets.get(..length).and_then(Token::new).unwrap_or_default()
    }
}

/// Sizes of the messages to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Octets of a body up to which it is sent without blocks.
    pub(crate) whole: usize,
    /// Size of the blocks of larger bodies.
    pub(crate) block: BlockSize,
    /// Octets of a message of the size [`BlockSize::BERT`], a multiple of 1024.
    pub(crate) bert_octets: usize,
}

impl Sizes {
    pub(crate) fn of_datagrams(block: BlockSize) -> Self {
        let block = block.min(BlockSize::LARGEST);
        Self { whole: block.octets(), block, bert_octets: BlockSize::LARGEST.octets() }
    }

    /// Returns the octets of a body that a message of this block size carries.
    pub(crate) fn octets(&self, size: BlockSize) -> usize {
        if size == BlockSize::BERT { self.bert_octets } else { size.octets() }
    }
}

/// Owner of a message: the layers report the acknowledgement or failure of the message with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An own request.
    Request(u32),
    /// A response.
    Response,
    /// A notification of an observation.
    Notification(u32),
    /// A ping of the owner.
    Ping(u32),
    /// A ping that verifies the address of the peer.
    Verification,
}

/// The received message that a response answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Message ID.
    pub(crate) id: u16,
    pub(crate) confirmable: bool,
    /// Octets of the datagram.
    pub(crate) octets: usize,
    /// Octets that the response may have.
    pub(crate) limit: usize,
    /// `true` for a method without effects, GET or FETCH.
    pub(crate) safe: bool,
}

/// Form in which a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// As a message of its own.
    Message {
        /// `true` for a confirmable message.
        confirmable: bool,
    },
    /// As answer to a received message.
    Reply(Origin),
}

/// A message of the request layer.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) purpose: Purpose,
    pub(crate) route: Route,
    pub(crate) code: Code,
    pub(crate) token: Token,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
}

impl Outgoing {
    /// Returns the octets of options, payload marker and payload.
    pub(crate) fn body_octets(&self) -> usize {
        let mut before = OptionNumber(0);
        let mut octets = 0;
        for (number, value) in self.options.iter() {
            octets += option_octets(before, number, value.len());
            before = number;
        }
        octets + if self.payload.is_empty() { 0 } else { 1 + self.payload.len() }
    }

    pub(crate) fn write_body(&self, writer: &mut Writer<'_>) -> Result<(), WriteError> {
        self.options.iter().try_for_each(|(number, value)| writer.option(number, value))?;
        writer.payload(&self.payload)
    }
}
