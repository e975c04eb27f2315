//! A UPER encoder for messages with a list beyond the root of its extensible size.
//!
//! rasn 0.28.15 encodes such a list wrongly: it sets the extension bit, but then writes the length by the constraint.
//! If there are fewer elements than the constraint's lower end, its arithmetic overflows. By X.691, 20.4 the list is the
//! extension bit 1, the number of elements as an unconstrained length, and the elements.
//!
//! rasn's encoder cannot be changed for lists alone, so this encoder contains it: rasn encodes every value whose parts are
//! bits already. A SEQUENCE, for example, first encodes its members into [`Bits`], and then rasn writes a SEQUENCE of the same
//! type with these bits as its members. Everything but the lists beyond the root is rasn's encoding. Bits are copied
//! once for each enclosing value, so this encoder is slower; [`crate::uper::encode`] uses it only if
//! [`crate::sizes::check`] finds such a list.

use rasn::{
    AsnType, Codec,
    enc::{Encode, Encoder, Error as _},
    error::EncodeError,
    types::{
        self, BitString, Choice, Constraints, Constructed, Enumerated, Identifier, IntegerType, RealType, Tag,
        constraints::{Extensible, Size},
    },
    uper::enc::{Encoder as RasnEncoder, EncoderOptions},
};

use crate::limits::LIST_ELEMENTS_MAX;

type Written = Result<(), EncodeError>;

/// Encodes a value. The result is padded to whole octets and has at least one.
pub(crate) fn encode<T: Encode>(value: &T) -> Result<Vec<u8>, EncodeError> {
    rasn::uper::encode(&ExtendedSizeEncoder::bits_of(|encoder| value.encode(encoder))?)
}

/// Returns `true` if the number of elements is outside the root of an extensible size.
pub(crate) fn is_beyond_root(size: Option<&Extensible<Size>>, elements: usize) -> bool {
    size.is_some_and(|size| size.extensible.is_some() && !size.constraint.contains(&elements))
}

/// The complete encoding of a value or of several values one after another, not padded.
#[derive(Debug, Default)]
struct Bits(BitString);

impl AsnType for Bits {
    const TAG: Tag = Tag::BIT_STRING;
}

impl Encode for Bits {
    /// Writes the bits, without a length.
    fn encode_with_tag_and_constraints<'b, E: Encoder<'b>>(
        &self,
        encoder: &mut E,
        tag: Tag,
        _: Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        // A BOOLEAN is one bit.
        for bit in &self.0 {
            encoder.encode_bool(tag, *bit, identifier)?;
        }
        Ok(())
    }
}

/// The encoder of one SEQUENCE, of one alternative of a CHOICE or of one element of a list.
#[derive(Debug, Default)]
struct ExtendedSizeEncoder {
    /// The values that are encoded so far: the root members of a SEQUENCE.
    bits: BitString,
    /// For each OPTIONAL or DEFAULT member of a SEQUENCE's root, in order: `true` if it is present.
    presence: Vec<bool>,
    /// For each extension addition of a SEQUENCE, in order: its encoding, or `None` if it is absent.
    additions: Vec<Option<Bits>>,
}

impl ExtendedSizeEncoder {
    /// Returns the bits that `write` encodes.
    fn bits_of(write: impl FnOnce(&mut Self) -> Written) -> Result<Bits, EncodeError> {
        let mut encoder = Self::default();
        write(&mut encoder)?;
        Ok(Bits(encoder.bits))
    }

    /// Appends the bits that `write` produces with rasn's encoder.
    fn write(&mut self, write: impl FnOnce(&mut RasnEncoder) -> Written) -> Written {
        let mut encoder = RasnEncoder::new(EncoderOptions::unaligned());
        write(&mut encoder)?;
        // rasn returns whole octets only. The last 1 marks the end of the value within its last octet.
        encoder.encode_bool(Tag::BOOL, true, Identifier::EMPTY)?;
        let mut bits = BitString::from_vec(encoder.output_into_vec());
        bits.truncate(bits.last_one().unwrap_or(0));
        self.bits.extend_from_bitslice(&bits);
        Ok(())
    }
}

/// Values that contain no other values: rasn encodes them.
macro_rules! leaves {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $method(&mut self, $($argument: $kind),*) -> Written {
            self.write(|encoder| encoder.$method($($argument),*))
        })*
    };
}

