//! Where each key of a file stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::yaml_options;

/// Line and column, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Place {
    pub(crate) fn of(location: serde_saphyr::Location) -> Self {
        Self { line: location.line(), column: location.column() }
    }
}

/// The keys of a file with their places.
pub(crate) struct Outline {
    root: Item,
}

/// A value with the keys below it.
struct Item {
    below: Vec<(String, Place, Item)>,
}

impl Outline {
    /// The outline of a text; `None` where it is not YAML.
    pub(crate) fn of(text: &str) -> Option<Self> {
        // A key that stands twice is an error to be shown at its place, so the outline has both.
        let mut options = yaml_options();
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::PassThrough;
        let root: Item = serde_saphyr::from_str_with_options(text, options).ok()?;
        Some(Self { root })
    }

    /// The place of a key, given by its path; that of its nearest parent where it is not there.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        let (mut item, mut place) = (&self.root, None);
        let mut rest = path;
        while !rest.is_empty() {
            // A key may have dots of its own, so the longest one that fits is taken.
            let fits = |(key, _, _): &&(String, Place, Item)| {
                rest.strip_prefix(key.as_str()).is_some_and(|after| after.is_empty() || after.starts_with('.'))
            };
            let Some((key, at, below)) = item.below.iter().filter(fits).max_by_key(|(key, _, _)| key.len()) else {
                break;
            };
            (item, place) = (below, Some(*at));
            rest = rest[key.len()..].trim_start_matches('.');
        }
        place
    }

    /// The path of the innermost key that begins at or before a place.
    pub(crate) fn path(&self, place: Place) -> String {
        let (mut item, mut path) = (&self.root, Vec::new());
        while let Some((key, _, below)) = item.below.iter().rev().find(|(_, at, _)| *at <= place) {
            path.push(key.as_str());
            item = below;
        }
        path.join(".")
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl ItemVisitor {
    const LEAF: Item = Item { below: Vec::new() };
}

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut below = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Item>()? {
            below.push((key.value, Place::of(key.referenced), value));
        }
        Ok(Item { below })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Item, A::Error> {
        let mut below = Vec::new();
        while let Some(value) = sequence.next_element::<Spanned<Item>>()? {
            below.push((below.len().to_string(), Place::of(value.referenced), value.value));
        }
        Ok(Item { below })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_str<E>(self, _: &str) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_none<E>(self) -> Result<Item, E> {
        Ok(Self::LEAF)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        Item::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "node: a\ncomponents:\n  edge.station:\n    kind: its_station\n    settings:\n      routes:\n        - from: x\n        - { from: y, qos: 7 }\n";

    #[test]
    fn a_path_has_a_place_and_back() {
        let outline = Outline::of(TEXT).unwrap();
        for (path, line, column) in [
            ("node", 1, 1),
            ("components.edge.station.kind", 4, 5),
            ("components.edge.station.settings.routes.0.from", 7, 11),
            ("components.edge.station.settings.routes.1.qos", 8, 22),
        ] {
            assert_eq!(outline.place(path), Some(Place { line, column }), "{path}");
            assert_eq!(outline.path(Place { line, column }), path);
        }
    }

    #[test]
    fn a_path_that_is_not_there_has_the_place_of_its_parent() {
        let outline = Outline::of(TEXT).unwrap();
        assert_eq!(outline.place("components.edge.station.settings.listen"), Some(Place { line: 5, column: 5 }));
    }
}
