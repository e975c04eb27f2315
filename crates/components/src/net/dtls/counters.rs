//! Counters of DTLS, with the reasons of drops and of ends.

/// Defines reasons with their labels, so that `ALL` is complete.
macro_rules! reasons {
    ($(#[$type_doc:meta])* $type:ident: $($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        $(#[$type_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $name,)*
        }

        impl $type {
            /// All reasons.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// Returns the reason as metrics spell it.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.label())
            }
        }
    };
}

reasons! {
    /// The reason why a received record was dropped. Each drop has exactly one reason and is counted under it.
    DropReason:
    /// The rest of the datagram is not a record, or the record is not permitted in the handshake. Counted once a datagram.
    Malformed => "malformed",
    /// The datagram is not from the server of this client.
    WrongSource => "wrong_source",
    /// The client does not offer `TLS_PSK_WITH_AES_128_CCM_8`, or the `ClientHello` is in several fragments.
    Unsupported => "unsupported",
    /// Too many handshakes, of this source or of all.
    HandshakeRate => "handshake_rate",
    /// There is no session with the sender: it has ended, or this end has restarted.
    NoSession => "no_session",
    /// The record, or the `ClientHello` of the session, was received before.
    Replayed => "replayed",
    /// The record is too far behind the newest one to tell whether it was received before.
    TooOld => "too_old",
    /// The sender does not have the key of the session: the record is forged or damaged, or it has no protection.
    NotAuthentic => "not_authentic",
    /// The answer was not sent, because the system provides no random numbers.
    NoRandom => "no_random",
    /// The payload was dropped, because the owner has not taken earlier ones.
    ReceiveQueueFull => "receive_queue_full",
}

reasons! {
    /// The reason why a handshake has failed or a session has ended. Each end has exactly one reason and is counted under it.
    EndReason:
    /// The peer does not have the key of the identity.
    WrongKey => "wrong_key",
    /// The file has no key for the identity of the client.
    UnknownIdentity => "unknown_identity",
    /// The handshake has not ended in time.
    HandshakeTimeout => "handshake_timeout",
    /// The peer has ended the handshake with an alert. A server does this if the identity or the key is wrong.
    Alert => "alert",
    /// The peer violates the protocol, or needs something that this end does not offer.
    Protocol => "protocol",
    /// The peer has started another handshake.
    Replaced => "replaced",
    /// The peer has closed the session.
    ClosedByPeer => "closed_by_peer",
    /// This end has closed the session.
    Closed => "closed",
    /// Nothing was received for the idle timeout.
    Idle => "idle",
    /// Another handshake or session needed the place.
    Limit => "limit",
    /// The session has reached its limit of records.
    RecordLimit => "record_limit",
}

/// Counters of a server or a client.
///
/// `records` = `payloads` + `handshake_records` + [`dropped_total`](Self::dropped_total).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub datagrams: u64,
    /// Records received, and rests of datagrams that are no records.
    pub records: u64,
    /// Payloads received.
    pub payloads: u64,
    /// Records of handshakes and alerts that were processed.
    pub handshake_records: u64,
    /// Requests for a cookie that were answered. Nothing was stored.
    pub cookies: u64,
    /// Handshakes that were started.
    pub handshakes: u64,
    /// Sessions that have become usable.
    pub sessions: u64,
    /// Payloads sent.
    pub sent: u64,
    /// Payloads of a client that waited for a session which was not established.
    pub unsent: u64,
    /// Datagrams that were not sent because the owner has not taken earlier ones.
    pub transmits_lost: u64,
    /// Events that were lost because the owner has not taken earlier ones.
    pub events_lost: u64,
    dropped: [u64; DropReason::ALL.len()],
    ended: [u64; EndReason::ALL.len()],
}

impl Counters {
    /// Returns the number of records that were dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Returns the number of records that were dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the number of handshakes and sessions that have ended for a reason.
    #[must_use]
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.ended.get(reason as usize).copied().unwrap_or(0)
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    pub(super) fn count_end(&mut self, reason: EndReason) {
        if let Some(count) = self.ended.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
