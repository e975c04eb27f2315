//! `Ieee1609Dot2Data` with a signature (IEEE 1609.2, 6.3.4).

use super::{HashedId8, SecurityError, certificate, coer::Reader};

type Read<T> = Result<T, SecurityError>;

/// Version of the protocol (IEEE 1609.2, 6.3.2).
const PROTOCOL_VERSION: u8 = 3;

/// A signed payload whose signature is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedData<'a> {
    /// The payload: a part of the packet.
    pub payload: &'a [u8],
    /// Digest of the certificate that the packet names as its signer's.
    pub signer: HashedId8,
}

impl<'a> SignedData<'a> {
    /// Reads signed data at the beginning of `octets`. Octets behind it are ignored: a link may pad.
    ///
    /// # Errors
    /// Returns an error if the octets are no encoding of `Ieee1609Dot2Data`, or have no readable payload or no
    /// certificate of a signer.
    pub fn parse(octets: &'a [u8]) -> Read<Self> {
        let mut reader = Reader::new(octets);
        if data_content(&mut reader)? != Content::Signed {
            return Err(SecurityError::Unsupported);
        }
        let _hash_algorithm = reader.octet()?;
        let payload = signed_payload(&mut reader)?;
        header_info(&mut reader)?;
        let signer = signer(&mut reader)?;
        certificate::skip_signature(&mut reader)?;
        Ok(Self { payload, signer })
    }
}

/// `Ieee1609Dot2Content` by its alternative.
#[derive(PartialEq, Eq)]
enum Content {
    Unsecured,
    Signed,
    Other,
}

/// Reads version and alternative of `Ieee1609Dot2Data`.
fn data_content(reader: &mut Reader<'_>) -> Read<Content> {
    if reader.octet()? != PROTOCOL_VERSION {
        return Err(SecurityError::Unsupported);
    }
    Ok(match reader.alternative()? {
        0 => Content::Unsecured,
        1 => Content::Signed,
        _ => Content::Other,
    })
}

/// Reads `SignedDataPayload` and returns its unsecured data. The hash of external data, which TS 103 097 (5.2) also
/// allows, is not supported without unsecured data.
fn signed_payload<'a>(reader: &mut Reader<'a>) -> Read<&'a [u8]> {
    let preamble = reader.preamble()?;
    if !preamble.has(1) || data_content(reader)? != Content::Unsecured {
        return Err(SecurityError::Unsupported);
    }
    let payload = reader.sized()?;
    if preamble.has(2) {
        // extDataHash.
        match reader.alternative()? {
            0 => reader.take(32)?,
            _ => reader.sized()?,
        };
    }
    if preamble.has(0) {
        reader.skip_extensions()?;
    }
    Ok(payload)
}

/// Skips `HeaderInfo`.
fn header_info(reader: &mut Reader<'_>) -> Read<()> {
    let preamble = reader.preamble()?;
    let _psid = reader.sized()?;
    // generationTime, expiryTime, generationLocation, p2pcdLearningRequest.
    for (bit, octets) in [(1, 8), (2, 8), (3, 10), (4, 3)] {
        if preamble.has(bit) {
            reader.take(octets)?;
        }
    }
    if preamble.has(5) {
        missing_crl_identifier(reader)?;
    }
    if preamble.has(6) {
        encryption_key(reader)?;
    }
    if preamble.has(0) {
        reader.skip_extensions()?;
    }
    Ok(())
}

fn missing_crl_identifier(reader: &mut Reader<'_>) -> Read<()> {
    let preamble = reader.preamble()?;
    // cracaId and crlSeries.
    reader.take(3 + 2)?;
    if preamble.has(0) {
        reader.skip_extensions()?;
    }
    Ok(())
}

/// Skips `EncryptionKey`: a public or a symmetric key.
fn encryption_key(reader: &mut Reader<'_>) -> Read<()> {
    match reader.alternative()? {
        0 => certificate::skip_public_encryption_key(reader),
        1 => match reader.alternative()? {
            0 => reader.take(16).map(drop),
            _ => reader.sized().map(drop),
        },
        _ => Err(SecurityError::Invalid),
    }
}

