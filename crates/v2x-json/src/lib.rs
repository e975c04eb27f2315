//! JSON of the messages on the bus.
//!
//! One part of it is in another crate: the JSON of the ETSI messages with its scaled units ([`viaduct_etsi`]).
//!
//! # The style
//!
//! Names are in snake_case and end in the unit (`speed_mps`). Times are RFC 3339 in UTC. Values of enumerations are in
//! lower case without a prefix (`received`, `new`, `cam`).
//!
//! [`write_message`] and [`write_error`] write a V2X message and an error of a station. [`protobuf`] writes and reads messages of any protobuf type that has a schema. [`dialect`] reads the requests of
//! applications and writes the messages of stations, in this style or in the style of vanetza-nap.

mod area;
pub mod dialect;
mod envelope;
pub mod protobuf;
mod timestamp;

pub use area::AreaText;
pub use envelope::{message_json, write_error, write_message};
pub use timestamp::timestamp_text;

/// Longest error text and longest member name in it, in characters.
const ERROR_CHARACTERS_MAX: usize = 240;

/// Shortens a text, to limit the length of errors.
fn shortened(text: &str) -> String {
    text.chars().take(ERROR_CHARACTERS_MAX).collect()
}
