//! Records, and the messages that a server processes without a connection (RFC 6347).

/// Octets of a record's header.
const HEADER: usize = 13;
/// Octets of the header of a handshake message.
const HANDSHAKE_HEADER: usize = 12;
/// Octets of a cookie.
pub(super) const COOKIE: usize = 32;
/// Octets of the random number of a `ClientHello`.
pub(super) const RANDOM: usize = 32;

const DTLS_1_0: [u8; 2] = [0xfe, 0xff];
const DTLS_1_2: [u8; 2] = [0xfe, 0xfd];
/// `TLS_PSK_WITH_AES_128_CCM_8` (RFC 6655).
const PSK_WITH_AES_128_CCM_8: [u8; 2] = [0xc0, 0xa8];
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;
const FATAL: u8 = 2;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentType {
    ChangeCipherSpec,
    Alert,
    Handshake,
    ApplicationData,
}

/// A description of an alert (RFC 5246, 7.2; RFC 4279, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alert {
    /// The sender has no session for the record that it received.
    UnexpectedMessage = 10,
    /// The key of the peer is wrong, or its identity is unknown.
    DecryptError = 51,
}

/// A record.
///
/// ```text
/// type (1)  version (2)  epoch (2)  sequence number (6)  length (2)  fragment
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) content_type: ContentType,
    pub(super) epoch: u16,
    pub(super) sequence: u64,
    pub(super) fragment: &'a [u8],
    /// The whole record.
    pub(super) octets: &'a [u8],
}

impl<'a> Record<'a> {
    /// Splits the first record off a datagram. Returns `None` if the rest of the datagram is not a record.
    pub(super) fn split_off(datagram: &mut &'a [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>()?;
        let [kind, major, minor, e0, e1, s0, s1, s2, s3, s4, s5, l0, l1] = *header;
        if ![DTLS_1_0, DTLS_1_2].contains(&[major, minor]) {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let fragment = rest.get(..length)?;
        let octets = datagram.get(..HEADER + length)?;
        let content_type = match kind {
            20 => ContentType::ChangeCipherSpec,
            21 => ContentType::Alert,
            22 => ContentType::Handshake,
            23 => ContentType::ApplicationData,
            _ => return None,
        };
        *datagram = rest.get(length..)?;
        let epoch = u16::from_be_bytes([e0, e1]);
        // A client may offer DTLS 1.0 in its first records only (RFC 5246, E.1).
        if epoch != 0 && [major, minor] != DTLS_1_2 {
            return None;
        }
        let sequence = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
        Some(Self { content_type, epoch, sequence, fragment, octets })
    }

    /// Returns `true` if the record contains a `ClientHello` or a part of it.
    pub(super) fn is_client_hello(&self) -> bool {
        self.epoch == 0
            && self.content_type == ContentType::Handshake
            && self.fragment.first().is_some_and(|kind| *kind == CLIENT_HELLO)
    }
}

/// Returns `true` if a record has a `HelloVerifyRequest` that is not the answer to the first `ClientHello` of a handshake.
pub(super) fn is_further_hello_verify_request(record: &Record<'_>) -> bool {
    let is_handshake = record.epoch == 0 && record.content_type == ContentType::Handshake;
    is_handshake && matches!(record.fragment, [HELLO_VERIFY_REQUEST, _, _, _, high, low, ..] if [*high, *low] != [0, 0])
}

/// Returns `true` if a record is the alert that answers a record without a session.
pub(super) fn is_stray_alert(record: &Record<'_>) -> bool {
    record.epoch == 0
        && record.content_type == ContentType::Alert
        && matches!(record.fragment, [_, description] if *description == Alert::UnexpectedMessage as u8)
}

/// Adds a number to the sequence numbers of the records of epoch 0 in a datagram.
pub(super) fn shift_sequence(datagram: &mut [u8], offset: u64) {
    let mut rest = datagram;
    while let Some((header, after)) = rest.split_first_chunk_mut::<HEADER>() {
        let [_, _, _, e0, e1, s0, s1, s2, s3, s4, s5, l0, l1] = header;
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        if [*e0, *e1] == [0, 0] {
            let sequence = u64::from_be_bytes([0, 0, *s0, *s1, *s2, *s3, *s4, *s5]).wrapping_add(offset);
            [_, _, *s0, *s1, *s2, *s3, *s4, *s5] = sequence.to_be_bytes();
        }
        rest = after.get_mut(length..).unwrap_or_default();
    }
}

/// A `ClientHello` in one fragment.
///
/// ```text
/// client version (2)  random (32)  session identifier (1 + n)  cookie (1 + n)
/// cipher suites (2 + n)  compression methods (1 + n)  extensions (2 + n)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientHello<'a> {
    /// Sequence number of the record.
    pub(super) sequence: u64,
    /// Number of the message in the handshake.
    pub(super) message: u16,
    pub(super) random: &'a [u8; RANDOM],
    pub(super) cookie: &'a [u8],
    /// The parameters of the client before the cookie: version, random number and session identifier.
    pub(super) before_cookie: &'a [u8],
    /// The parameters of the client after the cookie: cipher suites, compression methods and extensions.
    pub(super) after_cookie: &'a [u8],
    cipher_suites: &'a [u8],
}

