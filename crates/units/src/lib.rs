//! Quantities, positions, time, station identities and random numbers, as types.
//!
//! This crate reads no clock: the owner of a clock (`viaduct_bus::clock`) or a simulation makes a [`Now`] and passes it
//! on as an argument. There are no scaled integers and no "unavailable" codes: the codecs convert them, and an unknown
//! value is `None`.

mod position;
mod quantity;
mod random;
mod rate_limiter;
pub mod retransmission;
mod station;
mod time;

pub use position::{BoundingBox, BoundingBoxError, Position};
pub use quantity::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared};
pub use random::Rng;
pub use rate_limiter::RateLimiter;
pub use station::{StationId, StationType};
pub use time::{ITS_EPOCH_TAI, Mono, Now, Tai, TimestampIts};
