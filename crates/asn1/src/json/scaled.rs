//! The scaled style: kinds of the fields of each SEQUENCE and CHOICE, beyond their ASN.1 base types.
//!
//! rasn passes the base type and the name of a field to an encoder or decoder, not the name of its type. Therefore the
//! caller passes a table with the kinds of the fields of each type ([`TypeFields`]).

/// The name of a SEQUENCE or CHOICE in Rust, and the kinds of its fields.
pub type TypeFields = (&'static str, &'static [(&'static str, FieldKind)]);

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// An INTEGER with a unit.
    Quantity(&'static Quantity),
    /// A BIT STRING with the names of its bits, the first bit first.
    Bits(&'static [&'static str]),
    /// A SEQUENCE whose fields have the names of an older edition.
    LegacyNames(&'static LegacyNames),
}

/// A type with older names of its fields.
#[derive(Debug, PartialEq)]
pub struct LegacyNames {
    /// Names that differ: the current one and the older one.
    pub names: &'static [(&'static str, &'static str)],
    /// Kinds of the fields, by their current names.
    pub members: &'static [(&'static str, FieldKind)],
}

/// An INTEGER of which `steps` steps are `units` units, except for its codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Number of steps in `units` units.
    pub steps: f64,
    /// Number of units in `steps` steps.
    pub units: f64,
    /// The value that means "not available".
    pub unavailable: Option<i64>,
    /// Codes such as "out of range": written as the quantity that they would be, and also read as the code itself.
    pub codes: &'static [i64],
}

impl Quantity {
    /// Returns the quantity of which `steps` steps are one unit.
    #[must_use]
    pub const fn new(steps: f64, unavailable: Option<i64>, codes: &'static [i64]) -> Self {
        Self { steps, units: 1.0, unavailable, codes }
    }

    /// Returns the quantity, or `None` if it is not available.
    #[must_use]
    pub fn show(&self, raw: i64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "the largest is a TimestampIts, of 42 bits")]
        let steps = raw as f64;
        (self.unavailable != Some(raw)).then_some(steps * self.units / self.steps)
    }

    /// Returns the integer nearest to the quantity. A code of the type is also accepted as itself. Returns `None` if there is no
    /// such integer.
    #[must_use]
    pub fn read(&self, shown: f64) -> Option<i64> {
        let itself = self.codes.iter().copied().chain(self.unavailable).find(|code| {
            #[expect(clippy::cast_precision_loss, reason = "the largest code is 1 800 000 001")]
            let code = *code as f64;
            code == shown
        });
        itself.or_else(|| nearest(shown * self.steps / self.units))
    }

    /// Returns the quantity at an end of the type's range. If the end is a code, returns the value next to it.
    pub(super) fn show_end(&self, raw: i64) -> Option<f64> {
        self.show(if self.unavailable == Some(raw) { raw - 1 } else { raw })
    }
}

/// Returns the nearest integer, or `None` beyond the integers that a double represents exactly.
pub(super) fn nearest(value: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is within the integers that a double has")]
    (value.abs() <= EXACT_MAX).then(|| value.round() as i64)
}

/// The fields of one type that have a kind or another name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldKinds {
    members: &'static [(&'static str, FieldKind)],
    /// Current names and shown names.
    names: &'static [(&'static str, &'static str)],
}

impl FieldKinds {
    /// Returns the field kinds of a SEQUENCE or CHOICE in this place. The table is sorted by type name.
    #[inline]
    pub(super) fn of<T>(table: &'static [TypeFields], place: Option<FieldKind>) -> Self {
        Self::of_type(std::any::type_name::<T>(), table, place)
    }

    fn of_type(path: &'static str, table: &'static [TypeFields], place: Option<FieldKind>) -> Self {
        if let Some(FieldKind::LegacyNames(LegacyNames { names, members })) = place {
            return Self { members, names };
        }
        let name = path.rsplit("::").next().unwrap_or(path);
        let found = table.binary_search_by_key(&name, |(known, _)| known).ok();
        let members = found.and_then(|at| table.get(at)).map_or(&[][..], |(_, members)| members);
        Self { members, names: &[] }
    }

    /// Returns the kind of a field, or `None` if it is only its base type.
    #[inline]
    pub(super) fn get(self, member: &str) -> Option<FieldKind> {
        self.members.iter().find(|(name, _)| *name == member).map(|(_, field_kind)| *field_kind)
    }

    /// Returns the name of a field in a text.
    #[inline]
    pub(super) fn shown(self, member: &'static str) -> &'static str {
        self.names.iter().find(|(now, _)| *now == member).map_or(member, |(_, shown)| shown)
    }
}

/// Returns the name of an unnamed bit.
pub(super) fn unnamed_bit(at: usize) -> String {
    format!("bit{at}")
}

/// Returns the position of the bit with that name.
pub(super) fn place_of_bit(names: &[&str], name: &str) -> Option<usize> {
    let unnamed = || name.strip_prefix("bit")?.parse().ok();
    names.iter().position(|known| *known == name).or_else(unnamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_found_by_its_name_or_its_number() {
        assert_eq!(place_of_bit(&["one", "two"], "two"), Some(1));
        assert_eq!(place_of_bit(&["one", "two"], &unnamed_bit(9)), Some(9));
        assert_eq!(place_of_bit(&["one", "two"], "three"), None);
    }
}
