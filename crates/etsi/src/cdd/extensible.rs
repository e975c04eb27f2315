//! Integers with an extensible range.
//!
//! rasn's derive also takes the range of the Rust type as a constraint, and the intersection of the two loses the
//! extension marker. These types implement by hand the code that the derive would generate.

/// ASN.1's `INTEGER (low..high, ...)` for a newtype of `i64`.
macro_rules! extensible_integer {
    ($name:ident, $low:literal, $high:literal) => {
        impl rasn::AsnType for $name {
            const TAG: rasn::types::Tag = rasn::types::Tag::INTEGER;
            const CONSTRAINTS: rasn::types::Constraints =
                rasn::constraints!(rasn::value_constraint!($low, $high, extensible));
        }

        impl rasn::Encode for $name {
            fn encode_with_tag_and_constraints<'b, E: rasn::Encoder<'b>>(
                &self,
                encoder: &mut E,
                tag: rasn::types::Tag,
                constraints: rasn::types::Constraints,
                identifier: rasn::types::Identifier,
            ) -> Result<(), E::Error> {
                encoder.encode_integer(tag, constraints, &self.0, identifier).map(drop)
            }
        }

        impl rasn::Decode for $name {
            fn decode_with_tag_and_constraints<D: rasn::Decoder>(
                decoder: &mut D,
                tag: rasn::types::Tag,
                constraints: rasn::types::Constraints,
            ) -> Result<Self, D::Error> {
                decoder.decode_integer(tag, constraints).map(Self)
            }
        }
    };
}

pub(crate) use extensible_integer;
