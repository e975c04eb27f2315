//! The session of one client.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use viaduct_units::{Mono, retransmission::RoundTrip};

use super::{ClientHandle, ClientStatus, GatewaySettings, Token, topics::TopicTable};
use crate::{
    Message, Peer,
    codec::{Connect, Qos, ReturnCode, TopicId},
    limits::{RECENT_MESSAGES, UNPROVEN_OCTETS},
    retry::Retry,
};

/// Part of the keep-alive time or sleep duration for which the gateway waits in addition (MQTT 3.1.1, 3.1.2.10).
const GRACE: f64 = 1.5;
/// Largest factor between the octets of PUBLISH messages to an address that is not proven and those received from it.
const AMPLIFICATION_MAX: usize = 3;
/// Smallest grace.
const GRACE_MIN: Duration = Duration::from_secs(1);

/// State of a session (6.14, figure 4).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// WILLTOPICREQ was sent.
    WillTopic,
    /// WILLMSGREQ was sent. The will has its payload not yet.
    WillMessage(Message),
    /// The broker side has not answered.
    Opening,
    Active,
    Asleep(Duration),
    /// Asleep, and receiving the buffered messages.
    Awake(Duration),
    Disconnected,
}

impl State {
    pub(super) const fn status(&self) -> ClientStatus {
        match self {
            Self::WillTopic | Self::WillMessage(_) | Self::Opening => ClientStatus::Connecting,
            Self::Active => ClientStatus::Active,
            Self::Asleep(_) => ClientStatus::Asleep,
            Self::Awake(_) => ClientStatus::Awake,
            Self::Disconnected => ClientStatus::Disconnected,
        }
    }

    /// Returns `true` while CONNECT is being processed.
    pub(super) const fn is_connecting(&self) -> bool {
        matches!(self, Self::WillTopic | Self::WillMessage(_) | Self::Opening)
    }

    /// Returns `true` if messages can be sent to the client.
    pub(super) const fn is_reachable(&self) -> bool {
        matches!(self, Self::Active | Self::Awake(_))
    }

    /// Returns `true` if the client is connected, awake or not.
    pub(super) const fn is_connected(&self) -> bool {
        matches!(self, Self::Active | Self::Asleep(_) | Self::Awake(_))
    }
}

/// Session of a client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) handle: ClientHandle,
    pub(super) client_id: Arc<str>,
    pub(super) peer: Peer,
    pub(super) state: State,
    /// Time at which the state was entered.
    pub(super) entered: Mono,
    /// Time of the last datagram.
    pub(super) last_seen: Mono,
    /// `true` if a datagram has followed CONNACK at any time: the client is not forged.
    pub(super) confirmed: bool,
    /// `true` if the client has answered a message id of the gateway: its address is not forged.
    pub(super) proven: bool,
    /// Octets received from the address, and sent to it in PUBLISH messages.
    pub(super) octets: Traffic,
    /// `true` if nothing has followed CONNECT: CONNACK may be lost.
    pub(super) only_connect: bool,
    /// CleanSession of the last CONNECT. One that ends the sleep does not change `clean`.
    pub(super) connect_clean: bool,
    pub(super) clean: bool,
    pub(super) keep_alive: Duration,
    pub(super) will: Option<Message>,
    /// `true` if the gateway publishes the will, and not the broker.
    pub(super) holds_will: bool,
    pub(super) topics: TopicTable,
    pub(super) subscriptions: Vec<Subscription>,
    /// SUBSCRIBE and UNSUBSCRIBE that wait for the broker.
    pub(super) requests: Vec<Request>,
    /// The last SUBACK, in case it is lost.
    pub(super) last_suback: Option<SubAckMemo>,
    /// Messages of the client that are not finished.
    pub(super) inbound: VecDeque<Inbound>,
    /// Messages of the client with QoS 1 that were acknowledged.
    pub(super) recent: Recent,
    /// Messages to the client. The flight concerns the first one.
    pub(super) queue: VecDeque<Outgoing>,
    pub(super) queue_octets: usize,
    pub(super) flight: Option<Flight>,
    pub(super) next_number: u32,
    pub(super) next_message: u16,
    pub(super) round_trip: RoundTrip,
}

