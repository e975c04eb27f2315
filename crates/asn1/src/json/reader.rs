//! A rasn decoder that reads JSON.

use rasn::{
    Codec,
    de::{Decode, Decoder, Error as _},
    error::DecodeError,
    types::{
        self, Constraints, Constructed, DecodeChoice, Enumerated, IntegerType, RealType, Tag, TagTree,
        constraints::Bounded,
    },
};

use super::{
    header::{self, Completed, other_spelling},
    scaled::{FieldKind, FieldKinds, Quantity, nearest, place_of_bit},
    style::{JsonForm, JsonStyle},
    tree::{Members, Node, parse},
};
use crate::{
    error::{JsonError, JsonProblem, detail},
    limits::{ERROR_EXCERPT_MAX, ERROR_NAMES_MAX, JSON_NAMED_BITS_MAX},
};

type Read<T> = Result<T, DecodeError>;

/// Reads values one after another from a parsed text.
pub struct JsonReader<'a> {
    /// Values that remain to be read, the next one last. rasn calls the decoder for each member in the order of declaration.
    /// Therefore a SEQUENCE puts all its members here at its beginning, absent ones included.
    pending: Vec<Pending<'a>>,
    /// Remaining members of the open objects that may have groups of extension additions. The members of a group belong
    /// to the enclosing object, and their names are known only when the group is read.
    open: Vec<Members<'a>>,
    /// `true` if the next SEQUENCE is such a group, whose members are pending already.
    group: bool,
    /// The objects and arrays around the current value.
    path: Vec<Step>,
    /// The current value.
    here: Step,
    /// In the scaled style: the kind of its field beyond the base type.
    field_kind: Option<FieldKind>,
    form: JsonForm,
    /// The name of the body if the text is the body alone: it is not part of a path.
    bare: Option<&'static str>,
    /// The first error. rasn's errors cannot contain it.
    failure: Option<JsonError>,
}

struct Pending<'a> {
    step: Step,
    node: Option<Node<'a>>,
    field_kind: Option<FieldKind>,
}

/// One step of a path.
#[derive(Clone, Copy)]
enum Step {
    Root,
    Member(&'static str),
    Element(usize),
}

impl<'a> JsonReader<'a> {
    /// Reads a complete text with `body`.
    pub fn read<T>(form: JsonForm, text: &'a [u8], body: impl FnOnce(&mut Self) -> Read<T>) -> Result<T, JsonError> {
        let root = parse(text)?;
        let Completed { root, bare } = match &form.header {
            Some(defaults) => header::complete(root, defaults)?,
            None => Completed { root, bare: false },
        };
        let mut reader = Self {
            pending: vec![Pending { step: Step::Root, node: Some(root), field_kind: None }],
            open: Vec::new(),
            group: false,
            path: Vec::new(),
            here: Step::Root,
            field_kind: None,
            form,
            bare: form.header.filter(|_| bare).map(|defaults| defaults.body),
            failure: None,
        };
        body(&mut reader).map_err(|cause| reader.into_error(&cause))
    }

    /// Reads an object with these members: `body` reads their values in this order.
    pub fn object<T>(
        &mut self,
        names: impl Iterator<Item = &'static str>,
        body: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        self.object_with(FieldKinds::default(), names, body)
    }

    fn object_with<T>(
        &mut self,
        kinds: FieldKinds,
        names: impl Iterator<Item = &'static str>,
        body: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        let mut members = self.take_object()?;
        self.path.push(self.here);
        let bottom = self.pending.len();
        self.expect(kinds, names, &mut members);
        self.refuse_left_over(&members)?;
        let value = body(self)?;
        self.pending.truncate(bottom);
        self.path.pop();
        Ok(value)
    }

    /// Reads an object whose type may have groups of extension additions, otherwise like [`Self::object`].
    fn extended_object<T>(
        &mut self,
        kinds: FieldKinds,
        names: impl Iterator<Item = &'static str>,
        body: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        let mut members = self.take_object()?;
        self.path.push(self.here);
        let bottom = self.pending.len();
        self.expect(kinds, names, &mut members);
        self.open.push(members);
        let value = body(self)?;
        if let Some(members) = self.open.pop() {
            self.refuse_left_over(&members)?;
        }
        self.pending.truncate(bottom);
        self.path.pop();
        Ok(value)
    }

