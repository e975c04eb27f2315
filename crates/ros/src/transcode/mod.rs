//! Messages of one definition as messages of another one, usually of the other ROS version, without a value for each number.
//!
//! Fields are matched by their names; upper case and underscores do not count (`K` in ROS 1 is `k` in ROS 2).
//!
//! | ROS 1 | ROS 2 |
//! |---|---|
//! | `time` | `builtin_interfaces/Time`, before 2038-01-19 |
//! | `duration` | `builtin_interfaces/Duration`, with nanoseconds from 0 to 999999999 |
//! | `byte`: with sign | `byte`: without sign, the same bits |
//! | `std_msgs/Header` with `seq` | `std_msgs/Header` without; 0 in the other direction |
//! | field that only the source has | dropped ([`Transcoder::dropped`]) |
//! | field that only the target has | zero ([`Transcoder::zeroed`]) |
//!
//! A [`Transcoder`] is a list of operations. Neighbouring numbers of the same length are one operation, also across messages and arrays,
//! so a point cloud is copied as fast as memory. The length of the result is known before it is written, so it can be written to a
//! buffer of the receiver.
//!
//! ```
//! use viaduct_ros::{definitions, msg::{Dialect, TypeName}, transcode::Transcoder};
//!
//! let name = TypeName::parse("std_msgs/String").ok_or("no name")?;
//! let [one, two] = [Dialect::Ros1, Dialect::Ros2].map(|dialect| definitions::find(&name, dialect).map(|found| found.schema()));
//! let transcoder = Transcoder::new(one.ok_or("not known")?, two.ok_or("not known")?)?;
//! assert_eq!(transcoder.transcode(b"\x02\0\0\0hi")?, b"\0\x01\0\0\x03\0\0\0hi\0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod plan;
mod walk;

use crate::codec::{CodecProblem, Encoding};
use crate::msg::{Dialect, Schema};
pub use plan::PlanError;
use plan::{Op, Planner};
use walk::{Counter, Slice, Walk};

/// The operations that make a message of one type from a message of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcoder {
    from: Encoding,
    to: Encoding,
    ops: Vec<Op>,
    dropped: Vec<String>,
    zeroed: Vec<String>,
}

impl Transcoder {
    /// Plans the operations from one definition to another one.
    ///
    /// # Errors
    /// A field has different types in both definitions, or there are no common fields.
    pub fn new(from: &Schema, to: &Schema) -> Result<Self, PlanError> {
        let (ops, dropped, zeroed) = Planner::plan(from, to)?;
        Ok(Self { from: encoding(from), to: encoding(to), ops, dropped, zeroed })
    }

    /// Returns the fields of the source that have no counterpart: `header.seq`.
    #[must_use]
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Returns the fields of the target that have no counterpart.
    #[must_use]
    pub fn zeroed(&self) -> &[String] {
        &self.zeroed
    }

    /// Returns the length of the result in octets.
    ///
    /// # Errors
    /// The octets are not a message of the source's type, or a value does not exist in the target's type.
    pub fn length(&self, message: &[u8]) -> Result<usize, CodecProblem> {
        Ok(Walk::new(self.from, self.to, message, Counter::default()).run(&self.ops)?.octets())
    }

    /// Writes the result to the beginning of a buffer. Returns its length in octets.
    ///
    /// # Errors
    /// As [`Transcoder::length`], and if the buffer is shorter than the result.
    pub fn write(&self, message: &[u8], out: &mut [u8]) -> Result<usize, CodecProblem> {
        Walk::new(self.from, self.to, message, Slice::new(out)).run(&self.ops)?.octets()
    }

    /// Returns the result.
    ///
    /// # Errors
    /// As [`Transcoder::length`].
    pub fn transcode(&self, message: &[u8]) -> Result<Vec<u8>, CodecProblem> {
        let mut out = Vec::with_capacity(self.length(message)?);
        Walk::new(self.from, self.to, message, &mut out).run(&self.ops)?;
        Ok(out)
    }
}

const fn encoding(schema: &Schema) -> Encoding {
    match schema.dialect() {
        Dialect::Ros1 => Encoding::Ros1,
        Dialect::Ros2 => Encoding::Cdr,
    }
}
