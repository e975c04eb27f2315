//! Formats of the messages. Numbers are big-endian.
//!
//! | message | octets |
//! |---|---|
//! | cookie request, 48 | type 1, version 1, zero 2, session 4, number 8, tag 32 |
//! | cookie, 48 | type 2, version 1, zero 2, session 4, number 8, cookie 32 |
//! | initiation, 144 | type 3, version 1, zero 2, session 4, number 8, cookie 32, first Noise message 96 |
//! | response, 60 | type 4, version 1, zero 2, session 4, second Noise message 52 |
//! | data, 29 or more | type 5, session 4, counter 8, ciphertext 0 or more, tag 16 |
//!
//! *Session* is the identifier that the initiator has chosen for the session; in data it is the receiver's. *Number* is
//! random and identifies the handshake. The responder's identifier is the payload of the second Noise message.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::counters::DropReason;

/// Octets of the part that a cookie request, a cookie and an initiation have in common.
pub(super) const HEADER: usize = 16;
/// Octets of a cookie, and of the tag of a cookie request.
pub(super) const TAG: usize = 32;
/// Octets of the first Noise message: an ephemeral key, the encrypted static key, an empty payload.
pub(super) const NOISE_1: usize = 96;
/// Octets of the second Noise message: an ephemeral key, the encrypted session identifier.
pub(super) const NOISE_2: usize = 52;
/// Octets of data before the ciphertext.
pub(super) const DATA_HEADER: usize = 13;
/// Octets that the cipher adds.
pub(super) const CIPHER_TAG: usize = 16;

/// Identification of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// Identifier that the initiator has chosen for the session.
    pub(super) session: u32,
    /// Random number.
    pub(super) number: u64,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    CookieRequest { handshake: Handshake, tag: &'a [u8; TAG] },
    Cookie { handshake: Handshake, cookie: &'a [u8; TAG] },
    Initiation { handshake: Handshake, cookie: &'a [u8; TAG], noise: &'a [u8; NOISE_1] },
    Response { session: u32, noise: &'a [u8; NOISE_2] },
    Data { session: u32, counter: u64, sealed: &'a [u8] },
}

/// First octet of each message.
mod kind {
    pub(super) const COOKIE_REQUEST: u8 = 1;
    pub(super) const COOKIE: u8 = 2;
    pub(super) const INITIATION: u8 = 3;
    pub(super) const RESPONSE: u8 = 4;
    pub(super) const DATA: u8 = 5;
}

/// Version of the handshake. The session that results from it has the same version.
const VERSION: u8 = 1;

impl<'a> Message<'a> {
    /// Parses a message.
    ///
    /// # Errors
    /// The length is not that of the type, or the type or version is unknown.
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, DropReason> {
        match datagram {
            [kind::DATA, rest @ ..] => parse_data(rest).ok_or(DropReason::WrongLength),
            [kind @ kind::COOKIE_REQUEST..=kind::RESPONSE, VERSION, 0, 0, rest @ ..] => {
                parse_handshake(*kind, rest).ok_or(DropReason::WrongLength)
            }
            [] => Err(DropReason::WrongLength),
            _ => Err(DropReason::UnknownType),
        }
    }
}

fn parse_data(rest: &[u8]) -> Option<Message<'_>> {
    let (session, rest) = rest.split_first_chunk()?;
    let (counter, sealed) = rest.split_first_chunk()?;
    let (session, counter) = (u32::from_be_bytes(*session), u64::from_be_bytes(*counter));
    (sealed.len() >= CIPHER_TAG).then_some(Message::Data { session, counter, sealed })
}

fn parse_handshake(kind: u8, rest: &[u8]) -> Option<Message<'_>> {
    let (session, rest) = rest.split_first_chunk()?;
    let session = u32::from_be_bytes(*session);
    if kind == kind::RESPONSE {
        return Some(Message::Response { session, noise: rest.try_into().ok()? });
    }
    let (number, rest) = rest.split_first_chunk()?;
    let handshake = Handshake { session, number: u64::from_be_bytes(*number) };
    let (tag, rest) = rest.split_first_chunk()?;
    match kind {
        kind::INITIATION => Some(Message::Initiation { handshake, cookie: tag, noise: rest.try_into().ok()? }),
        kind::COOKIE if rest.is_empty() => Some(Message::Cookie { handshake, cookie: tag }),
        kind::COOKIE_REQUEST if rest.is_empty() => Some(Message::CookieRequest { handshake, tag }),
        _ => None,
    }
}

impl Handshake {
    /// Returns the header of a cookie request.
    pub(super) fn request_header(self) -> [u8; HEADER] {
        self.header(kind::COOKIE_REQUEST)
    }

    /// Returns the header of an initiation.
    pub(super) fn initiation_header(self) -> [u8; HEADER] {
        self.header(kind::INITIATION)
    }

    /// Returns the message with a cookie.
    pub(super) fn cookie(self, cookie: &[u8]) -> Bytes {
        [&self.header(kind::COOKIE), cookie].concat().into()
    }

    fn header(self, kind: u8) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let [type_at, version, _, _, rest @ ..] = &mut header;
        (*type_at, *version) = (kind, VERSION);
        let (session, number) = rest.split_at_mut(4);
        session.copy_from_slice(&self.session.to_be_bytes());
        number.copy_from_slice(&self.number.to_be_bytes());
        header
    }
}