    /// Makes the members of these names pending, absent ones included. The first one is read next.
    fn expect(&mut self, kinds: FieldKinds, names: impl Iterator<Item = &'static str>, members: &mut Members<'a>) {
        let bottom = self.pending.len();
        let lenient = self.form != JsonForm::default();
        let mut pending = |name| {
            let shown = kinds.shown(name);
            let other = || other_spelling(shown).filter(|_| lenient);
            let node = members.take(shown).or_else(|| members.take(other()?));
            Pending { step: Step::Member(shown), node, field_kind: kinds.get(name) }
        };
        self.pending.extend(names.map(&mut pending));
        if let Some(ours) = self.pending.get_mut(bottom..) {
            ours.reverse();
        }
    }

    fn refuse_left_over(&mut self, members: &Members<'a>) -> Read<()> {
        members.left_over().map_or(Ok(()), |name| Err(self.fail_at(name, JsonProblem::Unknown)))
    }

    /// Reads a group of extension additions. Returns `None` if the object has none of its members.
    fn addition_group<T>(
        &mut self,
        kinds: FieldKinds,
        names: impl Iterator<Item = &'static str>,
        body: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<Option<T>> {
        // The group itself has no member.
        self.pending.pop();
        let bottom = self.pending.len();
        if let Some(mut members) = self.open.pop() {
            self.expect(kinds, names, &mut members);
            self.open.push(members);
        }
        let present = self.pending.iter().skip(bottom).any(|next| next.node.is_some());
        self.group = present;
        let value = if present { body(self).map(Some) } else { Ok(None) };
        self.pending.truncate(bottom);
        value
    }

    /// Reads an array whose size has a constraint: `body` reads one element.
    pub fn list<T>(&mut self, constraints: &Constraints, body: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let values = self.array(body)?;
        self.check_size(constraints, values.len(), "elements")?;
        Ok(values)
    }

    fn array<T>(&mut self, mut body: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let elements = match self.take()? {
            Node::List(elements) => elements,
            other => return Err(self.mismatch("an array", &other)),
        };
        self.path.push(self.here);
        // No capacity by the count: an element may be large, and the first one may be wrong.
        let mut values = Vec::new();
        for (at, node) in elements.into_iter().enumerate() {
            self.pending.push(Pending { step: Step::Element(at), node: Some(node), field_kind: None });
            values.push(body(self)?);
        }
        if let Some(step) = self.path.pop() {
            self.here = step;
        }
        Ok(values)
    }

    /// Reads hexadecimal text.
    pub fn octets(&mut self) -> Read<Vec<u8>> {
        let text = self.take_text("hexadecimal text")?;
        octets_of(&text).ok_or_else(|| self.mismatch("hexadecimal text", &Node::Text(text)))
    }

    /// Takes the next value. An absent value is an error.
    fn take(&mut self) -> Read<Node<'a>> {
        let next = self.pending.pop();
        if let Some(next) = &next {
            self.here = next.step;
            self.field_kind = next.field_kind;
        }
        match next.and_then(|next| next.node) {
            Some(node) => Ok(node),
            None => Err(self.fail(JsonProblem::Missing)),
        }
    }

    fn take_object(&mut self) -> Read<Members<'a>> {
        match self.take()? {
            Node::Object(members) => Ok(members),
            other => Err(self.mismatch("an object", &other)),
        }
    }