/// Octets of both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) received: usize,
    pub(super) published: usize,
}

/// A subscription of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subscription {
    pub(super) filter: Arc<str>,
    pub(super) qos: Qos,
    /// Time of the subscription, or `None` if it is restored.
    pub(super) since: Option<Mono>,
}

/// A SUBSCRIBE or UNSUBSCRIBE that waits for the broker.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) number: u32,
    /// Message id, or `None` if the gateway renews a subscription.
    pub(super) message: Option<u16>,
    pub(super) filter: Arc<str>,
    /// Topic id for SUBACK, or `None` for an UNSUBSCRIBE.
    pub(super) topic: Option<u16>,
}

/// A SUBACK that was sent.
#[derive(Clone, Debug)]
pub(super) struct SubAckMemo {
    pub(super) filter: Arc<str>,
    pub(super) message: u16,
    pub(super) topic: u16,
    pub(super) qos: Qos,
    pub(super) code: ReturnCode,
}

/// A message of the client with QoS 1 or 2 that is not finished.
#[derive(Clone, Debug)]
pub(super) struct Inbound {
    pub(super) number: u32,
    pub(super) message_id: u16,
    pub(super) topic: TopicId,
    /// Time of arrival.
    pub(super) since: Mono,
    pub(super) qos: Qos,
    pub(super) fingerprint: u64,
    /// `true` if PUBACK or PUBREC was sent.
    pub(super) acknowledged: bool,
    /// The message until the broker has confirmed it.
    pub(super) message: Option<Message>,
    /// `true` if PUBREL has arrived, or if the quality of service has none.
    pub(super) released: bool,
    /// `true` if the message is in the storage, or about to be.
    pub(super) recorded: bool,
}

impl Inbound {
    pub(super) const fn is_finished(&self) -> bool {
        self.acknowledged && self.message.is_none() && self.released
    }

    /// Returns `true` if the client relies on the gateway to publish the message.
    pub(super) const fn is_owed(&self) -> bool {
        self.acknowledged && self.message.is_some()
    }
}

/// Messages with QoS 1 that were acknowledged: message id and fingerprint of the content.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    entries: VecDeque<(u16, u64)>,
}

impl Recent {
    pub(super) fn push(&mut self, message: u16, fingerprint: u64) {
        if self.entries.len() >= RECENT_MESSAGES {
            self.entries.pop_front();
        }
        self.entries.push_back((message, fingerprint));
    }

    pub(super) fn contains(&self, message: u16, fingerprint: u64) -> bool {
        self.entries.contains(&(message, fingerprint))
    }
}

/// A message to the client.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) number: u32,
    /// Message id; 0 for QoS 0.
    pub(super) message_id: u16,
    pub(super) message: Message,
    /// The caller's number, until the result was reported.
    pub(super) delivery: Option<u64>,
    /// `true` if the message is in the storage, or about to be.
    pub(super) recorded: bool,
    /// `true` if the message was sent before.
    pub(super) sent: bool,
    /// `true` if PUBREC has arrived.
    pub(super) received: bool,
    /// Number of answers with an invalid topic id.
    pub(super) invalid_topic: u8,
}

/// Step of the first message of the queue that waits for the client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flight {
    Register {
        message: u16,
        topic: u16,
        retry: Retry,
    },
    Publish(Retry),
    Release(Retry),
    /// The client has answered with congestion.
    Congested(Mono),
}

impl Flight {
    fn due(&self) -> Mono {
        match self {
            Self::Register { retry, .. } | Self::Publish(retry) | Self::Release(retry) => retry.due,
            Self::Congested(until) => *until,
        }
    }
}

