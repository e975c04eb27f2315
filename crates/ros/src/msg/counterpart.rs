//! A type in the other ROS version.

use std::fmt::Write as _;

use super::parser::ConstantText;
use super::{Basic, Count, Dialect, Field, FieldType, MessageType, Schema};

impl Schema {
    /// Returns fields and constants of one of its types in the other ROS version, or `None` if that version does not have them.
    pub(crate) fn body_in_other_version(&self, message_type: &MessageType) -> Option<String> {
        let mut body = String::new();
        // Writing into a String cannot fail.
        for constant in &message_type.constants {
            let _ = writeln!(body, "{}", self.constant(constant));
        }
        for field in message_type.fields() {
            let name = if self.dialect() == Dialect::Ros1 { snake_case(&field.name) } else { field.name.clone() };
            let _ = writeln!(body, "{}{} {name}", self.base_name(field)?, brackets(field.count));
        }
        Some(body)
    }

    fn constant(&self, constant: &ConstantText) -> String {
        let ConstantText { name, type_text, value } = constant;
        match (type_text.as_str(), self.dialect()) {
            ("string", Dialect::Ros1) => format!("string {name}={value:?}"),
            ("string", Dialect::Ros2) => format!("string {name}={}", value.trim_matches(['"', '\''])),
            _ => format!("{type_text} {name}={value}"),
        }
    }

    fn base_name(&self, field: &Field) -> Option<String> {
        Some(match (field.base, self.dialect()) {
            (FieldType::Basic(Basic::Time), _) => "builtin_interfaces/Time".to_owned(),
            (FieldType::Basic(Basic::Duration), _) => "builtin_interfaces/Duration".to_owned(),
            (FieldType::Basic(Basic::Wstring), _) => return None,
            (FieldType::Basic(_), _) => field.type_text.split(['[', '<']).next()?.to_owned(),
            (FieldType::Message(index), dialect) => {
                let name = self.message_type(index)?.name();
                match (dialect, name.package(), name.name()) {
                    (Dialect::Ros2, "builtin_interfaces", "Time") => "time".to_owned(),
                    (Dialect::Ros2, "builtin_interfaces", "Duration") => "duration".to_owned(),
                    _ => name.to_string(),
                }
            }
        })
    }
}

/// Returns the brackets of an array without its limit, which ROS 1 does not have.
fn brackets(count: Count) -> String {
    match count {
        Count::One => String::new(),
        Count::Fixed(count) => format!("[{count}]"),
        Count::Any | Count::AtMost(_) => "[]".to_owned(),
    }
}

/// Returns the name of a field as ROS 2 requires it: `frameID` is `frame_id`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut after_small = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && after_small {
            snake.push('_');
        }
        after_small = character.is_ascii_lowercase() || character.is_ascii_digit();
        snake.push(character.to_ascii_lowercase());
    }
    snake
}
