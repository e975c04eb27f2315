//! Names of ROS 2, and the same names in DDS.
//!
//! Source: design.ros2.org, "Topic and Service name mapping to DDS"; the rules of `rmw_validate_full_topic_name`.

use crate::limits::NAME_OCTETS_MAX;

/// Prefix of topics in DDS.
const TOPIC_PREFIX: &str = "rt";
/// Longest name of a topic or a node with its namespace, so that the name in DDS has at most 255 octets.
const TOPIC_OCTETS_MAX: usize = 247;
/// Namespace that a type has in DDS in front of its name, and the suffix of the name.
const TYPE_NAMESPACE: &str = "dds_";
const TYPE_SUFFIX: char = '_';

/// The reason why a text is not a name of ROS 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no leading `/`.
    #[error("`{0}` does not begin with `/`")]
    NotAbsolute(String),
    /// The name has more octets than a DDS name can have.
    #[error("the name has {0} octets, and at most {TOPIC_OCTETS_MAX} are allowed")]
    TooLong(usize),
    /// A part of the name has other characters, is empty, or begins with a digit.
    #[error(
        "`{0}` is not a name of ROS 2: expected letters, digits and `_`, no digit at the begin, and levels joined by `/`"
    )]
    Level(String),
}

/// Checks the full name of a topic: `/lidar/points`.
///
/// # Errors
/// Returns the reason why the text is not such a name.
pub fn check_topic(name: &str) -> Result<(), NameError> {
    let levels = name.strip_prefix('/').ok_or_else(|| NameError::NotAbsolute(name.to_owned()))?;
    if name.len() > TOPIC_OCTETS_MAX {
        return Err(NameError::TooLong(name.len()));
    }
    if levels.split('/').all(is_level) { Ok(()) } else { Err(NameError::Level(name.to_owned())) }
}

/// Checks a namespace: `/`, or as the name of a topic.
///
/// # Errors
/// Returns the reason why the text is not a namespace.
pub fn check_namespace(name: &str) -> Result<(), NameError> {
    if name == "/" { Ok(()) } else { check_topic(name) }
}

/// Checks the name of a node, without its namespace.
///
/// # Errors
/// Returns the reason why the text is not such a name.
pub fn check_node_name(name: &str) -> Result<(), NameError> {
    if name.len() > TOPIC_OCTETS_MAX {
        return Err(NameError::TooLong(name.len()));
    }
    if is_level(name) { Ok(()) } else { Err(NameError::Level(name.to_owned())) }
}

fn is_level(level: &str) -> bool {
    level.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && level.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the name in DDS of a topic: `rt/chatter` for `/chatter`.
#[must_use]
pub fn dds_topic(topic: &str) -> String {
    format!("{TOPIC_PREFIX}{topic}")
}

/// Returns the topic of a name in DDS, or `None` if it is not the name of a topic of ROS.
#[must_use]
pub fn ros_topic(name: &str) -> Option<&str> {
    name.strip_prefix(TOPIC_PREFIX).filter(|topic| check_topic(topic).is_ok())
}

/// Returns the name in DDS of a type: `std_msgs::msg::dds_::String_` for `std_msgs/msg/String` or `std_msgs/String`. Returns `None`
/// if the text is not the name of a type.
#[must_use]
pub fn dds_type(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let (package, folder, name) = match parts.as_slice() {
        [package, name] => (*package, "msg", *name),
        [package, folder, name] => (*package, *folder, *name),
        _ => return None,
    };
    let are_names = [package, folder, name].into_iter().all(is_type_part);
    are_names.then(|| format!("{package}::{folder}::{TYPE_NAMESPACE}::{name}{TYPE_SUFFIX}"))
}

/// Returns the type of a name in DDS: `std_msgs/msg/String` for `std_msgs::msg::dds_::String_`. Returns `None` if it is not the name of
/// a type of ROS.
#[must_use]
pub fn ros_type(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split("::").collect();
    let [package, folder, TYPE_NAMESPACE, name] = parts.as_slice() else { return None };
    let name = name.strip_suffix(TYPE_SUFFIX)?;
    let are_names = [*package, *folder, name].into_iter().all(is_type_part);
    are_names.then(|| format!("{package}/{folder}/{name}"))
}

fn is_type_part(part: &str) -> bool {
    part.len() <= NAME_OCTETS_MAX
        && part.starts_with(|first: char| first.is_ascii_alphabetic())
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_types_have_names_in_dds() {
        assert_eq!(dds_topic("/chatter"), "rt/chatter");
        assert_eq!(ros_topic("rt/a/b"), Some("/a/b"));
        for other in ["rq/addRequest", "ros_discovery_info", "rt", "rt/", "rt/a b", "rta"] {
            assert_eq!(ros_topic(other), None, "{other}");
        }
        let string = "std_msgs::msg::dds_::String_";
        assert_eq!(dds_type("std_msgs/msg/String").as_deref(), Some(string));
        assert_eq!(dds_type("std_msgs/String").as_deref(), Some(string));
        assert_eq!(ros_type(string).as_deref(), Some("std_msgs/msg/String"));
        let feedback = "a::action::dds_::Fibonacci_FeedbackMessage_";
        assert_eq!(ros_type(feedback).as_deref(), Some("a/action/Fibonacci_FeedbackMessage"));
        assert_eq!(dds_type("a/action/Fibonacci_FeedbackMessage").as_deref(), Some(feedback));
        for other in ["", "String", "a/b/c/D", "a//B", "a/B ", "1/B", "viaduct.its.V2xMessage"] {
            assert_eq!(dds_type(other), None, "{other}");
        }
        for other in ["HelloWorld", "a::msg::B_", "a::msg::dds_::B", "a::msg::dds_::_", "::msg::dds_::B_"] {
            assert_eq!(ros_type(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_has_levels_of_letters_digits_and_underscores() {
        for good in ["/chatter", "/a/b_2", "/_hidden", "/a__b"] {
            assert_eq!(check_topic(good), Ok(()), "{good}");
        }
        for bad in ["", "/", "a", "/a/", "/a//b", "/1", "/a b", "/ä", "/a\0", &format!("/{}", "a".repeat(247))] {
            assert!(check_topic(bad).is_err(), "{bad}");
        }
        assert_eq!(check_namespace("/"), Ok(()));
        assert!(check_namespace("").is_err());
        assert_eq!(check_node_name("bridge_1"), Ok(()));
        assert!(check_node_name("/bridge").is_err() && check_node_name("1").is_err());
    }
}