impl Session {
    pub(super) fn new(handle: ClientHandle, client_id: Arc<str>, peer: Peer, now: Mono, next_message: u16) -> Self {
        Self {
            handle,
            client_id,
            peer,
            state: State::Opening,
            entered: now,
            last_seen: now,
            confirmed: false,
            proven: false,
            octets: Traffic::default(),
            only_connect: true,
            connect_clean: true,
            clean: true,
            keep_alive: Duration::ZERO,
            will: None,
            holds_will: false,
            topics: TopicTable::default(),
            subscriptions: Vec::new(),
            requests: Vec::new(),
            last_suback: None,
            inbound: VecDeque::new(),
            recent: Recent::default(),
            queue: VecDeque::new(),
            queue_octets: 0,
            flight: None,
            next_number: 0,
            next_message,
            round_trip: RoundTrip::default(),
        }
    }

    pub(super) fn enter(&mut self, now: Mono, state: State) {
        self.state = state;
        self.entered = now;
    }

    /// Returns the next number of a request or message of this session.
    pub(super) fn take_number(&mut self) -> u32 {
        self.next_number = self.next_number.wrapping_add(1);
        self.next_number
    }

    pub(super) fn token(&self, number: u32) -> Token {
        Token { client: self.handle, number }
    }

    /// Returns the next message id for a message to the client, 1 to 65,535.
    pub(super) fn take_message_id(&mut self) -> u16 {
        self.next_message = self.next_message.checked_add(1).unwrap_or(1);
        self.next_message
    }

    /// Returns `true` if a CONNECT may be a repetition of the one that has begun the connection.
    pub(super) fn is_begun_by(&self, connect: &Connect<'_>) -> bool {
        self.connect_clean == connect.clean && self.keep_alive == Duration::from_secs(connect.duration.into())
    }

    /// Returns `true` if the client relies on the gateway to publish a message.
    pub(super) fn owes_broker(&self) -> bool {
        self.inbound.iter().any(Inbound::is_owed)
    }

    /// Records the arrival of a message that follows CONNACK.
    pub(super) const fn confirm(&mut self) {
        self.confirmed = true;
        self.only_connect = false;
    }

    /// Returns `true` if a PUBLISH of a number of octets does not make the gateway amplify an attack.
    pub(super) fn may_receive(&self, octets: usize) -> bool {
        let Traffic { received, published } = self.octets;
        self.proven || published + octets <= received.saturating_mul(AMPLIFICATION_MAX).saturating_add(UNPROVEN_OCTETS)
    }

    /// Changes the address, which is not proven.
    pub(super) fn set_peer(&mut self, peer: Peer) -> Peer {
        if peer != self.peer {
            self.proven = false;
            self.octets = Traffic::default();
        }
        std::mem::replace(&mut self.peer, peer)
    }

    /// Returns the time at which the state ends without a datagram.
    pub(super) fn expiry(&self, settings: &GatewaySettings) -> Mono {
        match self.state {
            State::WillTopic | State::WillMessage(_) | State::Opening => {
                self.entered.plus(settings.connecting_time_max)
            }
            State::Active => self.last_seen.plus(with_grace(self.keep_alive, settings)),
            State::Asleep(duration) | State::Awake(duration) => self.last_seen.plus(with_grace(duration, settings)),
            State::Disconnected => self.entered.plus(settings.session_expiry),
        }
    }

    /// Returns the time of the next work without a datagram.
    pub(super) fn due(&self, settings: &GatewaySettings) -> Mono {
        let expiry = self.expiry(settings);
        self.flight.as_ref().map_or(expiry, |flight| flight.due().min(expiry))
    }
}

/// Returns a keep-alive time or sleep duration with its grace. Zero means the longest one.
fn with_grace(duration: Duration, settings: &GatewaySettings) -> Duration {
    let duration = if duration.is_zero() { settings.keep_alive_max } else { duration.min(settings.keep_alive_max) };
    duration.mul_f64(GRACE).max(duration + GRACE_MIN)
}
