//! Values of messages whose type is known only when the program runs.

use bytes::Bytes;

/// A value of a field, or a whole message.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `bool`.
    Bool(bool),
    /// An integer with sign.
    Int(i64),
    /// An integer without sign.
    Uint(u64),
    /// `float32`.
    Float32(f32),
    /// `float64`.
    Float64(f64),
    /// `string`. ROS does not check that it is UTF-8.
    Text(Bytes),
    /// `wstring` (ROS 2): UTF-16.
    WideText(Vec<u16>),
    /// `time` (ROS 1): seconds and nanoseconds since 1970-01-01T00:00:00 UTC, without leap seconds.
    Time(u32, u32),
    /// `duration` (ROS 1): seconds and nanoseconds.
    Duration(i32, i32),
    /// An array of octets: `uint8[]`, `char[]`, and `byte[]` of ROS 2.
    Octets(Bytes),
    /// An array of other values.
    Array(Vec<Value>),
    /// The fields of a message, in the order of the type.
    Message(Vec<Value>),
}

impl Value {
    /// Returns a `string`.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }
}
