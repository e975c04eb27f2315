//! ROS 2 on DDS: names of topics and types, the nodes of a participant, and the type hash of an endpoint.
//!
//! | file | holds |
//! |---|---|
//! | `names` | `/chatter` and `std_msgs/msg/String` as DDS has them (`rt/chatter`, `std_msgs::msg::dds_::String_`) |
//! | `graph` | the message on the topic `ros_discovery_info`, by which `ros2 node list` finds nodes |
//! | `user_data` | the DDS policy USER_DATA: `enclave` of a participant, `typehash` of an endpoint |
//!
//! Messages themselves are CDR, see [`crate::codec`].

mod graph;
mod names;
mod user_data;

pub use graph::{
    GidForm, Guid, NodeEntities, PARTICIPANT_ENTITIES_TOPIC, PARTICIPANT_ENTITIES_TYPE, ParticipantEntities,
};
pub use names::{NameError, check_namespace, check_node_name, check_topic, dds_topic, dds_type, ros_topic, ros_type};
pub use user_data::{enclave, is_type_hash, read_type_hash, type_hash};
