//! The type of a ROS 1 message as a type of the bus: the definition is its schema, the MD5 sum its schema identifier.

use viaduct_bus::{MessageFormat, TypeInfo};
use viaduct_ros::msg::{Dialect, Schema};
use viaduct_ros::tcpros::ANY;

/// Returns the type with a name, MD5 sum and definition. The sum `*` means that the type is not known.
pub(crate) fn type_info(name: &str, md5: &str, definition: &str) -> TypeInfo {
    let info = TypeInfo::foreign(MessageFormat::Ros1, name, definition.to_owned().into_bytes().into());
    if md5 == ANY { info } else { info.with_schema_id(md5) }
}

/// Returns the MD5 sum of a type of ROS 1, or `*` if it is not known.
pub(crate) fn md5(info: &TypeInfo) -> &str {
    if info.schema_id().is_empty() { ANY } else { info.schema_id() }
}

/// Returns the parsed definition of a type of ROS 1, or `None` if it cannot be read or has another MD5 sum than the type.
pub(crate) fn checked_schema(info: &TypeInfo) -> Option<Schema> {
    let text = std::str::from_utf8(info.schema()).ok().filter(|_| info.format() == MessageFormat::Ros1)?;
    let schema = Schema::parse(Dialect::Ros1, info.full_name(), text).ok()?;
    (schema.md5() == info.schema_id()).then_some(schema)
}
