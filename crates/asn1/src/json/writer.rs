//! A rasn encoder that writes JSON as it goes.
//!
//! Short functions are inlined: codecs are compiled in the crates of the messages, and these with them.

use rasn::{
    Codec,
    enc::{Encode, Encoder},
    error::EncodeError,
    types::{self, Choice, Constraints, Constructed, Enumerated, Identifier, IntegerType, Tag, TagTree},
};

use super::{
    scaled::{FieldKind, FieldKinds, unnamed_bit},
    style::JsonStyle,
};

/// The name of a value and the kind of its field.
#[derive(Clone, Copy)]
struct Label {
    name: &'static str,
    /// In the scaled style: the kind of the field beyond its base type.
    field_kind: Option<FieldKind>,
}

/// The label of a value without a name: an element of an array, the root of the text.
const UNNAMED: Label = Label { name: "", field_kind: None };
const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

type Written = Result<(), EncodeError>;

/// Writes values one after another into a buffer that it borrows.
pub struct JsonWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Length of `out` before this text.
    start: usize,
    /// Names of the remaining members, the next one last. rasn calls the encoder for each member in the order of declaration,
    /// absent ones included, but without its name. Therefore a SEQUENCE puts all its names here at its beginning.
    names: Vec<Label>,
    style: JsonStyle,
    /// `true` if the next SEQUENCE is a group of extension additions, whose members belong to the enclosing object.
    group: bool,
}

impl<'o> JsonWriter<'o> {
    /// Appends the output of `body` to `out`.
    ///
    /// Writing fails for types that no message contains (REAL, times). In that case only `null` is appended.
    pub fn write(style: JsonStyle, out: &'o mut Vec<u8>, body: impl FnOnce(&mut Self) -> Written) {
        let start = out.len();
        let mut writer = Self { out, start, names: Vec::with_capacity(64), style, group: false };
        let written = body(&mut writer);
        debug_assert!(written.is_ok(), "{written:?}");
        if written.is_err() {
            writer.out.truncate(start);
            writer.out.extend_from_slice(b"null");
        }
    }

    /// Sets the name of the next value.
    #[inline]
    pub fn name(&mut self, name: &'static str) {
        self.names.push(Label { name, field_kind: None });
    }

    /// Begins an object; [`Self::close`] with `b'}'` ends it.
    #[inline]
    pub fn open_object(&mut self) {
        self.begin_value();
        self.out.push(b'{');
    }

    /// Begins an array; each element is announced by [`Self::element`], [`Self::close`] with `b']'` ends it.
    #[inline]
    pub fn open_array(&mut self) {
        self.begin_value();
        self.out.push(b'[');
    }

    /// Declares the next value an element of an array.
    #[inline]
    pub fn element(&mut self) {
        self.names.push(UNNAMED);
    }

