//! Admission of connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use viaduct_bus::{Bus, Counter, clock};
use viaduct_units::RateLimiter;

use super::descriptors;

/// Log lines about refused connections.
const LOGGED_PER_SECOND: u32 = 1;

/// Share of a loopback address, in multiples of that of another address.
const LOOPBACK_SHARES: usize = 3;

/// Limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Largest number of connections at the same time.
    pub connections_max: usize,
    /// Largest number of them from one IPv4 address, or one IPv6 prefix of 64 bits. A loopback address may have three times as many,
    /// because all programs of the machine and a proxy have the same.
    pub per_address_max: usize,
}

impl GateLimits {
    /// Returns the limits of a listener of which one address may use a quarter, and a loopback address three quarters.
    #[must_use]
    pub const fn new(connections_max: usize) -> Self {
        Self { connections_max, per_address_max: connections_max.div_ceil(4) }
    }
}

/// Admits the connections of a listener.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

/// The place of a connection. Dropping it admits another one.
pub struct Place {
    shared: Arc<Shared>,
    source: IpAddr,
}

struct Shared {
    component: String,
    limits: GateLimits,
    refused: [Counter; Refusal::ALL.len()],
    state: Mutex<State>,
}

struct State {
    open: usize,
    by_source: HashMap<IpAddr, usize>,
    logged: RateLimiter,
}

/// Reason for which a connection is refused.
#[derive(Clone, Copy)]
enum Refusal {
    Connections,
    Address,
    Descriptors,
}

impl Refusal {
    const ALL: [Self; 3] = [Self::Connections, Self::Address, Self::Descriptors];

    const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections_max",
            Self::Address => "per_address_max",
            Self::Descriptors => "file_descriptors",
        }
    }
}

impl Gate {
    /// Returns the gate of a listener of a component, whose counters `connections_refused` belong to the component.
    ///
    /// A listener has at most half of the descriptors of the process, so that a flood of connections leaves room for the others.
    #[must_use]
    pub fn new(bus: &Bus, component: &str, limits: GateLimits) -> Self {
        let connections_max = limits.connections_max.min(descriptors::available() / 2);
        // A quarter of the connections for one address must stay one.
        let per_address_max = limits.per_address_max.min(connections_max.div_ceil(4));
        Self(Arc::new(Shared {
            component: component.to_owned(),
            limits: GateLimits { connections_max, per_address_max },
            refused: Refusal::ALL.map(|refusal| bus.counter(component, "connections_refused", Some(refusal.name()))),
            state: Mutex::new(State {
                open: 0,
                by_source: HashMap::new(),
                logged: RateLimiter::new(LOGGED_PER_SECOND),
            }),
        }))
    }

    /// Admits an accepted connection, or counts and logs why it is refused. The caller then closes it.
    #[must_use]
    pub fn admit(&self, connection: &impl AsFd, peer: SocketAddr) -> Option<Place> {
        let source = source(peer.ip());
        let mut state = self.0.state();
        let of_source = state.by_source.get(&source).copied().unwrap_or(0);
        let share = if source.is_loopback() { LOOPBACK_SHARES } else { 1 };
        let refusal = if descriptors::is_reserved(connection) {
            Refusal::Descriptors
        } else if state.open >= self.0.limits.connections_max {
            Refusal::Connections
        } else if of_source >= self.0.limits.per_address_max.saturating_mul(share) {
            Refusal::Address
        } else {
            state.open += 1;
            *state.by_source.entry(source).or_default() += 1;
            return Some(Place { shared: Arc::clone(&self.0), source });
        };
        self.0.refuse(&mut state, refusal, peer);
        None
    }

    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.0.state().open
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self, state: &mut State, refusal: Refusal, peer: SocketAddr) {
        self.refused[refusal as usize].increment();
        if let Some(connections) = state.logged.admit(clock::mono()) {
            let (component, limit) = (&self.component, refusal.name());
            tracing::warn!(component, connections, limit, %peer, "connections are refused");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.open -= 1;
        if let Some(count) = state.by_source.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                state.by_source.remove(&self.source);
            }
        }
    }
}

/// Returns what counts as one address.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn gate(connections_max: usize, per_address_max: usize) -> (Gate, Bus, UdpSocket) {
        let bus = Bus::new("test");
        let gate = Gate::new(&bus, "it", GateLimits { connections_max, per_address_max });
        (gate, bus, UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    fn refused(bus: &Bus) -> Vec<u64> {
        let snapshot = bus.snapshot();
        let of = |reason: &str| {
            let found = snapshot.counters.iter().find(|counter| counter.reason.as_deref() == Some(reason));
            found.map_or(0, |counter| counter.value)
        };
        Refusal::ALL.map(|refusal| of(refusal.name())).to_vec()
    }

    #[test]
    fn connections_are_limited_in_total_and_per_address() {
        let (gate, bus, socket) = gate(8, 2);
        let admit = |address: &str| gate.admit(&socket, address.parse().unwrap());
        let first = admit("192.0.2.1:1");
        let second = admit("192.0.2.1:2");
        assert!(first.is_some() && second.is_some() && admit("192.0.2.1:3").is_none());
        let others: Vec<_> = (1..=6).map(|port| admit(&format!("127.0.0.1:{port}"))).collect();
        assert!(others.iter().all(Option::is_some) && admit("192.0.2.2:1").is_none());
        assert_eq!(refused(&bus), [1, 1, 0]);
        drop(first);
        assert!(admit("192.0.2.1:3").is_some());
        drop((second, others));
        assert_eq!(gate.open(), 0);
    }

    #[test]
    fn one_ipv6_network_and_mapped_addresses_count_as_one_address() {
        let (gate, _bus, socket) = gate(4, 1);
        let admit = |address: &str| gate.admit(&socket, address.parse().unwrap());
        let _first = admit("[2001:db8::1]:1").unwrap();
        assert!(admit("[2001:db8::2]:1").is_none() && admit("[2001:db8:0:1::1]:1").is_some());
        let _mapped = admit("[::ffff:192.0.2.1]:1").unwrap();
        assert!(admit("192.0.2.1:1").is_none());
    }
}
