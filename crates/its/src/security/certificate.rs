//! A reader of certificates (IEEE 1609.2, 6.4) that finds their end and their digest.

use std::ops::Range;

use sha2::{Digest, Sha256, Sha384};

use super::{HashedId8, SecurityError, coer::Reader};

type Read<T> = Result<T, SecurityError>;

/// Tag of a point that is given by its x-coordinate alone.
const TAG_X_ONLY: u8 = 0x80;
/// Tags of a point that is given by its x-coordinate and the parity of its y-coordinate: even, odd.
const TAGS_COMPRESSED: [u8; 2] = [0x82, 0x83];
/// Largest number of points in a certificate: encryption key, verification key, signature.
const POINTS_MAX: usize = 3;

/// Hash algorithm of a certificate, which its verification key decides (IEEE 1609.2, 6.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CertificateHash {
    Sha256,
    Sha384,
}

/// A point on an elliptic curve and its canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point<'a> {
    /// Place of the received form, from its tag on.
    received: Range<usize>,
    /// Tag of the canonical form.
    tag: u8,
    /// The x-coordinate.
    x: &'a [u8],
}

/// Fields of a certificate that the reader keeps.
#[derive(Debug, Default)]
struct Notes<'a> {
    points: [Option<Point<'a>>; POINTS_MAX],
    count: usize,
}

impl<'a> Notes<'a> {
    fn add(&mut self, point: Option<Point<'a>>) {
        if let Some(slot) = self.points.get_mut(self.count) {
            *slot = point;
            self.count += 1;
        }
    }
}

/// Reads a certificate and returns its digest.
///
/// The digest covers the canonical encoding (IEEE 1609.2, 6.4.3): keys as compressed points, the r of a signature as an
/// x-coordinate. Senders may use other forms of a point; the rest is hashed as received.
pub(super) fn read(reader: &mut Reader<'_>) -> Read<HashedId8> {
    let start = reader.position();
    let mut notes = Notes::default();
    let has_signature = reader.preamble()?.has(0);
    if reader.octet()? != 3 {
        return Err(SecurityError::Unsupported);
    }
    let _certificate_type = reader.octet()?;
    issuer(reader)?;
    let hash = to_be_signed(reader, &mut notes)?;
    if has_signature {
        let r = signature(reader)?;
        notes.add(r);
    }
    let parts = canonical(reader.since(start), start, &notes);
    Ok(match hash {
        CertificateHash::Sha256 => digest::<Sha256>(&parts),
        CertificateHash::Sha384 => digest::<Sha384>(&parts),
    })
}

/// Returns the canonical encoding in parts: for each point the octets before it, its tag and its x-coordinate; then the
/// octets behind the last one.
fn canonical<'a>(received: &'a [u8], start: usize, notes: &'a Notes<'_>) -> [&'a [u8]; 3 * POINTS_MAX + 1] {
    let mut parts: [&[u8]; 3 * POINTS_MAX + 1] = [&[]; 3 * POINTS_MAX + 1];
    let mut at = 0;
    let mut slots = parts.iter_mut();
    let mut push = |octets: &'a [u8]| {
        if let Some(slot) = slots.next() {
            *slot = octets;
        }
    };
    for point in notes.points.iter().flatten() {
        push(received.get(at..point.received.start - start).unwrap_or_default());
        push(std::slice::from_ref(&point.tag));
        push(point.x);
        at = point.received.end - start;
    }
    push(received.get(at..).unwrap_or_default());
    parts
}

fn digest<D: Digest>(parts: &[&[u8]]) -> HashedId8 {
    let mut hasher = D::new();
    for part in parts {
        hasher.update(part);
    }
    let hash = hasher.finalize();
    HashedId8(hash.last_chunk().copied().unwrap_or_default())
}

/// Skips `IssuerIdentifier`: a digest, or `self` for a self-signed certificate.
fn issuer(reader: &mut Reader<'_>) -> Read<()> {
    match reader.alternative()? {
        0 => reader.take(8).map(drop),
        1 => reader.octet().map(drop),
        _ => reader.sized().map(drop),
    }
}

