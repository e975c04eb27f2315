//! A check before the UPER encoder for lists beyond the root of their extensible size. rasn 0.28.15 encodes such lists
//! wrongly, see [`crate::extended_sizes`]. About fifty lists of the supported editions have an extensible size.
//!
//! The check is a rasn encoder that writes nothing.

use rasn::{
    Codec,
    enc::{Encode, Encoder, Error as _},
    error::EncodeError,
    types::{self, Choice, Constraints, Constructed, Enumerated, Identifier, IntegerType, RealType, Tag},
};

type Checked = Result<(), EncodeError>;

/// Returns `true` if a SEQUENCE OF inside the value is beyond the root of its extensible size.
///
/// # Errors
/// Returns an error if the size of a SEQUENCE OF is not extensible and excludes its number of elements.
pub(crate) fn check<T: Encode>(value: &T) -> Result<bool, EncodeError> {
    let mut check = SizeCheck { is_beyond_root: false };
    value.encode(&mut check)?;
    Ok(check.is_beyond_root)
}

struct SizeCheck {
    /// `true` if a list beyond the root of its extensible size was found.
    is_beyond_root: bool,
}

impl SizeCheck {
    fn elements<T: Encode>(&mut self, elements: &[T], constraints: &Constraints) -> Checked {
        if let Some(size) = constraints.size()
            && !size.constraint.contains(&elements.len())
        {
            if size.extensible.is_none() {
                return Err(EncodeError::custom(format_args!("a list of {} elements", elements.len()), Codec::Uper));
            }
            self.is_beyond_root = true;
        }
        elements.iter().try_for_each(|element| element.encode(self))
    }
}

/// Leaves have no elements.
macro_rules! leaves {
    ($($method:ident($($argument:ty),*);)*) => {
        $(fn $method(&mut self, $(_: $argument),*) -> Checked {
            Ok(())
        })*
    };
}

impl Encoder<'_> for SizeCheck {
    type Ok = ();
    type Error = EncodeError;
    type AnyEncoder<'x, const R: usize, const E: usize> = Self;

    fn codec(&self) -> Codec {
        Codec::Uper
    }

    fn encode_sequence_of<T: Encode>(&mut self, _: Tag, value: &[T], size: Constraints, _: Identifier) -> Checked {
        self.elements(value, &size)
    }

    fn encode_set_of<T: Encode + Eq + std::hash::Hash>(
        &mut self,
        _: Tag,
        value: &types::SetOf<T>,
        size: Constraints,
        _: Identifier,
    ) -> Checked {
        self.elements(&value.to_vec(), &size)
    }

    fn encode_sequence<'b, const R: usize, const E: usize, C, F>(
        &'b mut self,
        _: Tag,
        members: F,
        _: Identifier,
    ) -> Checked
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Checked,
    {
        members(self)
    }

    fn encode_set<'b, const R: usize, const E: usize, C, F>(&'b mut self, _: Tag, members: F, _: Identifier) -> Checked
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Checked,
    {
        members(self)
    }

    fn encode_choice<T: Encode + Choice>(
        &mut self,
        _: Constraints,
        _: Tag,
        variant: impl FnOnce(&mut Self) -> Result<Tag, EncodeError>,
        _: Identifier,
    ) -> Checked {
        variant(self).map(drop)
    }

    fn encode_explicit_prefix<V: Encode>(&mut self, _: Tag, value: &V, _: Identifier) -> Checked {
        value.encode(self)
    }

    fn encode_some<T: Encode>(&mut self, value: &T, _: Identifier) -> Checked {
        value.encode(self)
    }

    fn encode_some_with_tag_and_constraints<T: Encode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: &T,
        identifier: Identifier,
    ) -> Checked {
        value.encode_with_tag_and_constraints(self, tag, constraints, identifier)
    }

    fn encode_extension_addition<T: Encode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: T,
        identifier: Identifier,
    ) -> Checked {
        value.encode_with_tag_and_constraints(self, tag, constraints, identifier)
    }

    fn encode_extension_addition_group<const R: usize, const E: usize, T>(
        &mut self,
        value: Option<&T>,
        _: Identifier,
    ) -> Checked
    where
        T: Encode + Constructed<R, E>,
    {
        value.map_or(Ok(()), |value| value.encode(self))
    }

    fn encode_none<T: Encode>(&mut self, _: Identifier) -> Checked {
        Ok(())
    }

    fn encode_integer<I: IntegerType>(&mut self, _: Tag, _: Constraints, _: &I, _: Identifier) -> Checked {
        Ok(())
    }

    fn encode_enumerated<T: Enumerated>(&mut self, _: Tag, _: &T, _: Identifier) -> Checked {
        Ok(())
    }

    fn encode_real<T: RealType>(&mut self, _: Tag, _: Constraints, _: &T, _: Identifier) -> Checked {
        Ok(())
    }

    leaves! {
        encode_none_with_tag(Tag, Identifier);
        encode_any(Tag, &types::Any, Identifier);
        encode_bool(Tag, bool, Identifier);
        encode_null(Tag, Identifier);
        encode_bit_string(Tag, Constraints, &types::BitStr, Identifier);
        encode_object_identifier(Tag, &[u32], Identifier);
        encode_octet_string(Tag, Constraints, &[u8], Identifier);
        encode_general_string(Tag, Constraints, &types::GeneralString, Identifier);
        encode_graphic_string(Tag, Constraints, &types::GraphicString, Identifier);
        encode_utf8_string(Tag, Constraints, &str, Identifier);
        encode_visible_string(Tag, Constraints, &types::VisibleString, Identifier);
        encode_ia5_string(Tag, Constraints, &types::Ia5String, Identifier);
        encode_printable_string(Tag, Constraints, &types::PrintableString, Identifier);
        encode_numeric_string(Tag, Constraints, &types::NumericString, Identifier);
        encode_teletex_string(Tag, Constraints, &types::TeletexString, Identifier);
        encode_bmp_string(Tag, Constraints, &types::BmpString, Identifier);
        encode_generalized_time(Tag, &types::GeneralizedTime, Identifier);
        encode_utc_time(Tag, &types::UtcTime, Identifier);
        encode_date(Tag, &types::Date, Identifier);
    }
}
