//! Message header and identifiers.

use rasn::prelude::*;

use super::position::ReferencePositionWithConfidence;
/// A version or sequence number.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct OrdinalNumber1B(pub u8);

/// A sequence number from 1.
///
/// 1 to 8.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=8"))]
pub struct OrdinalNumber3b(pub u8);

/// A count.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct CardinalNumber1B(pub u8);

/// A count of at least 1.
///
/// 1 to 8.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=8"))]
pub struct CardinalNumber3b(pub u8);

/// An identifier whose meaning depends on the context.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct Identifier1B(pub u8);

/// An identifier whose meaning depends on the context.
///
/// 0 to 65 535.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=65535"))]
pub struct Identifier2B(pub u16);

/// Identifier of the message that follows the header.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct MessageId(pub u8);

impl MessageId {
    /// `denm`.
    pub const DENM: Self = Self(1);
    /// `cam`.
    pub const CAM: Self = Self(2);
    /// `poim`.
    pub const POIM: Self = Self(3);
    /// `spatem`.
    pub const SPATEM: Self = Self(4);
    /// `mapem`.
    pub const MAPEM: Self = Self(5);
    /// `ivim`.
    pub const IVIM: Self = Self(6);
    /// `rfu1`.
    pub const RFU1: Self = Self(7);
    /// `rfu2`.
    pub const RFU2: Self = Self(8);
    /// `srem`.
    pub const SREM: Self = Self(9);
    /// `ssem`.
    pub const SSEM: Self = Self(10);
    /// `evcsn`.
    pub const EVCSN: Self = Self(11);
    /// `saem`.
    pub const SAEM: Self = Self(12);
    /// `rtcmem`.
    pub const RTCMEM: Self = Self(13);
    /// `cpm`.
    pub const CPM: Self = Self(14);
    /// `imzm`.
    pub const IMZM: Self = Self(15);
    /// `vam`.
    pub const VAM: Self = Self(16);
    /// `dsm`.
    pub const DSM: Self = Self(17);
    /// `mim`.
    pub const MIM: Self = Self(18);
    /// `mvm`.
    pub const MVM: Self = Self(19);
    /// `mcm`.
    pub const MCM: Self = Self(20);
    /// `pim`.
    pub const PIM: Self = Self(21);
}

/// Identifier of an ITS station; it changes with the pseudonym.
///
/// 0 to 4 294 967 295.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=4294967295"))]
pub struct StationId(pub u32);

/// The header at the start of every message.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ItsPduHeader {
    /// Version of the format.
    #[rasn(identifier = "protocolVersion")]
    pub protocol_version: OrdinalNumber1B,
    /// Identifier of the message.
    #[rasn(identifier = "messageId")]
    pub message_id: MessageId,
    /// Identifier of the sender.
    #[rasn(identifier = "stationId")]
    pub station_id: StationId,
}

/// Sequence number of a station's actions; it wraps around.
///
/// 0 to 65 535.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=65535"))]
pub struct SequenceNumber(pub u16);

/// Identifier of one action (an event's DENM) of one station.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ActionId {
    /// Station that detected the event first.
    #[rasn(identifier = "originatingStationId")]
    pub originating_station_id: StationId,
    /// Sequence number of the event at that station.
    #[rasn(identifier = "sequenceNumber")]
    pub sequence_number: SequenceNumber,
}

/// A list of action identifiers.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct ActionIdList(pub Vec<ActionId>);

/// Type and position of the sender.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct BasicContainer {
    /// Type of the station.
    #[rasn(identifier = "stationType")]
    pub station_type: TrafficParticipantType,
    /// Position of the station.
    #[rasn(identifier = "referencePosition")]
    pub reference_position: ReferencePositionWithConfidence,
}

impl BasicContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(
        station_type: TrafficParticipantType,
        reference_position: ReferencePositionWithConfidence,
    ) -> Self {
        Self { station_type, reference_position }
    }
}

/// Type of a station; the values are those of [`TrafficParticipantType`].
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct StationType(pub u8);

impl StationType {
    /// `unknown`.
    pub const UNKNOWN: Self = Self(0);
    /// `pedestrian`.
    pub const PEDESTRIAN: Self = Self(1);
    /// `cyclist`.
    pub const CYCLIST: Self = Self(2);
    /// `moped`.
    pub const MOPED: Self = Self(3);
    /// `motorcycle`.
    pub const MOTORCYCLE: Self = Self(4);
    /// `passengerCar`.
    pub const PASSENGER_CAR: Self = Self(5);
    /// `bus`.
    pub const BUS: Self = Self(6);
    /// `lightTruck`.
    pub const LIGHT_TRUCK: Self = Self(7);
    /// `heavyTruck`.
    pub const HEAVY_TRUCK: Self = Self(8);
    /// `trailer`.
    pub const TRAILER: Self = Self(9);
    /// `specialVehicle`.
    pub const SPECIAL_VEHICLE: Self = Self(10);
    /// `tram`.
    pub const TRAM: Self = Self(11);
    /// `lightVruVehicle`.
    pub const LIGHT_VRU_VEHICLE: Self = Self(12);
    /// `animal`.
    pub const ANIMAL: Self = Self(13);
    /// `agricultural`.
    pub const AGRICULTURAL: Self = Self(14);
    /// `infrastructure`.
    pub const INFRASTRUCTURE: Self = Self(15);
}

/// Type of a traffic participant.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct TrafficParticipantType(pub u8);

impl TrafficParticipantType {
    /// `unknown`.
    pub const UNKNOWN: Self = Self(0);
    /// `pedestrian`.
    pub const PEDESTRIAN: Self = Self(1);
    /// `cyclist`.
    pub const CYCLIST: Self = Self(2);
    /// `moped`.
    pub const MOPED: Self = Self(3);
    /// `motorcycle`.
    pub const MOTORCYCLE: Self = Self(4);
    /// `passengerCar`.
    pub const PASSENGER_CAR: Self = Self(5);
    /// `bus`.
    pub const BUS: Self = Self(6);
    /// `lightTruck`.
    pub const LIGHT_TRUCK: Self = Self(7);
    /// `heavyTruck`.
    pub const HEAVY_TRUCK: Self = Self(8);
    /// `trailer`.
    pub const TRAILER: Self = Self(9);
    /// `specialVehicle`.
    pub const SPECIAL_VEHICLE: Self = Self(10);
    /// `tram`.
    pub const TRAM: Self = Self(11);
    /// `lightVruVehicle`.
    pub const LIGHT_VRU_VEHICLE: Self = Self(12);
    /// `animal`.
    pub const ANIMAL: Self = Self(13);
    /// `agricultural`.
    pub const AGRICULTURAL: Self = Self(14);
    /// `infrastructure`.
    pub const INFRASTRUCTURE: Self = Self(15);
}

/// Number of a message segment and count of all segments of the message.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct MessageSegmentationInfo {
    /// Number of segments, 1 to 8.
    #[rasn(identifier = "totalMsgNo")]
    pub total_msg_no: CardinalNumber3b,
    /// Number of this segment, 1 to 8.
    #[rasn(identifier = "thisMsgNo")]
    pub this_msg_no: OrdinalNumber3b,
}

/// A message rate: mantissa times ten to the power of the exponent, in Hz.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct MessageRateHz {
    /// Mantissa, 1 to 100.
    #[rasn(value("1..=100"))]
    pub mantissa: u8,
    /// Exponent of ten, -5 to 2.
    #[rasn(value("-5..=2"))]
    pub exponent: i8,
}