/// Reads `ToBeSignedCertificate`. Returns the hash algorithm that the verification key requires.
fn to_be_signed<'a>(reader: &mut Reader<'a>, notes: &mut Notes<'a>) -> Read<CertificateHash> {
    let preamble = reader.preamble()?;
    let has = |bit| preamble.has(bit);
    certificate_id(reader)?;
    // cracaId, crlSeries; start, unit and number of the validity period.
    reader.take(3 + 2 + 4 + 1 + 2)?;
    if has(1) {
        region(reader)?;
    }
    if has(2) {
        // assuranceLevel.
        reader.octet()?;
    }
    if has(3) {
        reader.list(app_permission)?;
    }
    if has(4) {
        reader.list(group_permission)?;
    }
    if has(5) {
        reader.list(group_permission)?;
    }
    // canRequestRollover (bit 6) is NULL and has no octets.
    if has(7) {
        let point = public_encryption_key(reader)?;
        notes.add(point);
    }
    let hash = verify_key_indicator(reader, notes)?;
    if has(0) {
        reader.skip_extensions()?;
    }
    Ok(hash)
}

fn certificate_id(reader: &mut Reader<'_>) -> Read<()> {
    match reader.alternative()? {
        0 => {
            let preamble = reader.preamble()?;
            // iCert and linkage-value; if present, jValue and value of the group.
            reader.take(2 + 9)?;
            if preamble.has(0) {
                reader.take(4 + 9)?;
            }
            Ok(())
        }
        3 => Ok(()),
        // A name, an identifier, or a later alternative.
        _ => reader.sized().map(drop),
    }
}

/// Skips `GeographicRegion`.
fn region(reader: &mut Reader<'_>) -> Read<()> {
    /// Latitude and longitude.
    const LOCATION_OCTETS: usize = 8;
    match reader.alternative()? {
        0 => reader.take(LOCATION_OCTETS + 2).map(drop),
        1 => reader.list(|reader| reader.take(2 * LOCATION_OCTETS).map(drop)),
        2 => reader.list(|reader| reader.take(LOCATION_OCTETS).map(drop)),
        3 => reader.list(identified_region),
        _ => reader.sized().map(drop),
    }
}

/// Skips `IdentifiedRegion`: a country, its regions, or their subregions.
fn identified_region(reader: &mut Reader<'_>) -> Read<()> {
    match reader.alternative()? {
        0 => reader.take(2).map(drop),
        1 => {
            reader.take(2)?;
            reader.list(|reader| reader.octet().map(drop))
        }
        2 => {
            reader.take(2)?;
            reader.list(|reader| {
                reader.octet()?;
                reader.list(|reader| reader.take(2).map(drop))
            })
        }
        _ => reader.sized().map(drop),
    }
}

/// Skips `PsidSsp`.
fn app_permission(reader: &mut Reader<'_>) -> Read<()> {
    let preamble = reader.preamble()?;
    reader.sized()?;
    if preamble.has(0) {
        // An octet string, or a later alternative.
        reader.alternative()?;
        reader.sized()?;
    }
    Ok(())
}

/// Skips `PsidGroupPermissions`.
fn group_permission(reader: &mut Reader<'_>) -> Read<()> {
    let preamble = reader.preamble()?;
    match reader.alternative()? {
        0 => reader.list(permission_range)?,
        1 => {}
        _ => reader.sized().map(drop)?,
    }
    // minChainLength and chainLengthRange.
    for bit in 0..2 {
        if preamble.has(bit) {
            reader.sized()?;
        }
    }
    if preamble.has(2) {
        // eeType.
        reader.octet()?;
    }
    Ok(())
}

/// Skips `PsidSspRange`.
fn permission_range(reader: &mut Reader<'_>) -> Read<()> {
    let preamble = reader.preamble()?;
    reader.sized()?;
    if preamble.has(0) {
        match reader.alternative()? {
            0 => reader.list(|reader| reader.sized().map(drop))?,
            1 => {}
            _ => reader.sized().map(drop)?,
        }
    }
    Ok(())
}

