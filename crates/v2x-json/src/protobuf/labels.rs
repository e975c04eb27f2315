//! Labels of enumeration values.

use prost_reflect::{EnumDescriptor, EnumValueDescriptor};

/// Returns the label of an enumeration value: its name in lower case, without the name of the enumeration in front of it.
///
/// `NEW` and `CHANGE_NEW` of an enumeration `Change` both have the label `new`.
#[must_use]
pub fn enum_label(value: &EnumValueDescriptor) -> String {
    without_prefix(value.name(), value.parent_enum().name()).to_ascii_lowercase()
}

/// Returns the number of the value with this label or full name, or `None` if the enumeration has no such value.
pub(super) fn number_of(values: &EnumDescriptor, text: &str) -> Option<i32> {
    let by_name = values.get_value_by_name(text);
    let found = by_name.or_else(|| values.values().find(|value| enum_label(value) == text))?;
    Some(found.number())
}

/// Returns the labels of all values.
pub(super) fn labels_of(values: &EnumDescriptor) -> String {
    let labels: Vec<String> = values.values().map(|value| enum_label(&value)).collect();
    labels.join(", ")
}

/// Removes `OBJECT_CLASS_` of an enumeration `ObjectClass`.
fn without_prefix<'n>(name: &'n str, enum_name: &str) -> &'n str {
    let mut prefix = String::with_capacity(enum_name.len() + 4);
    for character in enum_name.chars() {
        if character.is_ascii_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(character.to_ascii_uppercase());
    }
    prefix.push('_');
    name.strip_prefix(&*prefix).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_enumeration_is_removed() {
        for (name, enum_name, expected) in [
            ("OBJECT_CLASS_UNKNOWN", "ObjectClass", "UNKNOWN"),
            ("PEDESTRIAN", "ObjectClass", "PEDESTRIAN"),
            ("CHANGE_UNKNOWN", "Change", "UNKNOWN"),
            ("CHANGED", "Change", "CHANGED"),
        ] {
            assert_eq!(without_prefix(name, enum_name), expected);
        }
    }
}
