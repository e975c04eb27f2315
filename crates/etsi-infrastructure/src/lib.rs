//! The messages of roads and traffic lights (ETSI TS 103 301): types from c-its-parser, with their UPER and JSON codecs.
//!
//! They are a crate of their own because of what the compiler does with them: the dictionary below them is larger than all
//! other messages together, and few stations send them, so they are compiled beside the others and with less
//! inlining (`docs/decisions/0007-two-crates-of-messages.md`). Use them through the crate `etsi`, which has them under the
//! same names.

pub mod ivim_ts103301_v221;
pub mod mapem_ts103301_v221;
pub mod spatem_ts103301_v221;
pub mod srem_ts103301_v221;
pub mod ssem_ts103301_v221;

use viaduct_asn1::{JsonError, JsonForm, JsonStyle, UperError, json, uper};
