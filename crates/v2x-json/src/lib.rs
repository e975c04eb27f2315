//! JSON of the messages on the bus. This crate is the only one that defines their JSON form.
//!
//! # The style
//!
//! Names are in snake_case and end in the unit (`speed_mps`), times are RFC 3339 in UTC, values of enumerations are in
//! lower case without a prefix (`received`, `new`, `cam`).
//!
//! [`protobuf`] writes and reads messages of any protobuf type that has a schema. [`dialect`] reads the requests of
//! applications and writes the messages of stations, in this style or in the style of vanetza-nap.

pub mod dialect;
pub mod protobuf;
