//! The type of a ROS 2 message as a type of the bus: the type hash (REP-2016) is its schema identifier.

use bytes::Bytes;
#[cfg(feature = "ros2")]
use viaduct_bus::{Encoded, UntypedPublisher};
use viaduct_bus::{MessageFormat, TypeInfo};
#[cfg(feature = "ros2")]
use viaduct_ros::dds;
use viaduct_ros::definitions::{self, Definition};
use viaduct_ros::msg::{Dialect, TypeName};

/// Returns the type with a name, as `std_msgs/msg/String`, and a type hash if it is known. Its schema is the definition of the common
/// interfaces, if it has this hash.
pub(crate) fn type_info(name: &str, hash: Option<&str>) -> TypeInfo {
    let known = definition(name).filter(|known| hash.is_none() || known.schema().type_hash().as_deref() == hash);
    let schema = known.map_or_else(Bytes::new, |known| Bytes::from_static(known.text().as_bytes()));
    let info = TypeInfo::foreign(MessageFormat::Ros2, name, schema);
    match hash {
        Some(hash) => info.with_schema_id(hash),
        None => info,
    }
}

/// Returns the type hash of a common interface, or `None` if the type is not one of them.
#[cfg(feature = "ros2")]
pub(crate) fn known_hash(name: &str) -> Option<String> {
    definition(name)?.schema().type_hash()
}

fn definition(name: &str) -> Option<&'static Definition> {
    // Types of actions and services have the form of a message, but no entry.
    if name.split('/').nth(1) != Some("msg") {
        return None;
    }
    definitions::find(&TypeName::parse(name)?, Dialect::Ros2)
}

/// Returns the type hash of a topic of the bus, or `None` if it is not known.
#[cfg(feature = "ros2")]
pub(crate) fn hash_of(publisher: &UntypedPublisher) -> Option<&str> {
    Some(publisher.type_info().schema_id()).filter(|id| dds::is_type_hash(id))
}

/// Returns `true` if a message begins with an encapsulation header of CDR (OMG DDSI-RTPS 2.5, 10.2: CDR, PL_CDR and their second version,
/// in either order of octets).
#[cfg(feature = "ros2")]
pub(crate) fn is_cdr(message: &Encoded) -> bool {
    let mut octets = message.chunks().iter().flatten();
    let identifier = (octets.next(), octets.next());
    message.len() >= 4 && matches!(identifier, (Some(0), Some(0..=3 | 6..=11)))
}