/// Returns a response.
pub(super) fn response(session: u32, noise: &[u8; NOISE_2]) -> Bytes {
    [&[kind::RESPONSE, VERSION, 0, 0], session.to_be_bytes().as_slice(), noise].concat().into()
}

/// Appends the part of data before the ciphertext.
pub(super) fn put_data_header(out: &mut BytesMut, session: u32, counter: u64) {
    out.put_u8(kind::DATA);
    out.put_u32(session);
    out.put_u64(counter);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: Handshake = Handshake { session: 0x0102_0304, number: 0x0506_0708_090a_0b0c };

    #[test]
    fn each_message_has_the_documented_length_and_no_other() {
        let tag = [9; TAG];
        let request = [HANDSHAKE.request_header().as_slice(), &tag].concat();
        let initiation = [HANDSHAKE.initiation_header().as_slice(), &tag, &[7; NOISE_1]].concat();
        let mut data = BytesMut::new();
        put_data_header(&mut data, 5, 6);
        data.extend_from_slice(&[0; CIPHER_TAG]);
        let messages = [
            (request, 48, Message::CookieRequest { handshake: HANDSHAKE, tag: &tag }),
            (HANDSHAKE.cookie(&tag).to_vec(), 48, Message::Cookie { handshake: HANDSHAKE, cookie: &tag }),
            (initiation, 144, Message::Initiation { handshake: HANDSHAKE, cookie: &tag, noise: &[7; NOISE_1] }),
            (response(5, &[7; NOISE_2]).to_vec(), 60, Message::Response { session: 5, noise: &[7; NOISE_2] }),
            (data.to_vec(), 29, Message::Data { session: 5, counter: 6, sealed: &[0; CIPHER_TAG] }),
        ];
        for (octets, length, message) in messages {
            assert_eq!((octets.len(), Message::parse(&octets)), (length, Ok(message)));
            for shorter in 0..length {
                assert!(Message::parse(&octets[..shorter]).is_err(), "{message:?} with {shorter} octets");
            }
            let longer = Message::parse(&[octets.as_slice(), &[0]].concat()).map(|_| ());
            let expected = if length == 29 { Ok(()) } else { Err(DropReason::WrongLength) };
            assert_eq!(longer, expected, "{message:?}");
        }
    }

    #[test]
    fn an_unknown_type_or_version_is_refused() {
        for octets in [[0, 1, 0, 0], [6, 1, 0, 0], [1, 2, 0, 0], [3, 1, 0, 1]] {
            assert_eq!(Message::parse(&[octets.as_slice(), &[0; 44]].concat()), Err(DropReason::UnknownType));
        }
    }
}
