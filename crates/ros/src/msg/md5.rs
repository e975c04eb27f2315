//! The MD5 sum of a type, by which the nodes of ROS 1 recognise that they have the same definition.
//!
//! It is the sum of one line for each constant, `type name=value`, and then one for each field: `type name` for a basic type
//! and `sum name`, with the sum of the type, for another one. Comments, packages and brackets of other types do not count.

use std::fmt::Write as _;

use md5::{Digest as _, Md5};

use super::{FieldType, MessageType, Schema};

impl Schema {
    /// Returns the MD5 sum of the message as 32 digits, as `rosmsg md5` prints it.
    #[must_use]
    pub fn md5(&self) -> String {
        let mut sums: Vec<Option<String>> = vec![None; self.types().len()];
        self.root().map_or_else(String::new, |root| self.sum(root, &mut sums))
    }

    /// Returns the sum of a type. `sums` has those of the types that are known already: without it, a definition in which
    /// each type uses the next one twice would take a time that doubles with each type.
    fn sum(&self, message_type: &MessageType, sums: &mut Vec<Option<String>>) -> String {
        let mut text = String::new();
        for constant in &message_type.constants {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{} {}={}", constant.type_text, constant.name, constant.value);
        }
        for field in message_type.fields() {
            let type_text = match field.base {
                FieldType::Basic(_) => field.type_text.clone(),
                FieldType::Message(index) => self.sum_at(index.position(), sums),
            };
            let _ = writeln!(text, "{type_text} {}", field.name);
        }
        let digest = Md5::digest(text.trim().as_bytes());
        digest.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    fn sum_at(&self, position: usize, sums: &mut Vec<Option<String>>) -> String {
        if let Some(Some(sum)) = sums.get(position) {
            return sum.clone();
        }
        let sum = self.types().get(position).map_or_else(String::new, |used| self.sum(used, sums));
        if let Some(known) = sums.get_mut(position) {
            *known = Some(sum.clone());
        }
        sum
    }
}