impl Encoder<'_> for ExtendedSizeEncoder {
    type Ok = ();
    type Error = EncodeError;
    type AnyEncoder<'x, const R: usize, const E: usize> = Self;

    fn codec(&self) -> Codec {
        Codec::Uper
    }

    fn encode_sequence_of<T: Encode>(
        &mut self,
        tag: Tag,
        value: &[T],
        constraints: Constraints,
        identifier: Identifier,
    ) -> Written {
        let elements = value.len();
        if elements > LIST_ELEMENTS_MAX {
            return Err(EncodeError::custom(format_args!("a list of {elements} elements"), Codec::Uper));
        }
        let encoded: Vec<Bits> =
            value.iter().map(|element| Self::bits_of(|encoder| element.encode(encoder))).collect::<Result<_, _>>()?;
        self.write(|encoder| {
            if is_beyond_root(constraints.size(), elements) {
                encoder.encode_bool(Tag::BOOL, true, Identifier::EMPTY)?;
                encoder.encode_sequence_of(tag, &encoded, Constraints::NONE, identifier)
            } else {
                encoder.encode_sequence_of(tag, &encoded, constraints, identifier)
            }
        })
    }

    fn encode_sequence<'b, const R: usize, const E: usize, C, F>(
        &'b mut self,
        tag: Tag,
        members: F,
        identifier: Identifier,
    ) -> Written
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Written,
    {
        let mut sequence = Self::default();
        members(&mut sequence)?;
        let Self { bits, presence, additions } = sequence;
        // The derive of each type calls the encoder once for each of its members. rasn relies on it.
        if presence.len() < C::FIELDS.number_of_optional_and_default_fields() || additions.len() != E {
            return Err(EncodeError::custom("a SEQUENCE with another number of members than its type", Codec::Uper));
        }
        self.write(|encoder| {
            encoder.encode_sequence::<R, E, C, _>(
                tag,
                |sequence| {
                    for is_present in presence {
                        if is_present {
                            sequence.encode_some_with_tag(Tag::NULL, &(), Identifier::EMPTY)?;
                        } else {
                            sequence.encode_none_with_tag(Tag::NULL, Identifier::EMPTY)?;
                        }
                    }
                    Bits(bits).encode(sequence)?;
                    for addition in additions {
                        sequence.encode_extension_addition(
                            Tag::BIT_STRING,
                            Constraints::NONE,
                            addition,
                            Identifier::EMPTY,
                        )?;
                    }
                    Ok(())
                },
                identifier,
            )
        })
    }

    fn encode_choice<T: Encode + Choice>(
        &mut self,
        constraints: Constraints,
        tag: Tag,
        variant: impl FnOnce(&mut Self) -> Result<Tag, EncodeError>,
        identifier: Identifier,
    ) -> Written {
        let alternative = Self::bits_of(|encoder| variant(encoder).map(drop))?;
        self.write(|encoder| {
            encoder.encode_choice::<T>(
                constraints,
                tag,
                |encoder| alternative.encode(encoder).map(|()| tag),
                identifier,
            )
        })
    }

    fn encode_extension_addition<T: Encode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: T,
        identifier: Identifier,
    ) -> Written {
        let addition = if value.is_present() {
            Some(Self::bits_of(|encoder| value.encode_with_tag_and_constraints(encoder, tag, constraints, identifier))?)
        } else {
            None
        };
        self.additions.push(addition);
        Ok(())
    }

    fn encode_extension_addition_group<const R: usize, const E: usize, T>(
        &mut self,
        value: Option<&T>,
        _: Identifier,
    ) -> Written
    where
        T: Encode + Constructed<R, E>,
    {
        let group = match value {
            Some(value) => Some(Self::bits_of(|encoder| value.encode(encoder))?),
            None => None,
        };
        // A group whose members are all absent is absent (X.691, 19.9): its encoding is zeros, like in rasn.
        let group = group.filter(|bits| T::FIELDS.has_required_field() || bits.0.any());
        self.additions.push(group);
        Ok(())
    }

    fn encode_explicit_prefix<V: Encode>(&mut self, tag: Tag, value: &V, _: Identifier) -> Written {
        if V::IS_CHOICE { value.encode(self) } else { value.encode_with_tag(self, tag) }
    }

    fn encode_some<T: Encode>(&mut self, value: &T, _: Identifier) -> Written {
        self.presence.push(true);
        value.encode(self)
    }

    fn encode_some_with_tag<T: Encode>(&mut self, tag: Tag, value: &T, _: Identifier) -> Written {
        self.presence.push(true);
        value.encode_with_tag(self, tag)
    }

    fn encode_some_with_tag_and_constraints<T: Encode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: &T,
        identifier: Identifier,
    ) -> Written {
        self.presence.push(true);
        value.encode_with_tag_and_constraints(self, tag, constraints, identifier)
    }

    fn encode_none<T: Encode>(&mut self, _: Identifier) -> Written {
        self.presence.push(false);
        Ok(())
    }

    fn encode_none_with_tag(&mut self, _: Tag, _: Identifier) -> Written {
        self.presence.push(false);
        Ok(())
    }

    fn encode_integer<I: IntegerType>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: &I,
        identifier: Identifier,
    ) -> Written {
        self.write(|encoder| encoder.encode_integer(tag, constraints, value, identifier))
    }

    fn encode_enumerated<T: Enumerated>(&mut self, tag: Tag, value: &T, identifier: Identifier) -> Written {
        self.write(|encoder| encoder.encode_enumerated(tag, value, identifier))
    }

    fn encode_real<T: RealType>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: &T,
        identifier: Identifier,
    ) -> Written {
        self.write(|encoder| encoder.encode_real(tag, constraints, value, identifier))
    }

    fn encode_set<'b, const R: usize, const E: usize, C, F>(&'b mut self, _: Tag, _: F, _: Identifier) -> Written
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Written,
    {
        Err(EncodeError::custom("a SET beside a list beyond the root of its size", Codec::Uper))
    }

    fn encode_set_of<T: Encode + Eq + std::hash::Hash>(
        &mut self,
        tag: Tag,
        value: &types::SetOf<T>,
        constraints: Constraints,
        identifier: Identifier,
    ) -> Written {
        // rasn encodes the elements in the same order.
        self.encode_sequence_of(tag, &value.to_vec(), constraints, identifier)
    }

    leaves! {
        encode_any(tag: Tag, value: &types::Any, identifier: Identifier);
        encode_bool(tag: Tag, value: bool, identifier: Identifier);
        encode_null(tag: Tag, identifier: Identifier);
        encode_bit_string(tag: Tag, constraints: Constraints, value: &types::BitStr, identifier: Identifier);
        encode_object_identifier(tag: Tag, value: &[u32], identifier: Identifier);
        encode_octet_string(tag: Tag, constraints: Constraints, value: &[u8], identifier: Identifier);
        encode_general_string(tag: Tag, constraints: Constraints, value: &types::GeneralString, identifier: Identifier);
        encode_graphic_string(tag: Tag, constraints: Constraints, value: &types::GraphicString, identifier: Identifier);
        encode_utf8_string(tag: Tag, constraints: Constraints, value: &str, identifier: Identifier);
        encode_visible_string(tag: Tag, constraints: Constraints, value: &types::VisibleString, identifier: Identifier);
        encode_ia5_string(tag: Tag, constraints: Constraints, value: &types::Ia5String, identifier: Identifier);
        encode_printable_string(tag: Tag, constraints: Constraints, value: &types::PrintableString, identifier: Identifier);
        encode_numeric_string(tag: Tag, constraints: Constraints, value: &types::NumericString, identifier: Identifier);
        encode_teletex_string(tag: Tag, constraints: Constraints, value: &types::TeletexString, identifier: Identifier);
        encode_bmp_string(tag: Tag, constraints: Constraints, value: &types::BmpString, identifier: Identifier);
        encode_generalized_time(tag: Tag, value: &types::GeneralizedTime, identifier: Identifier);
        encode_utc_time(tag: Tag, value: &types::UtcTime, identifier: Identifier);
        encode_date(tag: Tag, value: &types::Date, identifier: Identifier);
    }
}

