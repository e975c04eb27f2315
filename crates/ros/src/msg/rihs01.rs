//! The hash of a type, by which the nodes of ROS 2 recognise that they have the same definition (REP 2016, version 1).
//!
//! It is the SHA-256 sum of a JSON text with the fields of the type, then the fields of all types that it uses in the order of their
//! names. Constants, default values and comments do not count.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Basic, Count, Dialect, Field, FieldType, MessageType, Schema};

/// The field of a type without fields, which DDS does not have.
const NO_FIELDS: &str = r#"{"name": "structure_needs_at_least_one_member", "type": {"type_id": 3, "capacity": 0, "string_capacity": 0, "nested_type_name": ""}}"#;
/// Type identifiers of a message, an octet, and texts with a limit.
const NESTED: u8 = 1;
const BYTE: u8 = 16;
const BOUNDED_STRING: u8 = 21;
const BOUNDED_WSTRING: u8 = 22;
/// Added to the identifier of a type for arrays of it.
const ARRAY: u8 = 48;
const BOUNDED_SEQUENCE: u8 = 96;
const UNBOUNDED_SEQUENCE: u8 = 144;

impl Schema {
    /// Returns the hash of the type, `RIHS01_` and 64 digits, or `None` if the definition is one of ROS 1.
    #[must_use]
    pub fn type_hash(&self) -> Option<String> {
        let root = self.root().filter(|_| self.dialect() == Dialect::Ros2)?;
        let digest = Sha256::digest(self.description(root).as_bytes());
        Some(digest.iter().fold("RIHS01_".to_owned(), |hash, octet| format!("{hash}{octet:02x}")))
    }

    fn description(&self, root: &MessageType) -> String {
        let used = self.used_names(root);
        let mut others: Vec<&MessageType> = self.types().iter().skip(1).collect();
        others.retain(|other| used.contains(&other.name()));
        others.sort_by_key(|other| full_name(other));
        let others: Vec<String> = others.into_iter().map(|other| self.individual(other)).collect();
        let (root, others) = (self.individual(root), others.join(", "));
        format!(r#"{{"type_description": {root}, "referenced_type_descriptions": [{others}]}}"#)
    }

    /// Returns the names of the types that a type uses, in any depth.
    fn used_names<'a>(&'a self, root: &'a MessageType) -> Vec<&'a super::TypeName> {
        let (mut names, mut next) = (vec![root.name()], vec![root]);
        while let Some(message_type) = next.pop() {
            for field in message_type.fields() {
                let FieldType::Message(index) = field.base else { continue };
                if let Some(used) = self.message_type(index).filter(|used| !names.contains(&used.name())) {
                    names.push(used.name());
                    next.push(used);
                }
            }
        }
        names
    }

    fn individual(&self, message_type: &MessageType) -> String {
        let fields: Vec<String> = message_type.fields().iter().map(|field| self.field_description(field)).collect();
        let fields = if fields.is_empty() { NO_FIELDS.to_owned() } else { fields.join(", ") };
        format!(r#"{{"type_name": "{}", "fields": [{fields}]}}"#, full_name(message_type))
    }

    fn field_description(&self, field: &Field) -> String {
        let (array, capacity) = match field.count {
            Count::One => (0, 0),
            Count::Fixed(count) => (ARRAY, count),
            Count::AtMost(most) => (BOUNDED_SEQUENCE, most),
            Count::Any => (UNBOUNDED_SEQUENCE, 0),
        };
        let nested = match field.base {
            FieldType::Message(index) => self.message_type(index).map(full_name).unwrap_or_default(),
            FieldType::Basic(_) => String::new(),
        };
        let mut text = format!(r#"{{"name": "{}", "type": {{"type_id": {}, "#, field.name, base_id(field) + array);
        // Writing into a String cannot fail.
        let _ = write!(text, r#""capacity": {capacity}, "string_capacity": {}, "#, field.string_limit.unwrap_or(0));
        let _ = write!(text, r#""nested_type_name": "{nested}"}}}}"#);
        text
    }
}

fn full_name(message_type: &MessageType) -> String {
    format!("{}/msg/{}", message_type.name().package(), message_type.name().name())
}

fn base_id(field: &Field) -> u8 {
    let basic = match field.base {
        FieldType::Message(_) => return NESTED,
        FieldType::Basic(basic) => basic,
    };
    match (basic, field.string_limit) {
        (Basic::Int8, _) => 2,
        (Basic::Uint8, _) if field.type_text.starts_with("byte") => BYTE,
        (Basic::Uint8, _) => 3,
        (Basic::Int16, _) => 4,
        (Basic::Uint16, _) => 5,
        (Basic::Int32, _) => 6,
        (Basic::Uint32, _) => 7,
        (Basic::Int64, _) => 8,
        (Basic::Uint64, _) => 9,
        (Basic::Float32, _) => 10,
        (Basic::Float64, _) => 11,
        (Basic::Bool, _) => 15,
        (Basic::String, None) => 17,
        (Basic::String, Some(_)) => BOUNDED_STRING,
        (Basic::Wstring, None) => 18,
        (Basic::Wstring, Some(_)) => BOUNDED_WSTRING,
        // Types of ROS 1 only, which a definition of ROS 2 cannot have.
        (Basic::Time | Basic::Duration, _) => 0,
    }
}
