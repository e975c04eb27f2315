//! Counters of an endpoint, with the reasons of drops.

/// Defines the reasons with their labels, so that `ALL` is complete.
macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// The reason why a received datagram was dropped. Each drop has exactly one reason and is counted under it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason {
            $($(#[$doc])* $name,)*
        }

        impl DropReason {
            /// All reasons, in the order of processing.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// Returns the reason as metrics spell it.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The datagram is shorter than its type requires, or longer than a handshake message.
    WrongLength => "wrong_length",
    /// The type or the version of the message is unknown.
    UnknownType => "unknown_type",
    /// The cookie is not one that this endpoint has sent to this address in the last seconds.
    CookieInvalid => "cookie_invalid",
    /// Too many handshakes, of this source, of this peer or of all.
    HandshakeRate => "handshake_rate",
    /// The sender's public key is none of the peers'.
    UnknownKey => "unknown_key",
    /// No session has the identifier: it has ended, or this endpoint has restarted.
    NoSession => "no_session",
    /// A cookie or a response for no handshake under way.
    NoHandshake => "no_handshake",
    /// The datagram, or the initiation of a handshake, was received before.
    Replayed => "replayed",
    /// The counter is too far behind the highest one to tell whether the datagram was received before.
    TooOld => "too_old",
    /// The session has reached its limit of datagrams.
    CounterLimit => "counter_limit",
    /// The sender does not have the key: the datagram is forged or damaged.
    NotAuthentic => "not_authentic",
    /// The answer was not sent, because the system provides no random numbers.
    NoRandom => "no_random",
    /// The answer was not sent, because the owner has not taken earlier datagrams.
    TransmitQueueFull => "transmit_queue_full",
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

/// Counters of an endpoint.
///
/// `received` = `opened` + `empty` + `handshake_messages` + [`dropped_total`](Self::dropped_total).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Payloads opened and returned.
    pub opened: u64,
    /// Authentic datagrams without a payload.
    pub empty: u64,
    /// Messages of handshakes that were processed.
    pub handshake_messages: u64,
    /// Payloads sealed.
    pub sealed: u64,
    /// Payloads that were not sealed, because there was no session or the payload was too long.
    pub unsealed: u64,
    /// Handshakes that this endpoint has started.
    pub handshakes_started: u64,
    /// Key agreements computed for received initiations.
    pub key_agreements: u64,
    /// Sessions that have become usable.
    pub sessions: u64,
    /// Changes of a peer's address during a session.
    pub moves: u64,
    /// Events that were lost because the owner has not taken earlier ones.
    pub events_lost: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Returns the number of datagrams that were dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Returns the number of datagrams that were dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