#[cfg(test)]
mod tests {
    use rasn::{Decode, prelude::*};

    use super::*;
    use crate::{error::UperError, uper};

    /// Members and additions of each kind that the messages have.
    #[derive(Clone, Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(automatic_tags)]
    #[non_exhaustive]
    struct Everything {
        flag: bool,
        #[rasn(value("-5..=100"))]
        number: i64,
        unbounded_number: Integer,
        nothing: (),
        kind: Kind,
        #[rasn(size("3", extensible))]
        bits: BitString,
        #[rasn(size("1..=4"))]
        octets: Option<OctetString>,
        #[rasn(size("1..=3", extensible))]
        name: Option<Ia5String>,
        free_text: Utf8String,
        #[rasn(default = "seven")]
        with_default: u8,
        #[rasn(size("1..=3", extensible))]
        list: SequenceOf<Alternative>,
        fixed: Fixed,
        #[rasn(extension_addition)]
        added: Option<Short>,
        #[rasn(extension_addition_group)]
        group: Option<Group>,
        #[rasn(extension_addition)]
        added_number: Option<u8>,
    }

    fn seven() -> u8 {
        7
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, AsnType, Decode, Encode)]
    #[rasn(enumerated)]
    #[non_exhaustive]
    enum Kind {
        First,
        Second,
        Third,
        #[rasn(extension_addition)]
        Later,
    }

    #[derive(Clone, Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(choice, automatic_tags)]
    #[non_exhaustive]
    enum Alternative {
        Flag(bool),
        Nested(Short),
        #[rasn(extension_addition)]
        Later(Short),
        #[rasn(extension_addition)]
        Empty(()),
    }

    #[derive(Clone, Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(delegate, size("2"))]
    struct Fixed(SequenceOf<bool>);

    #[derive(Clone, Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(delegate, size("1..=4", extensible))]
    struct Short(SequenceOf<bool>);

    #[derive(Clone, Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(automatic_tags)]
    struct Group {
        first: Option<bool>,
        second: Option<Short>,
    }

    fn short(elements: usize) -> Short {
        Short((0..elements).map(|at| at % 3 == 0).collect())
    }

    fn least() -> Everything {
        Everything {
            flag: true,
            number: 3,
            unbounded_number: Integer::from(-70_000),
            nothing: (),
            kind: Kind::Second,
            bits: [true, false, true].into_iter().collect(),
            octets: None,
            name: None,
            free_text: "\u{e4}".into(),
            with_default: 7,
            list: vec![Alternative::Flag(true)],
            fixed: Fixed(vec![true, false]),
            added: None,
            group: None,
            added_number: None,
        }
    }

    fn most() -> Everything {
        Everything {
            number: 100,
            kind: Kind::Later,
            bits: [true; 20].into_iter().collect(),
            octets: Some(OctetString::from_static(&[1, 2, 3])),
            name: Some("longer".to_owned().try_into().unwrap()),
            with_default: 8,
            list: vec![Alternative::Nested(short(4)), Alternative::Later(short(1)), Alternative::Empty(())],
            added: Some(short(2)),
            group: Some(Group { first: None, second: Some(short(3)) }),
            added_number: Some(100),
            ..least()
        }
    }

    #[test]
    fn values_within_the_root_have_the_octets_of_rasn() {
        let values = [
            least(),
            most(),
            Everything { added: Some(short(1)), ..least() },
            Everything { group: Some(Group { first: Some(false), second: None }), ..most() },
            Everything { group: Some(Group { first: None, second: None }), ..most() },
            Everything { group: Some(Group { first: None, second: None }), ..least() },
        ];
        for value in values {
            assert!(!crate::sizes::check(&value).unwrap());
            assert_eq!(encode(&value).unwrap(), rasn::uper::encode(&value).unwrap(), "{value:?}");
        }
        // A value of no bits is one octet.
        assert_eq!(encode(&()).unwrap(), [0]);
    }

    /// Extension bit 1, eight or sixteen bits of length, the elements.
    #[test]
    fn a_list_beyond_the_root_has_an_unconstrained_length() {
        assert_eq!(uper::encode("T", &Short(vec![true])).unwrap(), [0b0001_0000]);
        assert_eq!(uper::encode("T", &Short(vec![])).unwrap(), [0b1000_0000, 0b0000_0000]);
        assert_eq!(uper::encode("T", &Short(vec![true; 5])).unwrap(), [0b1000_0010, 0b1111_1100]);
        let octets = uper::encode("T", &Short(vec![false; 128])).unwrap();
        assert_eq!((octets.len(), &octets[..3]), (1 + 2 + 16, &[0b1100_0000, 0b0100_0000, 0b0000_0000][..]));
    }

    #[test]
    fn lists_beyond_the_root_round_trip_in_each_place() {
        for elements in [0, 5, 127, 128, 1000, 16_384] {
            let alone = short(elements);
            let octets = uper::encode("T", &alone).unwrap();
            assert_eq!(uper::decode("T", &octets), Ok(alone), "{elements}");
        }
        for elements in [0, 5, 127, 128, 1000] {
            let beyond = short(elements);
            let alternatives = vec![Alternative::Nested(beyond.clone()); 5];
            let values = [
                Everything { list: alternatives, ..least() },
                Everything { list: vec![Alternative::Nested(beyond.clone())], ..most() },
                Everything { list: vec![Alternative::Later(beyond.clone())], ..most() },
                Everything { added: Some(beyond.clone()), ..least() },
                Everything { group: Some(Group { first: None, second: Some(beyond) }), ..most() },
            ];
            for value in values {
                let octets = uper::encode("T", &value).unwrap();
                assert_eq!(uper::decode("T", &octets), Ok(value), "{elements}");
            }
        }
    }

    #[test]
    fn a_size_that_is_not_extensible_and_a_list_that_is_too_long_are_errors() {
        let refusal = |result: Result<Vec<u8>, UperError>| result.unwrap_err().to_string();
        for elements in [0, 1, 3] {
            let value = Everything { fixed: Fixed(vec![true; elements]), added: Some(short(9)), ..least() };
            assert!(refusal(uper::encode("T", &value)).contains(&format!("a list of {elements} elements")));
            assert!(uper::encode_with_extended_sizes("T", &value).is_err());
        }
        let long = short(LIST_ELEMENTS_MAX + 1);
        assert!(refusal(uper::encode("T", &long)).contains("a list of 65536 elements"));
        let wrong = Everything { added: Some(short(9)), octets: Some(OctetString::from_static(&[0; 5])), ..least() };
        assert!(uper::encode("T", &wrong).is_err());
    }
}
