//! ROS messages without a ROS installation: type definitions and serialised messages.
//!
//! | module | holds |
//! |---|---|
//! | [`msg`] | definitions of messages (`.msg`): parser, MD5 sum of ROS 1, type hash of ROS 2 |
//! | [`definitions`] | definitions of the common interfaces |
//! | [`ros1`] | the serialisation of ROS 1: the check of a message against its definition |
//! | [`codec`] | messages of any type as values: ROS 1, CDR |
//! | [`json`] | values as JSON |
//! | [`primitive`] | values of std_msgs as plain text |
//! | [`transcode`] | messages of one definition as messages of another one: ROS 1 and ROS 2 |
//! | [`dds`] | ROS 2 on DDS: names of topics and types, nodes of a participant, type hashes |
//! | [`tcpros`] | connections of ROS 1: headers, handshake, frames |
//! | [`mqtt_client`] | the wire format of mqtt_client: types and messages on MQTT topics |
//! | [`xmlrpc`] | calls between the nodes of ROS 1 and their master |
//! | [`limits`] | all limits |
//!
//! ```
//! use viaduct_ros::{msg::{Dialect, Schema}, ros1};
//!
//! let schema = Schema::parse(Dialect::Ros1, "std_msgs/String", "string data")?;
//! assert_eq!(schema.md5(), "992ce8a1687cec8c8bd883ec73ca41d1");
//! assert!(ros1::check(&schema, b"\x05\0\0\0hello").is_ok());
//! assert!(ros1::check(&schema, b"\xFF\0\0\0hello").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: clocks, sockets, threads. Nothing panics, whatever the input.

pub mod codec;
pub mod dds;
pub mod definitions;
pub mod json;
pub mod limits;
pub mod mqtt_client;
pub mod msg;
pub mod primitive;
pub mod ros1;
pub mod tcpros;
pub mod transcode;
pub mod value;
pub mod xmlrpc;