    /// Ends an object or an array.
    #[inline]
    pub fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.begin_value();
        push_integer(self.out, value);
    }

    /// Writes octets as hexadecimal text.
    #[inline]
    pub fn octets(&mut self, octets: &[u8]) {
        self.begin_value();
        self.out.push(b'"');
        self.out.extend(octets.iter().flat_map(|octet| hex(*octet)));
        self.out.push(b'"');
    }

    /// Writes the comma after the previous value, and the name.
    #[inline]
    fn begin_value(&mut self) {
        self.comma();
        if let Some(Label { name, .. }) = self.names.pop()
            && !name.is_empty()
        {
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
    }

    #[inline]
    fn comma(&mut self) {
        let first = self.out.len() == self.start || matches!(self.out.last(), Some(b'{' | b'[' | b':'));
        if !first {
            self.out.push(b',');
        }
    }

    fn sequence<const R: usize, const E: usize, C: Constructed<R, E>>(
        &mut self,
        members: impl FnOnce(&mut Self) -> Written,
    ) -> Written {
        let group = std::mem::take(&mut self.group);
        let place = if group { None } else { self.field_kind() };
        if !group {
            self.open_object();
        }
        let bottom = self.names.len();
        let kinds = self.kinds_of::<C>(place);
        let label = |name| Label { name: kinds.shown(name), field_kind: kinds.get(name) };
        self.names.extend(C::FIELDS.iter().map(|field| label(field.name)));
        if let Some(extended) = &C::EXTENDED_FIELDS {
            self.names.extend(extended.iter().map(|field| label(field.name)));
        }
        if let Some(ours) = self.names.get_mut(bottom..) {
            ours.reverse();
        }
        members(self)?;
        self.names.truncate(bottom);
        if !group {
            self.close(b'}');
        }
        Ok(())
    }

    fn list<'v, T: Encode + 'v>(&mut self, elements: impl Iterator<Item = &'v T>) -> Written {
        self.open_array();
        for element in elements {
            self.element();
            element.encode(self)?;
        }
        self.close(b']');
        Ok(())
    }

    #[inline]
    fn text(&mut self, text: &str) -> Written {
        self.begin_value();
        // Escapes; writing into a Vec cannot fail.
        serde_json::to_writer(&mut *self.out, text).map_err(|_| unsupported("text"))
    }

    #[inline]
    fn absent(&mut self) -> Written {
        self.names.pop();
        Ok(())
    }

    fn kinds_of<T>(&self, place: Option<FieldKind>) -> FieldKinds {
        match self.style {
            JsonStyle::Raw => FieldKinds::default(),
            JsonStyle::Scaled(table) => FieldKinds::of::<T>(table, place),
        }
    }

    /// Returns the kind of the next field.
    #[inline]
    fn field_kind(&self) -> Option<FieldKind> {
        self.names.last().and_then(|label| label.field_kind)
    }

    /// Writes a quantity in its unit, or `null`.
    #[inline]
    fn quantity(&mut self, value: Option<f64>) {
        self.begin_value();
        match value {
            Some(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            None => self.out.extend_from_slice(b"null"),
        }
    }

    /// Writes the bits that have a name, and of the others those that are set. If the size is not fixed, writes all bits, so
    /// that the text contains the size.
    fn named_bits(&mut self, value: &types::BitStr, fixed: bool) {
        let names: &[&str] = match self.field_kind() {
            Some(FieldKind::Bits(names)) => names,
            _ => &[],
        };
        self.open_object();
        for (at, bit) in value.iter().by_vals().enumerate() {
            match names.get(at) {
                Some(name) => self.flag(name, bit),
                None if bit || !fixed => self.flag(&unnamed_bit(at), bit),
                None => {}
            }
        }
        self.close(b'}');
    }

    /// Writes a boolean member.
    fn flag(&mut self, name: &str, value: bool) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(if value { b"\":true" } else { b"\":false" });
    }
}

#[inline]
fn hex(octet: u8) -> [u8; 2] {
    [octet >> 4, octet & 15].map(|nibble| HEX_DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'))
}

/// Appends the decimal digits.
#[inline]
fn push_integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    // An i64 has at most 19 digits.
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    let mut rest = value.unsigned_abs();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        first -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(first..).unwrap_or_default());
}

fn unsupported(what: &'static str) -> EncodeError {
    EncodeError::opaque_conversion_failed(what.to_owned(), Codec::Jer)
}

#[inline]
fn holds(tree: &TagTree, tag: Tag) -> bool {
    match tree {
        TagTree::Leaf(leaf) => *leaf == tag,
        TagTree::Choice(trees) => trees.iter().any(|tree| holds(tree, tag)),
    }
}

/// Returns the name of the variant with the tag.
fn variant_name<C: Choice>(tag: Tag) -> Option<&'static str> {
    let variants = C::VARIANTS.iter().chain(C::EXTENDED_VARIANTS.unwrap_or_default());
    variants.zip(C::IDENTIFIERS).find(|(tree, _)| holds(tree, tag)).map(|(_, name)| *name)
}