/// Reads `SignerIdentifier`: a digest, or certificates of which the first is the signer's. Returns the digest.
fn signer(reader: &mut Reader<'_>) -> Read<HashedId8> {
    match reader.alternative()? {
        0 => reader.array().map(HashedId8),
        1 => {
            let mut first = None;
            reader.list(|reader| {
                let digest = certificate::read(reader)?;
                first.get_or_insert(digest);
                Ok(())
            })?;
            first.ok_or(SecurityError::Invalid)
        }
        _ => Err(SecurityError::Unsupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNER: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    /// Returns a packet signed by digest with the payload `[0xA, 0xB]`, the given preamble of its header and the fields that
    /// the preamble announces.
    fn signed_by_digest(preamble: u8, fields: &[u8]) -> Vec<u8> {
        let begin = [3, 0x81, 0, 0x40, 3, 0x80, 2, 0xA, 0xB, preamble, 1, 36];
        let signature = [&[0x80, 0x80][..], &[7; 64]].concat();
        [&begin[..], fields, &[0x80], &SIGNER, &signature].concat()
    }

    #[test]
    fn a_digest_identifies_the_signer() {
        let octets = signed_by_digest(0x40, &[9; 8]);
        let expected = SignedData { payload: &[0xA, 0xB], signer: HashedId8(SIGNER) };
        assert_eq!(SignedData::parse(&octets), Ok(expected));
        assert_eq!(expected.signer.to_string(), "0102030405060708");
        let padded = [&octets[..], &[0; 9]].concat();
        assert_eq!(SignedData::parse(&padded), Ok(expected), "a link may pad");
        for length in 0..octets.len() {
            assert_eq!(SignedData::parse(&octets[..length]), Err(SecurityError::Invalid), "{length}");
        }
    }

    #[test]
    fn each_optional_field_of_the_header_is_passed_over() {
        let point = [&[0x84][..], &[5; 64]].concat();
        let public_key = [&[0x80, 0, 0x80][..], &point].concat();
        let symmetric_key = [&[0x81, 0x80][..], &[5; 16]].concat();
        let extensions = [2, 6, 0xC0, 2, 1, 1, 1, 9];
        for (preamble, fields) in [
            (0x00, vec![]),
            (0x40, vec![9; 8]),
            (0x20, vec![9; 8]),
            (0x10, vec![9; 10]),
            (0x08, vec![9; 3]),
            (0x04, vec![0, 9, 9, 9, 9, 9]),
            (0x02, public_key.clone()),
            (0x02, symmetric_key),
            (0x80, extensions.to_vec()),
            (0xFE, [&[9; 29][..], &[0, 9, 9, 9, 9, 9], &public_key, &extensions].concat()),
        ] {
            let octets = signed_by_digest(preamble, &fields);
            let read = SignedData::parse(&octets);
            assert_eq!(read.map(|data| data.signer), Ok(HashedId8(SIGNER)), "{preamble:#x} {fields:?}");
        }
    }

    #[test]
    fn data_without_a_payload_or_a_signer_is_unsupported() {
        let change = |at: usize, octet: u8| {
            let mut octets = signed_by_digest(0, &[]);
            octets[at] = octet;
            SignedData::parse(&octets).map(drop)
        };
        assert_eq!(change(0, 2), Err(SecurityError::Unsupported), "TS 103 097 V1.2.1");
        assert_eq!(change(1, 0x82), Err(SecurityError::Unsupported), "encrypted");
        assert_eq!(change(3, 0x20), Err(SecurityError::Unsupported), "the hash of an external payload");
        assert_eq!(change(5, 0x81), Err(SecurityError::Unsupported), "signed twice");
        assert_eq!(change(12, 0x82), Err(SecurityError::Unsupported), "self-signed");
        assert_eq!(change(1, 0x01), Err(SecurityError::Invalid));
    }

    /// These octets make a generic decoder reserve terabytes (an encrypted key list that claims 2^40 entries).
    #[test]
    fn a_claimed_count_reserves_nothing() {
        let octets = [3, 0x81, 0, 0x40, 3, 0x80, 1, 0, 0, 1, 0x24, 0x81, 5, 0x10, 0, 0, 0, 0];
        assert_eq!(SignedData::parse(&octets), Err(SecurityError::Invalid));
    }
}
