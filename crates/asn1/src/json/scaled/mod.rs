//! The scaled style: kinds of the fields of each SEQUENCE and CHOICE, beyond their ASN.1 base types.
//!
//! rasn passes the base type and the name of a field to an encoder or decoder, not the name of its type. Therefore
//! [`field_kinds`] contains the kind of each field, [`quantities`] the step of each INTEGER, and [`bits`] the names of the
//! bits of each BIT STRING.

mod bits;
mod field_kinds;
mod legacy_names;
mod quantities;

pub(super) use legacy_names::LegacyNames;
pub(super) use quantities::{Quantity, nearest};

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldKind {
    /// An INTEGER with a unit.
    Quantity(&'static Quantity),
    /// A BIT STRING with the names of its bits, the first bit first.
    Bits(&'static [&'static str]),
    /// A SEQUENCE whose fields have the names of an older edition.
    LegacyNames(&'static LegacyNames),
}

/// The fields of one type that have a kind or another name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldKinds {
    members: &'static [(&'static str, FieldKind)],
    /// Current names and shown names.
    names: &'static [(&'static str, &'static str)],
}

impl FieldKinds {
    /// Returns the field kinds of a SEQUENCE or CHOICE in this place.
    pub(super) fn of<T>(place: Option<FieldKind>) -> Self {
        if let Some(FieldKind::LegacyNames(LegacyNames { names, members })) = place {
            return Self { members, names };
        }
        let path = std::any::type_name::<T>();
        let name = path.rsplit("::").next().unwrap_or(path);
        let found = field_kinds::FIELD_KINDS.binary_search_by_key(&name, |(known, _)| known).ok();
        let members = found.and_then(|at| field_kinds::FIELD_KINDS.get(at)).map_or(&[][..], |(_, members)| members);
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
    fn the_table_is_sorted_for_the_binary_search() {
        assert!(field_kinds::FIELD_KINDS.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn a_bit_is_found_by_its_name_or_its_number() {
        assert_eq!(place_of_bit(&["one", "two"], "two"), Some(1));
        assert_eq!(place_of_bit(&["one", "two"], &unnamed_bit(9)), Some(9));
        assert_eq!(place_of_bit(&["one", "two"], "three"), None);
    }
}
