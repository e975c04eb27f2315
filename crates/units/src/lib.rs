//! Quantities, positions and time, as types.
//!
//! There is no clock here: a [`Now`] is made by whoever owns a clock (`viaduct_bus::clock`) or a simulation, and travels as
//! an argument. There is no scaled integer and no "unavailable" code either: those end at the codecs, and what is not
//! known is `None`.

mod position;
mod quantity;
mod random;
mod station;
mod time;

pub use position::{BoundingBox, BoundingBoxError, Position};
pub use quantity::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared};
pub use random::Rng;
pub use station::{StationId, StationType};
pub use time::{ITS_EPOCH_TAI, Mono, Now, Tai, TimestampIts};