/// Skips `PublicEncryptionKey`.
pub(super) fn skip_public_encryption_key(reader: &mut Reader<'_>) -> Read<()> {
    public_encryption_key(reader).map(drop)
}

/// Reads `PublicEncryptionKey`. Returns its point, or `None` for a later alternative.
fn public_encryption_key<'a>(reader: &mut Reader<'a>) -> Read<Option<Point<'a>>> {
    let _algorithm = reader.octet()?;
    match reader.alternative()? {
        0 | 1 => point_p256(reader, key_tag).map(Some),
        _ => reader.sized().map(|_| None),
    }
}

fn verify_key_indicator<'a>(reader: &mut Reader<'a>, notes: &mut Notes<'a>) -> Read<CertificateHash> {
    match reader.alternative()? {
        0 => match reader.alternative()? {
            0 | 1 => notes.add(Some(point_p256(reader, key_tag)?)),
            // Brainpool P384r1 and NIST P-384, as open types.
            2 | 3 => {
                reader.sized()?;
                return Ok(CertificateHash::Sha384);
            }
            _ => return Err(SecurityError::Unsupported),
        },
        1 => notes.add(Some(point_p256(reader, key_tag)?)),
        _ => return Err(SecurityError::Unsupported),
    }
    Ok(CertificateHash::Sha256)
}

/// Skips `Signature`.
pub(super) fn skip_signature(reader: &mut Reader<'_>) -> Read<()> {
    signature(reader).map(drop)
}

/// Reads `Signature`. Returns r, or `None` for a later alternative.
fn signature<'a>(reader: &mut Reader<'a>) -> Read<Option<Point<'a>>> {
    match reader.alternative()? {
        0 | 1 => {
            let r = point_p256(reader, |_, _| TAG_X_ONLY)?;
            reader.take(32)?;
            Ok(Some(r))
        }
        2 | 3 => signature_p384(reader),
        _ => reader.sized().map(|_| None),
    }
}

/// Reads a signature of 384 bits, which is an open type. Returns r, or `None` if the length is wrong. The tag of r is
/// replaced; its length stays.
fn signature_p384<'a>(reader: &mut Reader<'a>) -> Read<Option<Point<'a>>> {
    const COORDINATE_OCTETS: usize = 48;
    let octets = reader.sized()?;
    let start = reader.position() - octets.len();
    let r = octets.get(1..=COORDINATE_OCTETS).filter(|_| octets.len() == 1 + 2 * COORDINATE_OCTETS);
    Ok(r.map(|x| Point { received: start..start + 1 + COORDINATE_OCTETS, tag: TAG_X_ONLY, x }))
}

/// Reads `EccP256CurvePoint`. `canonical_tag` receives the tag and the last octet of the y-coordinate, if it is given.
fn point_p256<'a>(reader: &mut Reader<'a>, canonical_tag: impl Fn(u8, Option<u8>) -> u8) -> Read<Point<'a>> {
    const COORDINATE_OCTETS: usize = 32;
    let start = reader.position();
    let alternative = reader.alternative()?;
    let (x, y): (&[u8], &[u8]) = match alternative {
        0 | 2 | 3 => (reader.take(COORDINATE_OCTETS)?, &[]),
        1 => (&[], &[]),
        4 => (reader.take(COORDINATE_OCTETS)?, reader.take(COORDINATE_OCTETS)?),
        _ => return Err(SecurityError::Invalid),
    };
    let tag = canonical_tag(0x80 | alternative, y.last().copied());
    Ok(Point { received: start..reader.position(), tag, x })
}

/// Returns the tag of a public key in canonical form: an uncompressed point becomes a compressed one.
const fn key_tag(tag: u8, last_of_y: Option<u8>) -> u8 {
    let [even, odd] = TAGS_COMPRESSED;
    match last_of_y {
        Some(octet) if octet & 1 == 0 => even,
        Some(_) => odd,
        None => tag,
    }
}