    fn take_text(&mut self, expected: &str) -> Read<std::borrow::Cow<'a, str>> {
        match self.take()? {
            Node::Text(text) => Ok(text),
            other => Err(self.mismatch(expected, &other)),
        }
    }

    /// Takes a text and converts it to a type of string.
    fn string<T: TryFrom<String>>(&mut self, constraints: &Constraints, expected: &str) -> Read<T> {
        let text = self.take_text(expected)?;
        self.check_size(constraints, text.chars().count(), "characters")?;
        T::try_from(text.clone().into_owned()).map_err(|_| self.mismatch(expected, &Node::Text(text)))
    }

    /// Reads an optional member. Returns `None` if it is absent.
    fn optional<T>(&mut self, body: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.pending.last().is_some_and(|next| next.node.is_none()) {
            self.pending.pop();
            return Ok(None);
        }
        body(self).map(Some)
    }

    /// Rejects a size outside the constraint, unless the constraint is extensible.
    fn check_size(&mut self, constraints: &Constraints, size: usize, what: &str) -> Read<()> {
        let bound = constraints.size().filter(|bound| bound.extensible.is_none() && !bound.constraint.contains(&size));
        let Some(bound) = bound else {
            return Ok(());
        };
        let expected = format!("{} {what}", range(&bound.constraint));
        Err(self.fail(JsonProblem::Mismatch { expected, got: size.to_string() }))
    }

    fn mismatch(&mut self, expected: &str, got: &Node<'_>) -> DecodeError {
        self.fail(JsonProblem::Mismatch { expected: expected.to_owned(), got: got.excerpt() })
    }

    /// Records a problem of the current value.
    fn fail(&mut self, problem: JsonProblem) -> DecodeError {
        let path = path_text(self.path.iter().copied().chain([self.here]));
        self.note(JsonError { path, problem })
    }

    /// Records a problem of a member of the current object.
    fn fail_at(&mut self, name: &str, problem: JsonProblem) -> DecodeError {
        let mut path = path_text(self.path.iter().copied());
        let shown: String = name.chars().take(ERROR_EXCERPT_MAX).collect();
        push_step(&mut path, &shown);
        self.note(JsonError { path, problem })
    }

    fn note(&mut self, error: JsonError) -> DecodeError {
        self.failure.get_or_insert(error);
        DecodeError::custom("see JsonReader::failure", Codec::Jer)
    }

    fn into_error(self, cause: &DecodeError) -> JsonError {
        let path = path_text(self.path.iter().copied().chain([self.here]));
        // Only errors of rasn's own code are not in `failure`.
        let invalid = || JsonError { path, problem: JsonProblem::Syntax(detail(&cause.kind)) };
        let error = self.failure.unwrap_or_else(invalid);
        match self.bare {
            Some(body) => error.below(body),
            None => error,
        }
    }

    fn kinds_of<T>(&self, place: Option<FieldKind>) -> FieldKinds {
        match self.form.style {
            JsonStyle::Raw => FieldKinds::default(),
            JsonStyle::Scaled(table) => FieldKinds::of::<T>(table, place),
        }
    }

    /// Returns the kind of the next field.
    fn place(&self) -> Option<FieldKind> {
        self.pending.last().and_then(|next| next.field_kind)
    }

    /// Returns the integer of a value in the scaled style, or `None` if the value is not a number of the type.
    fn unscaled(&self, node: &Node<'_>) -> Option<i64> {
        let Some(FieldKind::Quantity(quantity)) = self.field_kind else {
            return match node {
                Node::Integer(value) => Some(*value),
                // Rounding would silently turn 3.25 m into 3 cm.
                Node::Number(value) if value.fract() == 0.0 => nearest(*value),
                _ => None,
            };
        };
        match node {
            Node::Null => quantity.unavailable,
            #[expect(clippy::cast_precision_loss, reason = "a quantity in its unit has fewer digits than a double")]
            Node::Integer(value) => quantity.read(*value as f64),
            Node::Number(value) => quantity.read(*value),
            _ => None,
        }
    }

    /// Reads a BIT STRING in the scaled style from an object of named bits. Absent bits are not set.
    fn named_bits(&mut self, members: Members<'a>, constraints: &Constraints) -> Read<types::BitString> {
        let names: &[&str] = match self.field_kind {
            Some(FieldKind::Bits(names)) => names,
            _ => &[],
        };
        self.path.push(self.here);
        let size = constraints.size().filter(|size| size.extensible.is_none());
        let (min, max) = size.map_or((None, None), |size| size.constraint.start_and_end());
        let max = max.copied().unwrap_or(JSON_NAMED_BITS_MAX).min(JSON_NAMED_BITS_MAX);
        let mut bits = types::BitString::repeat(false, min.copied().unwrap_or(0).min(max));
        for (name, node) in members.into_iter() {
            let Some(at) = place_of_bit(names, &name).filter(|at| *at < max) else {
                return Err(self.fail_at(&name, JsonProblem::Unknown));
            };
            let Node::Boolean(bit) = node else {
                let (expected, got) = ("true or false".to_owned(), node.excerpt());
                return Err(self.fail_at(&name, JsonProblem::Mismatch { expected, got }));
            };
            bits.resize(bits.len().max(at + 1), false);
            bits.set(at, bit);
        }
        self.path.pop();
        Ok(bits)
    }
}

