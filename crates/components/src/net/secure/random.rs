//! The source of random numbers, which the owner of an endpoint provides.

use ring::rand::SecureRandom as _;

/// The source has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random numbers")]
pub struct RandomError;

/// A cryptographically secure source of random numbers.
pub trait Random {
    /// Fills the slice.
    ///
    /// # Errors
    /// The source has no random numbers. The slice is not to be used.
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), RandomError>;
}

/// The random numbers of the operating system.
#[derive(Debug)]
pub struct SystemRandom(ring::rand::SystemRandom);

impl Default for SystemRandom {
    fn default() -> Self {
        Self(ring::rand::SystemRandom::new())
    }
}

impl Random for SystemRandom {
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), RandomError> {
        self.0.fill(octets).map_err(|_| RandomError)
    }
}

/// Returns an array of random octets.
pub(in crate::net) fn octets<const N: usize>(random: &mut dyn Random) -> Result<[u8; N], RandomError> {
    let mut octets = [0; N];
    random.fill(&mut octets)?;
    Ok(octets)
}
