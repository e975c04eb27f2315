//! Definitions of the common interfaces, for peers that do not send the definition of their types.
//!
//! The definitions of ROS 2 are those of Jazzy. Older versions differ in `sensor_msgs/Range`, which has no `variance` in Humble.
//!
//! | package | types |
//! |---|---|
//! | std_msgs, builtin_interfaces | all |
//! | geometry_msgs, sensor_msgs, diagnostic_msgs | all messages |
//! | nav_msgs | messages, without those of actions |
//! | tf2_msgs | TFMessage, TF2Error |
//! | rosgraph_msgs | Clock, in ROS 1 also Log |
//! | vision_msgs | detections, classifications, boxes |
//! | velodyne_msgs | packets and scans |
//! | mqtt_client, mqtt_client_interfaces | RosMsgType |
//!
//! ```
//! use viaduct_ros::{definitions, msg::{Dialect, TypeName}};
//!
//! let name = TypeName::parse("sensor_msgs/PointCloud2").ok_or("no name")?;
//! let cloud = definitions::find(&name, Dialect::Ros1).ok_or("not known")?;
//! assert_eq!(cloud.schema().md5(), "1158d486dd51d683ce2f1be655c3c181");
//! assert!(cloud.text().contains("MSG: std_msgs/Header"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use crate::msg::{Dialect, Schema, TypeName};

/// One text for each package. `MSG: package/Name` begins a type of both ROS versions, `MSG: package/Name (ROS 1)` one of ROS 1.
const PACKAGES: [&str; 11] = [
    include_str!("../definitions/builtin_interfaces.msg"),
    include_str!("../definitions/std_msgs.msg"),
    include_str!("../definitions/geometry_msgs.msg"),
    include_str!("../definitions/sensor_msgs.msg"),
    include_str!("../definitions/nav_msgs.msg"),
    include_str!("../definitions/diagnostic_msgs.msg"),
    include_str!("../definitions/tf2_msgs.msg"),
    include_str!("../definitions/rosgraph_msgs.msg"),
    include_str!("../definitions/vision_msgs.msg"),
    include_str!("../definitions/velodyne_msgs.msg"),
    include_str!("../definitions/mqtt_client.msg"),
];

/// The types of the texts that are basic types in ROS 1 only, with their names in ROS 2.
const ROS_2_NAMES: [(&str, &str); 3] =
    [("Header", "std_msgs/Header"), ("time", "builtin_interfaces/Time"), ("duration", "builtin_interfaces/Duration")];

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(&PACKAGES));

/// The definition of a message, with those of all types that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    text: String,
    schema: Schema,
}

impl Definition {
    /// Returns the text, as the connection header of ROS 1 carries it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parsed definition.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }
}

/// Returns the definition of a common type, or `None` if the type is not one of them.
#[must_use]
pub fn find(name: &TypeName, dialect: Dialect) -> Option<&'static Definition> {
    let types = REGISTRY.types(dialect);
    let entry = types.get(name)?;
    entry.definition.get_or_init(|| definition(types, name, dialect)).as_ref()
}

/// Returns the definition of a type in the other ROS version. That of a type which is not a common one is made from the given one: with the
/// names of fields that ROS 2 requires, and without the limits that ROS 1 does not have. Returns `None` if the other version does not have a
/// field's type.
#[must_use]
pub fn counterpart(schema: &Schema) -> Option<Definition> {
    let dialect = match schema.dialect() {
        Dialect::Ros1 => Dialect::Ros2,
        Dialect::Ros2 => Dialect::Ros1,
    };
    let root = schema.root()?.name();
    if let Some(known) = find(root, dialect) {
        return Some(known.clone());
    }
    let common = REGISTRY.types(dialect);
    assemble(root, dialect, |name| match common.get(name) {
        Some(entry) => Some(entry.body.clone()),
        None => schema.body_in_other_version(schema.types().iter().find(|own| own.name() == name)?),
    })
}

/// Returns the names of all common types of a ROS version, in alphabetical order.
pub fn names(dialect: Dialect) -> impl Iterator<Item = &'static TypeName> {
    REGISTRY.types(dialect).keys()
}

/// The types of each ROS version.
struct Registry {
    ros1: BTreeMap<TypeName, Entry>,
    ros2: BTreeMap<TypeName, Entry>,
}

/// A type.
#[derive(Default)]
struct Entry {
    /// Its fields and constants.
    body: String,
    /// Its definition, once it was asked for.
    definition: OnceLock<Option<Definition>>,
}

impl Registry {
    fn new(packages: &[&str]) -> Self {
        let mut registry = Self { ros1: BTreeMap::new(), ros2: BTreeMap::new() };
        for section in packages.iter().flat_map(|package| package.split("\nMSG: ").skip(1)) {
            registry.add(section);
        }
        registry
    }

    fn add(&mut self, section: &str) {
        let (header, body) = section.split_once('\n').unwrap_or((section, ""));
        let (name, version) = header.split_once(' ').unwrap_or((header, ""));
        let Some(name) = TypeName::parse(name) else { return };
        let lines = || body.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        if version != "(ROS 2)" {
            let body = lines().flat_map(|line| [line, "\n"]).collect();
            self.ros1.insert(name.clone(), Entry { body, ..Entry::default() });
        }
        if version != "(ROS 1)" {
            let body = lines().flat_map(|line| [ros_2_line(line), "\n".to_owned()]).collect();
            self.ros2.insert(name, Entry { body, ..Entry::default() });
        }
    }

    const fn types(&self, dialect: Dialect) -> &BTreeMap<TypeName, Entry> {
        match dialect {
            Dialect::Ros1 => &self.ros1,
            Dialect::Ros2 => &self.ros2,
        }
    }
}

/// Returns a line with the names of ROS 2 in place of the basic types of ROS 1.
fn ros_2_line(line: &str) -> String {
    for (name, full_name) in ROS_2_NAMES {
        if let Some(rest) = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '['])) {
            return format!("{full_name}{rest}");
        }
    }
    line.to_owned()
}

fn definition(types: &BTreeMap<TypeName, Entry>, name: &TypeName, dialect: Dialect) -> Option<Definition> {
    assemble(name, dialect, |name| types.get(name).map(|entry| entry.body.clone()))
}

/// Joins the definitions of a message and of all types that it uses. `body` returns that of one type.
fn assemble(name: &TypeName, dialect: Dialect, body: impl Fn(&TypeName) -> Option<String>) -> Option<Definition> {
    let (mut text, mut used) = (String::new(), vec![name.clone()]);
    let mut next = 0;
    while let Some(name) = used.get(next).cloned() {
        let body = body(&name)?;
        if next > 0 {
            text += &format!("{}\nMSG: {name}\n", "=".repeat(80));
        }
        text += &body;
        for other in name.used_by(dialect, &body) {
            if !used.contains(&other) {
                used.push(other);
            }
        }
        next += 1;
    }
    let schema = Schema::parse(dialect, &name.to_string(), &text).ok()?;
    Some(Definition { text, schema })
}
