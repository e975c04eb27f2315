//! The tables of the scaled JSON style: the step of each INTEGER with a unit and the names of the bits of each BIT STRING.

mod bits;
mod field_kinds;
mod legacy_names;
mod quantities;

use crate::JsonStyle;

/// The style of vanetza-nap with the units of the ETSI messages, see [`viaduct_asn1`].
pub const SCALED: JsonStyle = JsonStyle::Scaled(field_kinds::FIELD_KINDS);
