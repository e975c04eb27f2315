//! Signed packets: IEEE 1609.2 in the profile of TS 103 097.
//!
//! Nothing here verifies a signature. [`SignedData::parse`] finds the payload of a signed packet and the digest of its
//! signer, so that a station can accept such packets as [`Security::Unverified`]. The reader works on the received
//! octets in place and allocates nothing. Its nesting is fixed, and each count from the packet is bounded by the octets
//! that are left.

mod certificate;
mod coer;
mod signed_data;

use std::fmt;

pub use signed_data::SignedData;

use crate::DropReason;

/// Digest that identifies a certificate: the last eight octets of its hash (IEEE 1609.2, 6.3.26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashedId8(pub [u8; 8]);

impl fmt::Display for HashedId8 {
    /// Writes 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Security of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// The packet has no security header.
    Unsecured,
    /// The packet is signed; neither the signature nor the certificate was verified.
    Unverified {
        /// Digest of the certificate that the packet names as its signer's.
        signer: HashedId8,
    },
}

/// Treatment of signed packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityPolicy {
    /// Signed packets are dropped, because nothing verifies them.
    #[default]
    None,
    /// Signed packets are accepted and marked; signatures are not verified. They are not forwarded.
    Unverified,
}

/// Reason why signed data cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityError {
    /// The octets are not an encoding of `Ieee1609Dot2Data`.
    Invalid,
    /// A valid form without a readable payload or without a signer: encrypted, an external payload, self-signed, or another
    /// version of the protocol.
    Unsupported,
}

impl From<SecurityError> for DropReason {
    fn from(error: SecurityError) -> Self {
        match error {
            SecurityError::Invalid => Self::SecurityInvalid,
            SecurityError::Unsupported => Self::SecurityUnsupported,
        }
    }
}
