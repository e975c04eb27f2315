//! The key agreement: Noise IK with X25519, AES-256-GCM and SHA-256.
//!
//! IK needs one round trip, and hides the initiator's identity from all but the responder. The cipher suite is fixed;
//! another one would be another version of the messages.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState, StatelessTransportState};
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::keys::{KEY_OCTETS, PrivateKey, PublicKey};
use super::wire::{CIPHER_TAG, NOISE_1, NOISE_2};

const PATTERN: &str = "Noise_IK_25519_AESGCM_SHA256";
/// Beginning of the data that both ends must have in common, before the header and the cookie of the initiation.
const PROLOGUE: &[u8] = b"viaduct encrypted datagrams 1";
/// Octets of a session identifier, the payload of the second message.
const SESSION: usize = 4;

/// Random octets of one handshake, from which the ephemeral key is made.
pub(super) type Ephemeral = Zeroizing<[u8; KEY_OCTETS]>;

/// The keys of a session, one for each direction.
pub(super) type Transport = StatelessTransportState;

/// A handshake that this end has started.
pub(super) struct Initiated(Box<HandshakeState>);

/// A handshake that a peer has started.
pub(super) struct Received {
    /// The peer's key, which it has proved to have.
    pub(super) peer: PublicKey,
    state: Box<HandshakeState>,
}

impl Initiated {
    /// Starts a handshake with a peer. `bound` is what precedes the message in the datagram. Returns the handshake and the
    /// first message, or `None` if the library refuses the keys.
    pub(super) fn new(
        own: &PrivateKey,
        peer: &PublicKey,
        bound: &[u8],
        ephemeral: Ephemeral,
    ) -> Option<(Self, [u8; NOISE_1])> {
        let prologue = [PROLOGUE, bound].concat();
        let builder = builder(own, &prologue, ephemeral)?;
        let mut state = builder.remote_public_key(&peer.0).ok()?.build_initiator().ok()?;
        let mut message = [0; NOISE_1];
        let written = state.write_message(&[], &mut message).ok()?;
        (written == NOISE_1).then(|| (Self(Box::new(state)), message))
    }

    /// Reads the second message. Returns the keys and the peer's session identifier, or `None` if the message is not
    /// authentic; then the handshake can read another one.
    pub(super) fn finish(&mut self, message: &[u8; NOISE_2]) -> Option<[u8; SESSION]> {
        let mut payload = [0; NOISE_2];
        let read = self.0.read_message(message, &mut payload).ok()?;
        payload.get(..read)?.try_into().ok()
    }

    /// Returns the keys after [`Self::finish`].
    pub(super) fn into_transport(self) -> Option<Transport> {
        self.0.into_stateless_transport_mode().ok()
    }
}

impl Received {
    /// Reads the first message. Returns `None` if it is not authentic.
    pub(super) fn new(own: &PrivateKey, bound: &[u8], message: &[u8; NOISE_1], ephemeral: Ephemeral) -> Option<Self> {
        let prologue = [PROLOGUE, bound].concat();
        let mut state = builder(own, &prologue, ephemeral)?.build_responder().ok()?;
        let mut payload = [0; NOISE_1];
        state.read_message(message, &mut payload).ok()?;
        let peer = PublicKey(state.get_remote_static()?.try_into().ok()?);
        Some(Self { peer, state: Box::new(state) })
    }

    /// Returns the second message and the keys.
    pub(super) fn respond(mut self, session: u32) -> Option<([u8; NOISE_2], Transport)> {
        let mut message = [0; NOISE_2];
        let written = self.state.write_message(&session.to_be_bytes(), &mut message).ok()?;
        let transport = self.state.into_stateless_transport_mode().ok()?;
        (written == NOISE_2).then_some((message, transport))
    }
}

fn builder<'a>(own: &'a PrivateKey, prologue: &'a [u8], ephemeral: Ephemeral) -> Option<Builder<'a>> {
    let builder = Builder::with_resolver(PATTERN.parse().ok()?, Box::new(Resolver(ephemeral)));
    builder.local_private_key(own.octets()).ok()?.prologue(prologue).ok()
}

/// The implementations: ring for cipher and hash (decision 0011), and x25519-dalek, because ring has no static keys. The
/// random octets are those that the caller has drawn.
struct Resolver(Ephemeral);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Some(self.0.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(X25519::new([0; KEY_OCTETS])) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

/// Random octets for one key. They are never used twice.
struct Drawn(Option<Ephemeral>);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        let octets = self.0.take().filter(|octets| octets.len() == out.len()).ok_or(snow::Error::Rng)?;
        out.copy_from_slice(&*octets);
        Ok(())
    }
}

