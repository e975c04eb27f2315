//! The other end of datagrams that nothing protects: it is known by its address.

use std::net::SocketAddr;
use std::time::Duration;

use viaduct_units::Mono;

/// Time without datagrams after which another address of the peer is accepted.
const PEER_SILENCE: Duration = Duration::from_millis(300);

/// The address of the other end.
#[derive(Debug)]
pub(super) enum Peer {
    /// A configured address.
    Fixed(SocketAddr),
    /// The address from which the latest datagrams came.
    Learned(Option<(SocketAddr, Mono)>),
}

impl Peer {
    /// Returns `true` if a datagram from this address is one of the peer.
    pub(super) fn admits(&mut self, from: SocketAddr, now: Mono) -> bool {
        match self {
            Self::Fixed(peer) => *peer == from,
            Self::Learned(Some((peer, latest))) if *peer != from && now.since(*latest) < PEER_SILENCE => false,
            Self::Learned(peer) => {
                *peer = Some((from, now));
                true
            }
        }
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Fixed(peer) => Some(*peer),
            Self::Learned(peer) => peer.map(|(peer, _)| peer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn a_second_address_is_refused_while_the_first_one_sends() {
        let (one, two) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
        let mut peer = Peer::Learned(None);
        assert!(peer.address().is_none() && peer.admits(one, at(0)) && peer.admits(one, at(200)));
        assert!(!peer.admits(two, at(499)));
        assert_eq!(peer.address(), Some(one));
        assert!(peer.admits(two, at(500)) && !peer.admits(one, at(501)));
    }
}
