//! The text of a full definition: the definition of a message, then those of the types that it uses.
//!
//! Before each further definition are a line of 80 equals signs and a line with the name of the type, `MSG: package/Name`.

use super::{SchemaError, TypeName};
use crate::limits::{DEFINITION_OCTETS_MAX, TYPES_MAX};

/// Fewest equals signs of a line between two definitions.
const SEPARATOR_MIN: usize = 80;

/// The definition of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) name: TypeName,
    /// Its lines, with their numbers in the whole text.
    pub(super) lines: Vec<(usize, &'a str)>,
}

/// Divides a full definition into those of its types. The first one is that of the message.
pub(super) fn sections<'a>(root: &str, text: &'a str) -> Result<Vec<Section<'a>>, SchemaError> {
    if text.len() > DEFINITION_OCTETS_MAX {
        return Err(SchemaError::TooLong(text.len()));
    }
    let name = TypeName::parse(root).ok_or_else(|| SchemaError::Name { line: 0, name: root.to_owned() })?;
    let mut sections = vec![Section { name, lines: Vec::new() }];
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if is_separator(line) {
            let (header, number) = lines.next().unwrap_or(("", number));
            sections.push(Section { name: section_name(header, number)?, lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push((number, line));
        }
    }
    if sections.len() > TYPES_MAX {
        return Err(SchemaError::TooManyTypes(sections.len()));
    }
    Ok(sections)
}

fn is_separator(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= SEPARATOR_MIN && line.bytes().all(|octet| octet == b'=')
}

fn section_name(header: &str, line: usize) -> Result<TypeName, SchemaError> {
    let name = header.trim().strip_prefix("MSG:").map(str::trim).and_then(TypeName::parse);
    name.ok_or_else(|| SchemaError::Header { line, text: shown(header) })
}

/// Returns the beginning of a text for an error message.
pub(super) fn shown(text: &str) -> String {
    text.trim().chars().take(40).collect()
}
