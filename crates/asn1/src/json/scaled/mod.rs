//! The scaled style: what a member of a SEQUENCE or CHOICE is, beyond its ASN.1 base type.
//!
//! rasn tells an encoder and a decoder the base type and the member's name, not the name of the member's type. So
//! [`members`] says which member of which SEQUENCE has which type, [`quantities`] what one step of each such INTEGER is,
//! and [`bits`] what the bits of each such BIT STRING are called.

mod bits;
mod members;
mod older;
mod quantities;

pub(super) use older::Older;
pub(super) use quantities::{Quantity, nearest};

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// An INTEGER with a unit.
    Quantity(&'static Quantity),
    /// A BIT STRING with names of its bits, the first one first.
    Bits(&'static [&'static str]),
    /// A SEQUENCE whose members are called as in an older edition.
    Older(&'static Older),
}

/// The members of one type that mean something, or are called otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meanings {
    members: &'static [(&'static str, Meaning)],
    /// Names as they are now, and as they are shown.
    names: &'static [(&'static str, &'static str)],
}

impl Meanings {
    /// Those of a SEQUENCE or CHOICE in this place.
    pub(super) fn of<T>(place: Option<Meaning>) -> Self {
        if let Some(Meaning::Older(Older { names, members })) = place {
            return Self { members, names };
        }
        let path = std::any::type_name::<T>();
        let name = path.rsplit("::").next().unwrap_or(path);
        let found = members::MEMBERS.binary_search_by_key(&name, |(known, _)| known).ok();
        let members = found.and_then(|at| members::MEMBERS.get(at)).map_or(&[][..], |(_, members)| members);
        Self { members, names: &[] }
    }

    /// What the member means, where it means something.
    #[inline]
    pub(super) fn get(self, member: &str) -> Option<Meaning> {
        self.members.iter().find(|(name, _)| *name == member).map(|(_, meaning)| *meaning)
    }

    /// What the member is called in a text.
    #[inline]
    pub(super) fn shown(self, member: &'static str) -> &'static str {
        self.names.iter().find(|(now, _)| *now == member).map_or(member, |(_, shown)| shown)
    }
}

/// The name of a bit that has none.
pub(super) fn unnamed_bit(at: usize) -> String {
    format!("bit{at}")
}

/// The place of the bit of that name.
pub(super) fn place_of_bit(names: &[&str], name: &str) -> Option<usize> {
    let unnamed = || name.strip_prefix("bit")?.parse().ok();
    names.iter().position(|known| *known == name).or_else(unnamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_in_which_it_is_searched() {
        assert!(members::MEMBERS.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn a_bit_is_found_by_its_name_or_its_number() {
        assert_eq!(place_of_bit(&["one", "two"], "two"), Some(1));
        assert_eq!(place_of_bit(&["one", "two"], &unnamed_bit(9)), Some(9));
        assert_eq!(place_of_bit(&["one", "two"], "three"), None);
    }
}
