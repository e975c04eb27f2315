//! Messages of ROS as text and JSON.

use std::fmt::Write as _;

use bytes::Bytes;
use viaduct_bus::MessageFormat;
use viaduct_ros::codec::{self, Encoding};
use viaduct_ros::json::JsonOf;
use viaduct_ros::msg::{Dialect, Field, FieldType, MessageType, Schema};
use viaduct_ros::value::Value;

use super::message::{Cut, octets_text, string_text};

/// A type of ROS with its definition.
pub(super) struct RosType {
    schema: Schema,
    encoding: Encoding,
}

impl RosType {
    /// Returns the type, or `None` if the encoding is not one of ROS or the definition cannot be read.
    pub(super) fn new(encoding: &str, full_name: &str, definition: &[u8]) -> Option<Self> {
        let (dialect, encoding) = match MessageFormat::from_message_encoding(encoding)? {
            MessageFormat::Ros1 => (Dialect::Ros1, Encoding::Ros1),
            MessageFormat::Ros2 => (Dialect::Ros2, Encoding::Cdr),
            _ => return None,
        };
        let text = std::str::from_utf8(definition).ok().filter(|text| !text.is_empty())?;
        Some(Self { schema: Schema::parse(dialect, full_name, text).ok()?, encoding })
    }

    /// Returns the message as lines, one for each field.
    pub(super) fn text(&self, octets: &Bytes, cut: Cut) -> Result<String, String> {
        let value = self.decode(octets)?;
        let mut out = String::new();
        if let Some(root) = self.schema.root() {
            Lines { schema: &self.schema, cut, out: &mut out }.message(root, &value, 0);
        }
        Ok(out)
    }

    /// Returns the message as JSON.
    pub(super) fn json(&self, octets: &Bytes, cut: Cut) -> Result<String, String> {
        let value = self.decode(octets)?;
        let whole = JsonOf::new(&self.schema, &value);
        let json = if cut.no_arr { whole.without_arrays() } else { whole };
        serde_json::to_string(&json).map_err(|error| error.to_string())
    }

    fn decode(&self, octets: &Bytes) -> Result<Value, String> {
        codec::decode(&self.schema, self.encoding, octets).map_err(|error| error.to_string())
    }
}

/// Writes the lines of a message.
struct Lines<'a> {
    schema: &'a Schema,
    cut: Cut,
    out: &'a mut String,
}

impl Lines<'_> {
    fn message(&mut self, message_type: &MessageType, value: &Value, indent: usize) {
        let Value::Message(values) = value else { return };
        for (field, value) in message_type.fields().iter().zip(values) {
            self.field(field, value, indent);
        }
    }

    // Writing into a String cannot fail.
    fn field(&mut self, field: &Field, value: &Value, indent: usize) {
        let _ = write!(self.out, "{:indent$}{}:", "", field.name);
        let inner = match field.base {
            FieldType::Message(index) => self.schema.message_type(index),
            FieldType::Basic(_) => None,
        };
        match (value, inner) {
            (Value::Message(_), Some(inner)) => {
                self.out.push('\n');
                self.message(inner, value, indent + 2);
            }
            (Value::Array(values), Some(inner)) => {
                let shown = self.cut.shown(values.len());
                self.out.push_str(if values.is_empty() { " []\n" } else { "\n" });
                for value in values.iter().take(shown) {
                    let _ = writeln!(self.out, "{:indent$}-", "");
                    self.message(inner, value, indent + 2);
                }
                if shown < values.len() {
                    let _ = writeln!(self.out, "{:indent$}<{} more of {}>", "", values.len() - shown, values.len());
                }
            }
            (Value::Array(values), None) => {
                let shown = self.cut.shown(values.len());
                let texts: Vec<String> = values.iter().take(shown).map(|value| scalar(value, self.cut)).collect();
                let hidden = values.len() - shown;
                let more = if hidden > 0 { format!(" <{hidden} more of {}>", values.len()) } else { String::new() };
                let _ = writeln!(self.out, " [{}]{more}", texts.join(", "));
            }
            (value, _) => {
                let _ = writeln!(self.out, " {}", scalar(value, self.cut));
            }
        }
    }
}

fn scalar(value: &Value, cut: Cut) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float32(value) => value.to_string(),
        Value::Float64(value) => value.to_string(),
        Value::Text(text) => string_text(&String::from_utf8_lossy(text), cut),
        Value::WideText(text) => string_text(&String::from_utf16_lossy(text), cut),
        Value::Time(secs, nsecs) => format!("{secs}.{nsecs:09}"),
        Value::Duration(secs, nsecs) => format!("{{ secs: {secs}, nsecs: {nsecs} }}"),
        Value::Octets(octets) => octets_text(octets, cut),
        // Not scalars: the callers handle these cases.
        Value::Array(_) | Value::Message(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = "Header header\nuint16[] list\nuint8[] data\nPoint[] points\n================================================================================\nMSG: std_msgs/Header\n\
                              uint32 seq\ntime stamp\nstring frame_id\n================================================================================\nMSG: a/Point\nfloat32 x\n";

    fn message() -> Bytes {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let header = [words(&[7, 1, 5, 3]), b"map".to_vec()].concat();
        let list = [words(&[3]), vec![1, 0, 2, 0, 3, 0]].concat();
        let data = [words(&[2]), vec![8, 9]].concat();
        let points = [words(&[1]), 1.5_f32.to_le_bytes().to_vec()].concat();
        [header, list, data, points].concat().into()
    }

    #[test]
    fn each_field_has_a_line() {
        let kind = RosType::new("ros1", "a/B", DEFINITION.as_bytes()).unwrap();
        let text = kind.text(&message(), Cut { length: Some(2), no_arr: false }).unwrap();
        assert_eq!(
            text,
            "header:\n  seq: 7\n  stamp: 1.000000005\n  frame_id: ma <1 more of 3 characters>\nlist: [1, 2] <1 more of 3>\n\
             data: <2 octets: 08 09>\npoints:\n-\n  x: 1.5\n"
        );
        let short = kind.json(&message(), Cut { length: None, no_arr: true }).unwrap();
        assert!(short.ends_with(r#""list":3,"data":2,"points":1}"#), "{short}");
        let json = kind.json(&message(), Cut { length: None, no_arr: false }).unwrap();
        assert!(json.ends_with(r#""list":[1,2,3],"data":"CAk=","points":[{"x":1.5}]}"#), "{json}");
        assert!(kind.text(&message().slice(..9), Cut { length: None, no_arr: false }).unwrap_err().contains("header"));
    }

    #[test]
    fn other_types_have_no_definition_of_ros() {
        assert!(RosType::new("protobuf", "a/B", b"uint8 a").is_none());
        assert!(RosType::new("cdr", "a/B", b"").is_none());
        assert!(RosType::new("ros1", "a/B", b"nothing a").is_none());
    }
}
