//! Texts of limited length.
//!
//! The size of a UTF8String is not part of its encoding (X.691, 30.3), but rasn 0.28.15 decodes UPER as if it was.
//! These types implement by hand the code that the derive would generate, without the size, and check the size themselves.

use rasn::{
    AsnType, Codec, Decode, Decoder, Encode, Encoder, constraints,
    de::Error as _,
    enc::Error as _,
    size_constraint,
    types::{Constraints, Identifier, Tag, Utf8String},
};

/// Largest length of a [`CompanyName`], in characters.
const COMPANY_NAME_MAX: usize = 24;

/// Name of a company.
///
/// 1 to 24 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompanyName(pub Utf8String);

impl CompanyName {
    fn has_valid_size(&self) -> bool {
        (1..=COMPANY_NAME_MAX).contains(&self.0.chars().count())
    }
}

impl AsnType for CompanyName {
    const TAG: Tag = Tag::UTF8_STRING;
}

impl Encode for CompanyName {
    fn encode_with_tag_and_constraints<'b, E: Encoder<'b>>(
        &self,
        encoder: &mut E,
        tag: Tag,
        _: Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        if !self.has_valid_size() {
            return Err(E::Error::custom("a company's name has 1 to 24 characters", encoder.codec()));
        }
        encoder.encode_utf8_string(tag, Constraints::NONE, &self.0, identifier).map(drop)
    }
}

impl Decode for CompanyName {
    fn decode_with_tag_and_constraints<D: Decoder>(
        decoder: &mut D,
        tag: Tag,
        _: Constraints,
    ) -> Result<Self, D::Error> {
        // The JSON reader of this project reports the member and its size if the size is invalid.
        let in_json = decoder.codec() == Codec::Jer;
        let size = if in_json { constraints!(size_constraint!(1, 24)) } else { Constraints::NONE };
        let name = Self(decoder.decode_utf8_string(tag, size)?);
        if name.has_valid_size() {
            return Ok(name);
        }
        Err(D::Error::custom("a company's name has 1 to 24 characters", decoder.codec()))
    }
}