impl<'a> ClientHello<'a> {
    /// Parses the message of a record. Returns `None` if it is not a `ClientHello` of DTLS 1.2 in one fragment.
    pub(super) fn parse(record: &Record<'a>) -> Option<Self> {
        let (header, body) = record.fragment.split_first_chunk::<HANDSHAKE_HEADER>()?;
        let [kind, t0, t1, t2, m0, m1, o0, o1, o2, l0, l1, l2] = *header;
        let total = u32::from_be_bytes([0, t0, t1, t2]);
        let is_whole = [o0, o1, o2] == [0; 3] && [l0, l1, l2] == [t0, t1, t2] && body.len() == total as usize;
        if kind != CLIENT_HELLO || !is_whole {
            return None;
        }
        let mut rest = body;
        let version = rest.split_off(..2)?;
        let random = rest.split_off(..RANDOM)?.try_into().ok()?;
        vector_8(&mut rest)?;
        let before_cookie = body.get(..body.len() - rest.len())?;
        let cookie = vector_8(&mut rest)?;
        let after_cookie = rest;
        let cipher_suites = vector_16(&mut rest)?;
        vector_8(&mut rest)?;
        let message = u16::from_be_bytes([m0, m1]);
        let hello =
            Self { sequence: record.sequence, message, random, cookie, before_cookie, after_cookie, cipher_suites };
        (version == DTLS_1_2).then_some(hello)
    }

    /// Returns `true` if the client offers the cipher suite of this module.
    pub(super) fn offers_cipher_suite(&self) -> bool {
        self.cipher_suites.as_chunks::<2>().0.contains(&PSK_WITH_AES_128_CCM_8)
    }
}

/// Splits a vector with a length of 1 octet off.
fn vector_8<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = *rest.split_off_first()?;
    rest.split_off(..usize::from(length))
}

/// Splits a vector with a length of 2 octets off.
fn vector_16<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = rest.split_off(..2)?.try_into().ok()?;
    rest.split_off(..usize::from(u16::from_be_bytes(length)))
}

/// Returns a record with a `HelloVerifyRequest` (RFC 6347, 4.2.1). It is shorter than any `ClientHello`.
///
/// It has the numbers of the `ClientHello`: the server has no state from which it could number them.
pub(super) fn hello_verify_request(hello: &ClientHello<'_>, cookie: &[u8; COOKIE]) -> Vec<u8> {
    let body = [&DTLS_1_0[..], &[COOKIE as u8], cookie].concat();
    record(DTLS_1_0, 22, hello.sequence, &handshake(HELLO_VERIFY_REQUEST, hello.message, &body))
}

/// Returns a record with the shortest `ClientHello` without a cookie.
pub(super) fn client_hello_without_cookie(message: u16) -> Vec<u8> {
    let suites = [&[0, 2][..], &PSK_WITH_AES_128_CCM_8].concat();
    let body = [&DTLS_1_2[..], &[0; RANDOM], &[0], &[0], &suites, &[1, 0]].concat();
    record(DTLS_1_2, 22, u64::from(message), &handshake(CLIENT_HELLO, message, &body))
}

/// Returns a record with a fatal alert without protection.
pub(super) fn alert(sequence: u64, description: Alert) -> Vec<u8> {
    record(DTLS_1_2, 21, sequence, &[FATAL, description as u8])
}

/// Returns a handshake message in one fragment.
fn handshake(kind: u8, message: u16, body: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (body.len() as u32).to_be_bytes();
    [&[kind], &length[..], &message.to_be_bytes(), &[0, 0, 0], &length, body].concat()
}

/// Returns a record of epoch 0.
fn record(version: [u8; 2], kind: u8, sequence: u64, fragment: &[u8]) -> Vec<u8> {
    let [_, _, sequence @ ..] = sequence.to_be_bytes();
    let length = (fragment.len() as u16).to_be_bytes();
    [&[kind], &version[..], &[0, 0], &sequence, &length, fragment].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_shorter_than_the_shortest_client_hello() {
        let octets = client_hello_without_cookie(0);
        let mut rest = &octets[..];
        let record = Record::split_off(&mut rest).unwrap();
        assert!(rest.is_empty() && record.is_client_hello());
        let hello = ClientHello::parse(&record).unwrap();
        assert!(hello.offers_cipher_suite() && hello.cookie.is_empty());
        assert!(hello_verify_request(&hello, &[7; COOKIE]).len() < octets.len());
    }

    #[test]
    fn a_client_hello_of_openssl_is_parsed() {
        // `openssl s_client -dtls1_2 -psk 00 -cipher PSK-AES128-CCM8`, OpenSSL 3.0: a cookie of 2 octets was added.
        let body = [
            &[0xfe, 0xfd][..],
            &[0x5a; 32],
            &[0],
            &[2, 0xaa, 0xbb],
            &[0, 4, 0xc0, 0xa8, 0, 0xff],
            &[1, 0],
            &[0, 12, 0, 0x16, 0, 0, 0, 0x17, 0, 0, 0, 0x23, 0, 0],
        ]
        .concat();
        let octets = record(DTLS_1_0, 22, 5, &handshake(CLIENT_HELLO, 1, &body));
        let hello = Record::split_off(&mut &octets[..]).unwrap();
        let hello = ClientHello::parse(&hello).unwrap();
        assert_eq!((hello.sequence, hello.message, hello.cookie), (5, 1, &[0xaa, 0xbb][..]));
        assert_eq!((hello.random, hello.before_cookie.len()), (&[0x5a; 32], 35));
        assert!(hello.offers_cipher_suite() && hello.after_cookie.len() == 22);
        for length in 0..octets.len() {
            assert!(Record::split_off(&mut &octets[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn sequence_numbers_of_epoch_0_are_shifted() {
        let plain = alert(3, Alert::DecryptError);
        let mut protected = plain.clone();
        protected[4] = 1;
        let mut datagram = [plain.clone(), protected.clone(), plain].concat();
        shift_sequence(&mut datagram, 7);
        assert_eq!(datagram, [alert(10, Alert::DecryptError), protected, alert(10, Alert::DecryptError)].concat());
        // The first record can have a lower number than the record counter of this end.
        shift_sequence(&mut datagram, u64::MAX - 9);
        assert_eq!(datagram[10], 0);
    }
}