impl<'o> Encoder<'_> for JsonWriter<'o> {
    type Ok = ();
    type Error = EncodeError;
    type AnyEncoder<'x, const R: usize, const E: usize> = JsonWriter<'o>;

    fn codec(&self) -> Codec {
        Codec::Jer
    }

    fn encode_sequence<'b, const R: usize, const E: usize, C, F>(
        &'b mut self,
        _: Tag,
        members: F,
        _: Identifier,
    ) -> Written
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Written,
    {
        self.sequence::<R, E, C>(members)
    }

    fn encode_set<'b, const R: usize, const E: usize, C, F>(&'b mut self, _: Tag, members: F, _: Identifier) -> Written
    where
        C: Constructed<R, E>,
        F: FnOnce(&mut Self::AnyEncoder<'b, R, E>) -> Written,
    {
        self.sequence::<R, E, C>(members)
    }

    fn encode_sequence_of<T: Encode>(&mut self, _: Tag, value: &[T], _: Constraints, _: Identifier) -> Written {
        self.list(value.iter())
    }

    fn encode_set_of<T: Encode + Eq + std::hash::Hash>(
        &mut self,
        _: Tag,
        value: &types::SetOf<T>,
        _: Constraints,
        _: Identifier,
    ) -> Written {
        self.list(value.to_vec().into_iter())
    }

    fn encode_choice<T: Encode + Choice>(
        &mut self,
        _: Constraints,
        tag: Tag,
        variant: impl FnOnce(&mut Self) -> Result<Tag, EncodeError>,
        _: Identifier,
    ) -> Written {
        let name = variant_name::<T>(tag).ok_or_else(|| EncodeError::variant_not_in_choice(Codec::Jer))?;
        let field_kind = self.kinds_of::<T>(None).get(name);
        self.open_object();
        self.names.push(Label { name, field_kind });
        variant(self)?;
        self.close(b'}');
        Ok(())
    }

    fn encode_integer<I: IntegerType>(&mut self, _: Tag, _: Constraints, value: &I, _: Identifier) -> Written {
        match (value.to_i64(), self.field_kind()) {
            (Some(value), Some(FieldKind::Quantity(quantity))) => self.quantity(quantity.show(value)),
            (Some(value), _) => self.integer(value),
            // An INTEGER beyond 64 bits: PathDeltaTime is extensible. The reader rejects it.
            (None, _) => {
                self.begin_value();
                self.out.extend_from_slice(value.to_string().as_bytes());
            }
        }
        Ok(())
    }

    fn encode_enumerated<T: Enumerated>(&mut self, _: Tag, value: &T, _: Identifier) -> Written {
        if self.style.is_scaled() {
            self.integer(i64::try_from(value.discriminant()).unwrap_or(i64::MAX));
            return Ok(());
        }
        self.begin_value();
        self.out.push(b'"');
        self.out.extend_from_slice(value.identifier().as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    #[inline]
    fn encode_bool(&mut self, _: Tag, value: bool, _: Identifier) -> Written {
        self.begin_value();
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn encode_null(&mut self, _: Tag, _: Identifier) -> Written {
        self.begin_value();
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    #[inline]
    fn encode_bit_string(&mut self, _: Tag, constraints: Constraints, value: &types::BitStr, _: Identifier) -> Written {
        let fixed = super::has_fixed_size(&constraints);
        if self.style.is_scaled() {
            self.named_bits(value, fixed);
            return Ok(());
        }
        let octets = value.chunks(8).map(|bits| {
            let octet = bits.iter().by_vals().fold(0_u8, |octet, bit| octet << 1 | u8::from(bit));
            octet << (8 - bits.len())
        });
        if !fixed {
            self.open_object();
            self.name("value");
        }
        self.begin_value();
        self.out.push(b'"');
        self.out.extend(octets.flat_map(hex));
        self.out.push(b'"');
        if !fixed {
            self.name("length");
            self.integer(i64::try_from(value.len()).unwrap_or(i64::MAX));
            self.close(b'}');
        }
        Ok(())
    }

    #[inline]
    fn encode_octet_string(&mut self, _: Tag, _: Constraints, value: &[u8], _: Identifier) -> Written {
        self.octets(value);
        Ok(())
    }

    fn encode_any(&mut self, _: Tag, value: &types::Any, _: Identifier) -> Written {
        self.octets(value.as_bytes());
        Ok(())
    }

    #[inline]
    fn encode_utf8_string(&mut self, _: Tag, _: Constraints, value: &str, _: Identifier) -> Written {
        self.text(value)
    }

    #[inline]
    fn encode_ia5_string(&mut self, _: Tag, _: Constraints, value: &types::Ia5String, _: Identifier) -> Written {
        self.text(&String::from_utf8_lossy(value.as_iso646_bytes()))
    }

    fn encode_visible_string(
        &mut self,
        _: Tag,
        _: Constraints,
        value: &types::VisibleString,
        _: Identifier,
    ) -> Written {
        self.text(&String::from_utf8_lossy(value.as_iso646_bytes()))
    }

    fn encode_printable_string(
        &mut self,
        _: Tag,
        _: Constraints,
        value: &types::PrintableString,
        _: Identifier,
    ) -> Written {
        self.text(&String::from_utf8_lossy(value.as_bytes()))
    }

    fn encode_numeric_string(
        &mut self,
        _: Tag,
        _: Constraints,
        value: &types::NumericString,
        _: Identifier,
    ) -> Written {
        self.text(&String::from_utf8_lossy(value.as_bytes()))
    }

    fn encode_object_identifier(&mut self, _: Tag, value: &[u32], _: Identifier) -> Written {
        let arcs: Vec<String> = value.iter().map(ToString::to_string).collect();
        self.text(&arcs.join("."))
    }

    fn encode_real<T: types::RealType>(&mut self, _: Tag, _: Constraints, _: &T, _: Identifier) -> Written {
        Err(unsupported("REAL"))
    }

    fn encode_general_string(&mut self, _: Tag, _: Constraints, _: &types::GeneralString, _: Identifier) -> Written {
        Err(unsupported("GeneralString"))
    }

    fn encode_graphic_string(&mut self, _: Tag, _: Constraints, _: &types::GraphicString, _: Identifier) -> Written {
        Err(unsupported("GraphicString"))
    }

    fn encode_teletex_string(&mut self, _: Tag, _: Constraints, _: &types::TeletexString, _: Identifier) -> Written {
        Err(unsupported("TeletexString"))
    }

    fn encode_bmp_string(&mut self, _: Tag, _: Constraints, _: &types::BmpString, _: Identifier) -> Written {
        Err(unsupported("BMPString"))
    }

    fn encode_generalized_time(&mut self, _: Tag, _: &types::GeneralizedTime, _: Identifier) -> Written {
        Err(unsupported("GeneralizedTime"))
    }

    fn encode_utc_time(&mut self, _: Tag, _: &types::UtcTime, _: Identifier) -> Written {
        Err(unsupported("UTCTime"))
    }

    fn encode_date(&mut self, _: Tag, _: &types::Date, _: Identifier) -> Written {
        Err(unsupported("DATE"))
    }

    fn encode_explicit_prefix<V: Encode>(&mut self, _: Tag, value: &V, _: Identifier) -> Written {
        value.encode(self)
    }

    fn encode_some<T: Encode>(&mut self, value: &T, _: Identifier) -> Written {
        value.encode(self)
    }

    fn encode_some_with_tag_and_constraints<T: Encode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
        value: &T,
        identifier: Identifier,
    ) -> Written {
        value.encode_with_tag_and_constraints(self, tag, constraints, identifier)
    }

    fn encode_none<T: Encode>(&mut self, _: Identifier) -> Written {
        self.absent()
    }

    #[inline]
    fn encode_none_with_tag(&mut self, _: Tag, _: Identifier) -> Written {
        self.absent()
    }

    fn encode_extension_addition<T: Encode>(&mut self, _: Tag, _: Constraints, value: T, _: Identifier) -> Written {
        value.encode(self)
    }

    fn encode_extension_addition_group<const R: usize, const E: usize, T>(
        &mut self,
        value: Option<&T>,
        _: Identifier,
    ) -> Written
    where
        T: Encode + Constructed<R, E>,
    {
        // A group has no name of its own.
        self.names.pop();
        self.group = value.is_some();
        value.map_or(Ok(()), |value| value.encode(self))
    }

    // A default value is written although it is absent on the wire: the reader does not have to know the default.
    fn encode_default<T: Encode + PartialEq>(&mut self, value: &T, _: impl FnOnce() -> T, _: Identifier) -> Written {
        value.encode(self)
    }

    fn encode_default_with_tag<T: Encode + PartialEq>(
        &mut self,
        _: Tag,
        value: &T,
        _: impl FnOnce() -> T,
        _: Identifier,
    ) -> Written {
        value.encode(self)
    }

    fn encode_default_with_tag_and_constraints<T: Encode + PartialEq>(
        &mut self,
        _: Tag,
        _: Constraints,
        value: &T,
        _: impl FnOnce() -> T,
        _: Identifier,
    ) -> Written {
        value.encode(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_their_digits() {
        for value in [0, 7, -1, 10, 900_000_001, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_integer(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn a_text_is_appended_to_the_buffer() {
        let mut out = b"{}".to_vec();
        JsonWriter::write(JsonStyle::Raw, &mut out, |writer| {
            writer.open_array();
            writer.element();
            writer.octets(&[0x0A, 0xFF]);
            writer.element();
            writer.integer(-3);
            writer.close(b']');
            Ok(())
        });
        assert_eq!(out, b"{}[\"0AFF\",-3]");
    }
}
