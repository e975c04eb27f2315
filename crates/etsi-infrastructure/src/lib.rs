//! Messages of roads and traffic lights (ETSI TS 103 301): types from c-its-parser, with their UPER and JSON codecs.
//!
//! These messages have their own crate to reduce compile time: their dictionary is larger than all other messages
//! together, and few stations send them. They are compiled in parallel with the other messages and with less inlining
//! (`docs/decisions/0007-two-crates-of-messages.md`). Use them through the crate `etsi`, which re-exports them under
//! the same names.

pub mod ivim_ts103301_v221;
pub mod mapem_ts103301_v221;
pub mod spatem_ts103301_v221;
pub mod srem_ts103301_v221;
pub mod ssem_ts103301_v221;

use viaduct_asn1::{JsonError, JsonForm, JsonStyle, UperError, json, uper};
