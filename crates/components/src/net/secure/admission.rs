//! Protection from floods: an endpoint computes a key agreement only after the sender has proved its address, and at a limited rate.
//!
//! A cookie is a tag over the sender's address and the handshake, made with a secret that is replaced every few seconds. An
//! endpoint stores nothing for a cookie that it sends. A sender needs the endpoint's public key to compute the tag of a
//! cookie request, so a port scan gets no answer. A request and its answer have the same length.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ring::digest;
use ring::hmac::{self, HMAC_SHA256};
use viaduct_units::Mono;

use super::keys::PublicKey;
use super::limits::{
    COOKIE_SECRET_PERIOD, HANDSHAKE_BURST, HANDSHAKE_INTERVAL, SOURCE_HANDSHAKE_BURST, SOURCE_HANDSHAKE_INTERVAL,
    SOURCES,
};
use super::random::{Random, RandomError, octets};
use super::wire::{HEADER, Handshake, TAG};

/// Octets of an address in a cookie.
const ADDRESS: usize = 18;

/// Returns the key of the tags of cookie requests to an endpoint.
pub(super) fn request_key(of: &PublicKey) -> hmac::Key {
    let mut digest = digest::Context::new(&digest::SHA256);
    digest.update(b"viaduct cookie request 1");
    digest.update(&of.0);
    hmac::Key::new(HMAC_SHA256, digest.finish().as_ref())
}

/// Returns a cookie request.
pub(super) fn request(handshake: Handshake, to: &PublicKey) -> Vec<u8> {
    let header = handshake.request_header();
    [&header, hmac::sign(&request_key(to), &header).as_ref()].concat()
}

/// The secrets from which cookies are made.
#[derive(Debug)]
pub(in crate::net) struct Cookies {
    current: hmac::Key,
    /// The secret before, if it is still valid.
    previous: Option<hmac::Key>,
    since: Mono,
}

impl Cookies {
    pub(in crate::net) fn new(now: Mono, random: &mut dyn Random) -> Result<Self, RandomError> {
        Ok(Self { current: secret(random)?, previous: None, since: now })
    }

    /// Returns the cookie of a handshake from an address.
    pub(super) fn make(&self, from: SocketAddr, handshake: Handshake) -> hmac::Tag {
        self.sign(&subject(from, handshake))
    }

    /// Returns the cookie of a subject: the sender's address and what it has sent.
    pub(in crate::net) fn sign(&self, subject: &[u8]) -> hmac::Tag {
        hmac::sign(&self.current, subject)
    }

    /// Checks a cookie.
    pub(super) fn is_valid(&self, from: SocketAddr, handshake: Handshake, cookie: &[u8; TAG]) -> bool {
        self.verify(&subject(from, handshake), cookie)
    }

    /// Checks the cookie of a subject.
    pub(in crate::net) fn verify(&self, subject: &[u8], cookie: &[u8]) -> bool {
        let secrets = [Some(&self.current), self.previous.as_ref()];
        secrets.into_iter().flatten().any(|secret| hmac::verify(secret, subject, cookie).is_ok())
    }

    /// Replaces the secret if it is old enough.
    ///
    /// # Errors
    /// The source has no random numbers. Then no cookie is valid that is older than it may be.
    pub(in crate::net) fn refresh(&mut self, now: Mono, random: &mut dyn Random) -> Result<(), RandomError> {
        let age = now.since(self.since);
        if age < COOKIE_SECRET_PERIOD {
            return Ok(());
        }
        self.previous = None;
        let retired = std::mem::replace(&mut self.current, secret(random)?);
        self.previous = (age < COOKIE_SECRET_PERIOD * 2).then_some(retired);
        self.since = now;
        Ok(())
    }
}

fn secret(random: &mut dyn Random) -> Result<hmac::Key, RandomError> {
    Ok(hmac::Key::new(HMAC_SHA256, &octets::<32>(random)?))
}

/// Returns the octets for which a cookie is made.
fn subject(from: SocketAddr, handshake: Handshake) -> [u8; ADDRESS + HEADER] {
    let mut subject = [0; ADDRESS + HEADER];
    let (address, rest) = subject.split_at_mut(16);
    let (port, header) = rest.split_at_mut(2);
    address.copy_from_slice(&ipv6(from.ip()));
    port.copy_from_slice(&from.port().to_be_bytes());
    header.copy_from_slice(&handshake.initiation_header());
    subject
}

pub(in crate::net) fn ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// A limit on a rate that permits a burst.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct TokenBucket {
    interval: Duration,
    burst: u32,
    /// Time at which the bucket is full again.
    full_at: Mono,
}

impl TokenBucket {
    pub(in crate::net) const fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst, full_at: Mono(Duration::ZERO) }
    }

    /// Takes a token. Returns `false` if there is none.
    pub(in crate::net) fn take(&mut self, now: Mono) -> bool {
        if self.full_at.since(now) > self.interval.saturating_mul(self.burst.saturating_sub(1)) {
            return false;
        }
        self.full_at = self.full_at.max(now).plus(self.interval);
        true
    }
}

/// The rates of handshakes with addresses without a session.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Rates {
    /// Interval between handshakes, in the long run.
    pub(in crate::net) interval: Duration,
    /// Handshakes at once.
    pub(in crate::net) burst: u32,
    /// Interval between handshakes of one source, in the long run.
    pub(in crate::net) source_interval: Duration,
    /// Handshakes of one source at once.
    pub(in crate::net) source_burst: u32,
}