/// A pair of keys.
struct X25519 {
    private: StaticSecret,
    public: [u8; KEY_OCTETS],
}

impl X25519 {
    fn new(private: [u8; KEY_OCTETS]) -> Self {
        let private = StaticSecret::from(private);
        Self { public: x25519_dalek::PublicKey::from(&private).to_bytes(), private }
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_OCTETS
    }

    fn priv_len(&self) -> usize {
        KEY_OCTETS
    }

    fn set(&mut self, private: &[u8]) {
        if let Ok(private) = private.try_into() {
            *self = Self::new(private);
        }
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = Zeroizing::new([0; KEY_OCTETS]);
        random.try_fill_bytes(&mut *private)?;
        *self = Self::new(*private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        self.private.as_bytes()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public: [u8; KEY_OCTETS] = public.first_chunk().copied().ok_or(snow::Error::Dh)?;
        let shared = self.private.diffie_hellman(&public.into());
        // A point of low order makes the result independent of the private key (RFC 7748, 6.1).
        let out = out.first_chunk_mut().filter(|_| shared.was_contributory()).ok_or(snow::Error::Dh)?;
        *out = shared.to_bytes();
        Ok(())
    }
}

const _: () = assert!(NOISE_1 == KEY_OCTETS + (KEY_OCTETS + CIPHER_TAG) + CIPHER_TAG);
const _: () = assert!(NOISE_2 == KEY_OCTETS + SESSION + CIPHER_TAG);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(octet: u8) -> PrivateKey {
        struct Fixed(u8);
        impl super::super::Random for Fixed {
            fn fill(&mut self, octets: &mut [u8]) -> Result<(), super::super::RandomError> {
                octets.fill(self.0);
                Ok(())
            }
        }
        PrivateKey::generate(&mut Fixed(octet)).unwrap()
    }

    fn ephemeral(octet: u8) -> Ephemeral {
        Zeroizing::new([octet; KEY_OCTETS])
    }

    /// Runs a handshake. Returns the keys of both ends.
    fn agree(bound: &[u8]) -> (Transport, Transport) {
        let (desk, vehicle) = (key(1), key(2));
        let (mut initiated, first) = Initiated::new(&desk, &vehicle.public_key(), bound, ephemeral(3)).unwrap();
        let received = Received::new(&vehicle, bound, &first, ephemeral(4)).unwrap();
        assert_eq!(received.peer, desk.public_key());
        let (second, of_vehicle) = received.respond(7).unwrap();
        assert_eq!(initiated.finish(&[1; NOISE_2]), None, "a forged response does not end the handshake");
        assert_eq!(initiated.finish(&second), Some(7_u32.to_be_bytes()));
        (initiated.into_transport().unwrap(), of_vehicle)
    }

    #[test]
    fn both_ends_agree_on_keys_even_after_a_forged_response() {
        let (desk, vehicle) = agree(b"bound");
        for (from, to) in [(&desk, &vehicle), (&vehicle, &desk)] {
            let (mut sealed, mut opened) = ([0; 21], [0; 21]);
            from.write_message(9, b"hello", &mut sealed).unwrap();
            assert!(to.read_message(8, &sealed, &mut opened).is_err(), "the counter is authenticated");
            assert_eq!(to.read_message(9, &sealed, &mut opened).map(|octets| &opened[..octets]), Ok(&b"hello"[..]));
        }
    }

    #[test]
    fn a_point_of_low_order_is_refused() {
        let low = PublicKey([0; KEY_OCTETS]);
        assert!(Initiated::new(&key(1), &low, b"bound", ephemeral(3)).is_none());
        let mut message = [0; NOISE_1];
        message[0] = 1;
        assert!(Received::new(&key(2), b"bound", &message, ephemeral(4)).is_none());
    }

    #[test]
    fn a_first_message_is_bound_to_what_precedes_it_and_to_the_receiver() {
        let (desk, vehicle) = (key(1), key(2));
        let (_, first) = Initiated::new(&desk, &vehicle.public_key(), b"cookie", ephemeral(3)).unwrap();
        assert!(Received::new(&vehicle, b"another", &first, ephemeral(4)).is_none());
        assert!(Received::new(&key(5), b"cookie", &first, ephemeral(4)).is_none());
        assert!(Received::new(&vehicle, b"cookie", &first, ephemeral(4)).is_some());
    }
}
