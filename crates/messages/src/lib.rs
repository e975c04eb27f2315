//! Messages on the bus: protobuf types, their descriptors, and the names of topics.
//!
//! Messages for viewers have Foxglove's message names and field numbers ([`foxglove`]); all others are in the package
//! [`viaduct`]. The schemas are in `proto/`.

#[expect(missing_docs, clippy::all, reason = "generated: the comments are in proto/")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/mod.rs"));
}

pub mod its;
pub mod topic;

pub use generated::{foxglove, viaduct};

/// The octets of [`DESCRIPTOR_SET`]. They are in the binary once; octets that a constant holds are in each crate that uses it.
static DESCRIPTORS: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin")).len()] =
    *include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// All schemas of this crate and their imports, as an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTOR_SET: &[u8] = &DESCRIPTORS;

/// A message that can travel on the bus as a value: a protobuf type with a full name and a schema.
pub trait Message: prost::Message + prost::Name + Default + 'static {
    /// Schema of the type and its imports, as an encoded `google.protobuf.FileDescriptorSet`.
    const DESCRIPTOR_SET: &'static [u8];
}

/// Implements [`Message`] for types of this crate, whose schemas are in [`DESCRIPTOR_SET`].
macro_rules! messages {
    ($($name:path),* $(,)?) => {
        $(impl Message for $name {
            const DESCRIPTOR_SET: &'static [u8] = DESCRIPTOR_SET;
        })*
    };
}

messages!(
    foxglove::CompressedImage,
    foxglove::LocationFix,
    foxglove::Log,
    foxglove::PointCloud,
    foxglove::RawImage,
    viaduct::figures::KeyFigures,
    viaduct::figures::RoundTrip,
    viaduct::its::V2xError,
    viaduct::its::V2xMessage,
    viaduct::its::V2xSendRequest,
    viaduct::its::EventNotice,
    viaduct::its::EventRequest,
    viaduct::its::LocalDynamicMap,
    viaduct::perception::PerceivedObjects,
    viaduct::robot::BatteryState,
    viaduct::robot::RobotCommand,
    viaduct::teleop::DrivingEvent,
    viaduct::teleop::DrivingState,
    viaduct::teleop::RequestAnswer,
    viaduct::teleop::Telemetry,
    viaduct::vehicle::CameraBudget,
    viaduct::vehicle::DriveCommand,
    viaduct::vehicle::VehicleState,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bytes_field_is_decoded_without_a_copy() {
        let cloud = foxglove::PointCloud { data: bytes::Bytes::from(vec![7; 4096]), ..Default::default() };
        let encoded = bytes::Bytes::from(prost::Message::encode_to_vec(&cloud));
        let within = encoded.as_ptr_range();
        let decoded = <foxglove::PointCloud as prost::Message>::decode(encoded.clone()).unwrap();
        assert!(within.contains(&decoded.data.as_ptr()));
    }

    #[test]
    fn names_are_those_of_the_foxglove_schemas() {
        assert_eq!(<foxglove::PointCloud as prost::Name>::full_name(), "foxglove.PointCloud");
        assert_eq!(<viaduct::its::V2xMessage as prost::Name>::full_name(), "viaduct.its.V2xMessage");
    }
}