fn path_text(steps: impl Iterator<Item = Step>) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Root => {}
            Step::Member(name) => push_step(&mut path, name),
            Step::Element(at) => path.push_str(&format!("[{at}]")),
        }
    }
    path
}

fn push_step(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn range<T: Copy + std::fmt::Display>(bound: &Bounded<T>) -> String {
    match bound.start_and_end() {
        (Some(start), Some(end)) => format!("{start} to {end}"),
        (Some(start), None) => format!("{start} or more"),
        (None, Some(end)) => format!("at most {end}"),
        (None, None) => "any".to_owned(),
    }
}

/// Returns the note for a number with decimals in the place of an integer that has no unit in the scaled style.
fn not_scaled(node: &Node<'_>) -> &'static str {
    match node {
        Node::Number(value) if value.fract() != 0.0 => {
            " in steps of 1 of the standard's unit (the member is not scaled)"
        }
        _ => "",
    }
}

/// Returns the range of a quantity.
fn quantity_range(quantity: &Quantity, bound: &Bounded<i128>) -> String {
    let show = |raw: Option<&i128>| raw.and_then(|raw| i64::try_from(*raw).ok()).and_then(|raw| quantity.show_end(raw));
    let (start, end) = bound.start_and_end();
    let (Some(start), Some(end)) = (show(start), show(end)) else {
        return "a number".to_owned();
    };
    let or_null = if quantity.unavailable.is_some() { ", or null" } else { "" };
    format!("a number from {start} to {end}{or_null}")
}

/// Returns the octets of hexadecimal text, or `None` for any other text.
fn octets_of(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs.iter().map(|&[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Returns the first `length` bits of hexadecimal text, or `None` if the text does not have exactly the octets for them.
fn bits_of(text: &str, length: usize) -> Option<types::BitString> {
    let octets = octets_of(text)?;
    if octets.len() != length.div_ceil(8) {
        return None;
    }
    let mut bits = types::BitString::try_from_vec(octets).ok()?;
    bits.truncate(length);
    Some(bits)
}

fn first_tag(tree: &TagTree) -> Option<Tag> {
    match tree {
        TagTree::Leaf(tag) => Some(*tag),
        TagTree::Choice(trees) => trees.iter().find_map(first_tag),
    }
}

/// Returns the names for an error, limited to a readable number. Names that begin with `reserved` are omitted first.
fn listed(names: &[&str]) -> String {
    let whole = names.join(", ");
    if whole.len() <= ERROR_NAMES_MAX {
        return whole;
    }
    let mut shown = String::new();
    let mut count = 0;
    for name in names.iter().filter(|name| !name.starts_with("reserved")) {
        let separator = if count == 0 { "" } else { ", " };
        if count > 0 && shown.len() + separator.len() + name.len() > ERROR_NAMES_MAX {
            break;
        }
        shown.push_str(separator);
        shown.push_str(name);
        count += 1;
    }
    format!("{shown} and {} more", names.len() - count)
}

/// Returns name and tag of a variant.
fn variant<C: DecodeChoice>(name: &str) -> Option<(&'static str, Tag)> {
    let variants = C::VARIANTS.iter().chain(C::EXTENDED_VARIANTS.unwrap_or_default());
    let (known, tree) = C::IDENTIFIERS.iter().zip(variants).find(|(known, _)| **known == name)?;
    Some((known, first_tag(tree)?))
}

impl Decoder for JsonReader<'_> {
    type Ok = ();
    type Error = DecodeError;
    type AnyDecoder<const R: usize, const E: usize> = Self;

    fn codec(&self) -> Codec {
        Codec::Jer
    }

    fn decode_sequence<const R: usize, const E: usize, D, DF, F>(
        &mut self,
        _: Tag,
        _: Option<DF>,
        members: F,
    ) -> Read<D>
    where
        D: Constructed<R, E>,
        DF: FnOnce() -> D,
        F: FnOnce(&mut Self) -> Read<D>,
    {
        if std::mem::take(&mut self.group) {
            return members(self);
        }
        let root = D::FIELDS;
        let extended = D::EXTENDED_FIELDS;
        let extended = extended.iter().flat_map(types::fields::Fields::iter);
        let (kinds, names) = (self.kinds_of::<D>(self.place()), root.iter().chain(extended).map(|field| field.name));
        if E == 0 { self.object_with(kinds, names, members) } else { self.extended_object(kinds, names, members) }
    }

    fn decode_sequence_of<D: Decode>(&mut self, _: Tag, constraints: Constraints) -> Read<Vec<D>> {
        self.list(&constraints, D::decode)
    }

    fn decode_choice<D: DecodeChoice>(&mut self, _: Constraints) -> Read<D> {
        let Some((name, node)) = self.take_object()?.into_single() else {
            let expected = format!("an object with one member of {}", listed(D::IDENTIFIERS));
            return Err(self.fail(JsonProblem::Mismatch { expected, got: "another number of members".to_owned() }));
        };
        self.path.push(self.here);
        let Some((name, tag)) = variant::<D>(&name) else {
            return Err(self.fail_at(&name, JsonProblem::Unknown));
        };
        let field_kind = self.kinds_of::<D>(None).get(name);
        self.pending.push(Pending { step: Step::Member(name), node: Some(node), field_kind });
        let value = D::from_tag(self, tag)?;
        self.path.pop();
        Ok(value)
    }

    fn decode_integer<I: IntegerType>(&mut self, _: Tag, constraints: Constraints) -> Read<I> {
        let bound = constraints.value();
        let node = self.take()?;
        let value = match (&node, self.form.style) {
            (Node::Integer(value), JsonStyle::Raw) => Some(*value),
            (_, JsonStyle::Raw) => None,
            (node, JsonStyle::Scaled(_)) => self.unscaled(node),
        };
        if let Some(value) = value
            && bound.is_none_or(|bound| bound.extensible.is_some() || bound.constraint.in_bound(&value))
            && let Ok(integer) = I::try_from(value)
        {
            return Ok(integer);
        }
        let unit = if self.form.style.is_scaled() { not_scaled(&node) } else { "" };
        let expected = match (bound, self.field_kind) {
            (Some(bound), Some(FieldKind::Quantity(quantity))) => quantity_range(quantity, &bound.constraint),
            (Some(bound), _) => format!("an integer from {}{unit}", range(&bound.constraint)),
            (None, _) => format!("an integer{unit}"),
        };
        Err(self.mismatch(&expected, &node))
    }

    fn decode_enumerated<T: Enumerated>(&mut self, _: Tag) -> Read<T> {
        let node = self.take()?;
        if let Node::Text(name) = &node
            && let Some(value) = T::from_identifier(name)
        {
            return Ok(value);
        }
        if let (JsonStyle::Scaled(_), Node::Integer(number)) = (self.form.style, &node)
            && let Some(value) = isize::try_from(*number).ok().and_then(T::from_discriminant)
        {
            return Ok(value);
        }
        let expected = format!("one of {}", listed(T::IDENTIFIERS));
        Err(self.mismatch(&expected, &node))
    }

    fn decode_bool(&mut self, _: Tag) -> Read<bool> {
        match self.take()? {
            Node::Boolean(value) => Ok(value),
            other => Err(self.mismatch("true or false", &other)),
        }
    }

    fn decode_null(&mut self, _: Tag) -> Read<()> {
        match self.take()? {
            Node::Null => Ok(()),
            other => Err(self.mismatch("null", &other)),
        }
    }

    fn decode_bit_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::BitString> {
        if self.form.style.is_scaled()
            && matches!(self.pending.last(), Some(Pending { node: Some(Node::Object(_)), .. }))
        {
            let members = self.take_object()?;
            return self.named_bits(members, &constraints);
        }
        if super::has_fixed_size(&constraints) {
            let length = constraints.size().and_then(|size| size.constraint.as_start()).copied().unwrap_or(0);
            let text = self.take_text("hexadecimal text")?;
            let expected = format!("hexadecimal text of {length} bits");
            return bits_of(&text, length).ok_or_else(|| self.mismatch(&expected, &Node::Text(text)));
        }
        let bits = self.object(["value", "length"].into_iter(), |reader| {
            let text = reader.take_text("hexadecimal text")?;
            let length: u32 = reader.decode_integer(Tag::INTEGER, Constraints::NONE)?;
            let bits = usize::try_from(length).ok().and_then(|length| bits_of(&text, length));
            bits.ok_or_else(|| reader.mismatch("as many bits as `value` has digits for", &Node::Integer(length.into())))
        })?;
        self.check_size(&constraints, bits.len(), "bits")?;
        Ok(bits)
    }

    fn decode_octet_string<'b, T: From<&'b [u8]> + From<Vec<u8>>>(
        &'b mut self,
        _: Tag,
        constraints: Constraints,
    ) -> Read<T> {
        let octets = self.octets()?;
        self.check_size(&constraints, octets.len(), "octets")?;
        Ok(T::from(octets))
    }

    fn decode_any(&mut self, _: Tag) -> Read<types::Any> {
        self.octets().map(types::Any::new)
    }

    fn decode_utf8_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::Utf8String> {
        self.string(&constraints, "text")
    }

    fn decode_ia5_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::Ia5String> {
        self.string(&constraints, "text of ASCII characters")
    }

    fn decode_visible_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::VisibleString> {
        self.string(&constraints, "text of printable ASCII characters")
    }

    fn decode_printable_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::PrintableString> {
        self.string(&constraints, "text of the characters of a PrintableString")
    }

    fn decode_numeric_string(&mut self, _: Tag, constraints: Constraints) -> Read<types::NumericString> {
        self.string(&constraints, "text of digits and spaces")
    }

    fn decode_object_identifier(&mut self, _: Tag) -> Read<types::ObjectIdentifier> {
        Err(self.unsupported("OBJECT IDENTIFIER"))
    }

    fn decode_real<T: RealType>(&mut self, _: Tag, _: Constraints) -> Read<T> {
        Err(self.unsupported("REAL"))
    }

    fn decode_set_of<D: Decode + Eq + std::hash::Hash>(&mut self, _: Tag, _: Constraints) -> Read<types::SetOf<D>> {
        Err(self.unsupported("SET OF"))
    }

    fn decode_set<const R: usize, const E: usize, FIELDS, SET, D, F>(&mut self, _: Tag, _: D, _: F) -> Read<SET>
    where
        SET: Decode + Constructed<R, E>,
        FIELDS: Decode,
        D: Fn(&mut Self, usize, Tag) -> Read<FIELDS>,
        F: FnOnce(Vec<FIELDS>) -> Read<SET>,
    {
        Err(self.unsupported("SET"))
    }

    fn decode_general_string(&mut self, _: Tag, _: Constraints) -> Read<types::GeneralString> {
        Err(self.unsupported("GeneralString"))
    }

    fn decode_graphic_string(&mut self, _: Tag, _: Constraints) -> Read<types::GraphicString> {
        Err(self.unsupported("GraphicString"))
    }

    fn decode_teletex_string(&mut self, _: Tag, _: Constraints) -> Read<types::TeletexString> {
        Err(self.unsupported("TeletexString"))
    }

    fn decode_bmp_string(&mut self, _: Tag, _: Constraints) -> Read<types::BmpString> {
        Err(self.unsupported("BMPString"))
    }

    fn decode_utc_time(&mut self, _: Tag) -> Read<types::UtcTime> {
        Err(self.unsupported("UTCTime"))
    }

    fn decode_generalized_time(&mut self, _: Tag) -> Read<types::GeneralizedTime> {
        Err(self.unsupported("GeneralizedTime"))
    }

    fn decode_date(&mut self, _: Tag) -> Read<types::Date> {
        Err(self.unsupported("DATE"))
    }

    fn decode_explicit_prefix<D: Decode>(&mut self, _: Tag) -> Read<D> {
        D::decode(self)
    }

    fn decode_optional<D: Decode>(&mut self) -> Read<Option<D>> {
        self.optional(D::decode)
    }

    fn decode_optional_with_explicit_prefix<D: Decode>(&mut self, _: Tag) -> Read<Option<D>> {
        self.optional(D::decode)
    }

    fn decode_optional_with_tag<D: Decode>(&mut self, tag: Tag) -> Read<Option<D>> {
        self.optional(|reader| D::decode_with_tag(reader, tag))
    }

    fn decode_optional_with_constraints<D: Decode>(&mut self, constraints: Constraints) -> Read<Option<D>> {
        self.optional(|reader| D::decode_with_constraints(reader, constraints))
    }

    fn decode_optional_with_tag_and_constraints<D: Decode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
    ) -> Read<Option<D>> {
        self.optional(|reader| D::decode_with_tag_and_constraints(reader, tag, constraints))
    }

    fn decode_extension_addition_with_explicit_tag_and_constraints<D: Decode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
    ) -> Read<Option<D>> {
        self.decode_extension_addition_with_tag_and_constraints(tag, constraints)
    }

    fn decode_extension_addition_with_tag_and_constraints<D: Decode>(
        &mut self,
        tag: Tag,
        constraints: Constraints,
    ) -> Read<Option<D>> {
        self.optional(|reader| D::decode_with_tag_and_constraints(reader, tag, constraints))
    }

    fn decode_extension_addition_group<const R: usize, const E: usize, D: Decode + Constructed<R, E>>(
        &mut self,
    ) -> Read<Option<D>> {
        let members = D::FIELDS;
        self.addition_group(self.kinds_of::<D>(None), members.iter().map(|field| field.name), D::decode)
    }
}

impl JsonReader<'_> {
    /// Rejects a type that no message contains, instead of guessing its form.
    fn unsupported(&mut self, what: &str) -> DecodeError {
        self.fail(JsonProblem::Syntax(format!("{what} has no JSON form here")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_lists_a_readable_number_of_names() {
        assert_eq!(listed(&["reserved0", "a", "b"]), "reserved0, a, b");
        let many: Vec<String> = (0..100).map(|number| format!("reserved{number}")).collect();
        let names: Vec<&str> = many.iter().map(String::as_str).chain(["ice"]).collect();
        assert_eq!(listed(&names), "ice and 100 more");
        let long = "x".repeat(250);
        assert_eq!(listed(&[&long, &long, &long, "y"]), format!("{long}, {long} and 2 more"));
    }

    #[test]
    fn hexadecimal_text_has_pairs_of_digits() {
        assert_eq!(octets_of("0aFf"), Some(vec![0x0A, 0xFF]));
        for bad in ["0", "0g", "+1", "ää"] {
            assert_eq!(octets_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn bits_need_exactly_their_octets() {
        assert_eq!(bits_of("80", 7).map(|bits| bits.len()), Some(7));
        assert!(bits_of("8000", 7).is_none());
        assert!(bits_of("", 1).is_none());
        assert_eq!(bits_of("", 0).map(|bits| bits.len()), Some(0));
    }
}