/// The rates of [`Endpoint`](super::Endpoint).
pub(super) const RATES: Rates = Rates {
    interval: HANDSHAKE_INTERVAL,
    burst: HANDSHAKE_BURST,
    source_interval: SOURCE_HANDSHAKE_INTERVAL,
    source_burst: SOURCE_HANDSHAKE_BURST,
};

/// The limits on handshakes with addresses without a session.
#[derive(Debug)]
pub(in crate::net) struct Admission {
    all: TokenBucket,
    sources: Vec<TokenBucket>,
    /// Key of the hash that selects a source's bucket.
    key: hmac::Key,
}

impl Admission {
    pub(in crate::net) fn new(random: &mut dyn Random, rates: Rates) -> Result<Self, RandomError> {
        let source = TokenBucket::new(rates.source_interval, rates.source_burst);
        let all = TokenBucket::new(rates.interval, rates.burst);
        Ok(Self { all, sources: vec![source; SOURCES], key: secret(random)? })
    }

    /// Admits a handshake with an address. Returns `false` if the rate of the source or of all is reached.
    pub(in crate::net) fn admit(&mut self, now: Mono, from: SocketAddr) -> bool {
        let index = self.bucket(from.ip());
        let source = self.sources.get_mut(index);
        source.is_some_and(|source| source.take(now)) && self.all.take(now)
    }

    fn bucket(&self, address: IpAddr) -> usize {
        let octets = ipv6(address);
        // A host can choose the lower half of its IPv6 address.
        let network = if address.is_ipv4() { &octets[..] } else { &octets[..8] };
        let hash = hmac::sign(&self.key, network);
        hash.as_ref().first().map_or(0, |octet| usize::from(*octet) % SOURCES)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SystemRandom;
    use super::*;

    const HANDSHAKE: Handshake = Handshake { session: 5, number: 6 };

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn cookie(cookies: &Cookies, from: SocketAddr) -> [u8; TAG] {
        cookies.make(from, HANDSHAKE).as_ref().try_into().unwrap()
    }

    #[test]
    fn a_cookie_is_valid_for_its_address_and_its_handshake_only() {
        let cookies = Cookies::new(at(0), &mut SystemRandom::default()).unwrap();
        let from: SocketAddr = "192.0.2.1:4000".parse().unwrap();
        let cookie = cookie(&cookies, from);
        assert!(cookies.is_valid(from, HANDSHAKE, &cookie));
        assert!(!cookies.is_valid("192.0.2.1:4001".parse().unwrap(), HANDSHAKE, &cookie));
        assert!(!cookies.is_valid("192.0.2.2:4000".parse().unwrap(), HANDSHAKE, &cookie));
        assert!(!cookies.is_valid(from, Handshake { session: 6, ..HANDSHAKE }, &cookie));
        assert!(!cookies.is_valid(from, Handshake { number: 5, ..HANDSHAKE }, &cookie));
        let restarted = Cookies::new(at(0), &mut SystemRandom::default()).unwrap();
        assert!(!restarted.is_valid(from, HANDSHAKE, &cookie));
    }

    #[test]
    fn a_cookie_expires_after_one_to_two_periods() {
        let random = &mut SystemRandom::default();
        let from: SocketAddr = "[2001:db8::1]:4000".parse().unwrap();
        let mut cookies = Cookies::new(at(0), random).unwrap();
        let first = cookie(&cookies, from);
        cookies.refresh(at(10), random).unwrap();
        assert!(cookies.is_valid(from, HANDSHAKE, &first));
        cookies.refresh(at(19), random).unwrap();
        assert!(cookies.is_valid(from, HANDSHAKE, &first));
        cookies.refresh(at(20), random).unwrap();
        assert!(!cookies.is_valid(from, HANDSHAKE, &first));
        let last = cookie(&cookies, from);
        cookies.refresh(at(60), random).unwrap();
        assert!(!cookies.is_valid(from, HANDSHAKE, &last), "the secret was not used for more than two periods");
    }

    #[test]
    fn a_bucket_permits_a_burst_and_then_one_per_interval() {
        let mut bucket = TokenBucket::new(Duration::from_secs(1), 3);
        let taken = [100, 100, 100, 100, 101, 101, 102, 110, 110, 110, 110].map(|seconds| bucket.take(at(seconds)));
        assert_eq!(taken, [true, true, true, false, true, false, true, true, true, true, false]);
    }

    #[test]
    fn a_flood_from_one_network_does_not_use_up_the_limit_of_all() {
        let mut admission = Admission::new(&mut SystemRandom::default(), RATES).unwrap();
        let admitted = |admission: &mut Admission, from: &str| admission.admit(at(1), from.parse().unwrap());
        let flood = (0..1000).filter(|host| admitted(&mut admission, &format!("[2001:db8::{host:x}]:4000"))).count();
        assert_eq!(flood, SOURCE_HANDSHAKE_BURST as usize);
        let others = (0..200).filter(|host| admitted(&mut admission, &format!("198.51.100.{host}:4000"))).count();
        assert_eq!(flood + others, HANDSHAKE_BURST as usize);
    }
}
