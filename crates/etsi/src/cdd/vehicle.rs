//! Properties of a vehicle and the state of its controls.

use super::bits::{large_bit_string, small_bit_string, variable_bit_string};
use rasn::prelude::*;

use super::{header::Identifier1B, motion::CartesianAngle, position::StandardLength1B, text::CompanyName};
/// Length of a vehicle in 0.1 m.
///
/// 1 to 1023.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=1023"))]
pub struct VehicleLengthValue(pub u16);

impl VehicleLengthValue {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(1022);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(1023);
}

/// Indication if the vehicle's length includes a trailer.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum VehicleLengthConfidenceIndication {
    /// `noTrailerPresent`.
    #[rasn(identifier = "noTrailerPresent")]
    NoTrailerPresent,
    /// `trailerPresentWithKnownLength`.
    #[rasn(identifier = "trailerPresentWithKnownLength")]
    TrailerPresentWithKnownLength,
    /// `trailerPresentWithUnknownLength`.
    #[rasn(identifier = "trailerPresentWithUnknownLength")]
    TrailerPresentWithUnknownLength,
    /// `trailerPresenceIsUnknown`.
    #[rasn(identifier = "trailerPresenceIsUnknown")]
    TrailerPresenceIsUnknown,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Length of a vehicle, with an indication if it includes a trailer.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VehicleLength {
    /// Length of a vehicle in 0.1 m.
    #[rasn(identifier = "vehicleLengthValue")]
    pub vehicle_length_value: VehicleLengthValue,
    /// Indication if the vehicle's length includes a trailer.
    #[rasn(identifier = "vehicleLengthConfidenceIndication")]
    pub vehicle_length_confidence_indication: VehicleLengthConfidenceIndication,
}

/// Width of a vehicle with its mirrors in 0.1 m.
///
/// 1 to 62.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=62"))]
pub struct VehicleWidth(pub u8);

impl VehicleWidth {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(61);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(62);
}

/// Height of a vehicle in 0.1 m.
///
/// 1 to 62.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=62"))]
pub struct VehicleHeight2(pub u8);

impl VehicleHeight2 {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(61);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(62);
}

/// Role of a vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum VehicleRole {
    /// `default`.
    #[rasn(identifier = "default")]
    Default,
    /// `publicTransport`.
    #[rasn(identifier = "publicTransport")]
    PublicTransport,
    /// `specialTransport`.
    #[rasn(identifier = "specialTransport")]
    SpecialTransport,
    /// `dangerousGoods`.
    #[rasn(identifier = "dangerousGoods")]
    DangerousGoods,
    /// `roadWork`.
    #[rasn(identifier = "roadWork")]
    RoadWork,
    /// `rescue`.
    #[rasn(identifier = "rescue")]
    Rescue,
    /// `emergency`.
    #[rasn(identifier = "emergency")]
    Emergency,
    /// `safetyCar`.
    #[rasn(identifier = "safetyCar")]
    SafetyCar,
    /// `agriculture`.
    #[rasn(identifier = "agriculture")]
    Agriculture,
    /// `commercial`.
    #[rasn(identifier = "commercial")]
    Commercial,
    /// `military`.
    #[rasn(identifier = "military")]
    Military,
    /// `roadOperator`.
    #[rasn(identifier = "roadOperator")]
    RoadOperator,
    /// `taxi`.
    #[rasn(identifier = "taxi")]
    Taxi,
    /// `uvar`.
    #[rasn(identifier = "uvar")]
    Uvar,
    /// `rfu1`.
    #[rasn(identifier = "rfu1")]
    Rfu1,
    /// `rfu2`.
    #[rasn(identifier = "rfu2")]
    Rfu2,
}

/// Mass of an empty vehicle in 100 kg.
///
/// 1 to 1024.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=1024"))]
pub struct VehicleMass(pub u16);

impl VehicleMass {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(1023);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(1024);
}

/// Distance between the axles in 0.1 m.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct WheelBaseVehicle(pub u8);

impl WheelBaseVehicle {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Smallest turning circle in 0.4 m.
///
/// 1 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=255"))]
pub struct TurningRadius(pub u8);

impl TurningRadius {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(254);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(255);
}

/// Height of the longitudinal carrier above ground in 0.01 m.
///
/// 1 to 100.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=100"))]
pub struct HeightLonCarr(pub u8);

impl HeightLonCarr {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(99);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(100);
}

/// Distance of the longitudinal carrier from the vehicle's middle in 0.01 m.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct PosLonCarr(pub u8);

impl PosLonCarr {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Distance of the front axle from the front in 0.1 m.
///
/// 1 to 20.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=20"))]
pub struct PosFrontAx(pub u8);

impl PosFrontAx {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(19);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(20);
}

/// Distance of the centre of mass from the front in 0.1 m.
///
/// 1 to 63.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=63"))]
pub struct PosCentMass(pub u8);

impl PosCentMass {
    /// `tenCentimetres`.
    pub const TEN_CENTIMETRES: Self = Self(1);
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(62);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(63);
}

/// Distance of a pillar from the front in 0.1 m.
///
/// 1 to 30.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=30"))]
pub struct PosPillar(pub u8);

impl PosPillar {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(29);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(30);
}

/// Positions of the pillars, from front to back.
///
/// 1 to 3 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=3", extensible))]
pub struct PositionOfPillars(pub Vec<PosPillar>);

/// Occupied seats.
///
/// 20 bits, the first one first: `row1LeftOccupied`, `row1RightOccupied`, `row1MidOccupied`, `row1NotDetectable`,
/// `row1NotPresent`, `row2LeftOccupied`, `row2RightOccupied`, `row2MidOccupied`, `row2NotDetectable`, `row2NotPresent`,
/// `row3LeftOccupied`, `row3RightOccupied`, `row3MidOccupied`, `row3NotDetectable`, `row3NotPresent`,
/// `row4LeftOccupied`, `row4RightOccupied`, `row4MidOccupied`, `row4NotDetectable`, `row4NotPresent`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct PositionOfOccupants(pub FixedBitString<20>);

large_bit_string!(PositionOfOccupants, 20);

/// Number of occupants.
///
/// 0 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=127"))]
pub struct NumberOfOccupants(pub u8);

impl NumberOfOccupants {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Class of the station's accuracy over time.
///
/// 0 to 7.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=7"))]
pub struct PerformanceClass(pub u8);

impl PerformanceClass {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `performanceClassA`.
    pub const PERFORMANCE_CLASS_A: Self = Self(1);
    /// `performanceClassB`.
    pub const PERFORMANCE_CLASS_B: Self = Self(2);
}

/// Lights that are switched on.
///
/// 8 bits, the first one first: `lowBeamHeadlightsOn`, `highBeamHeadlightsOn`, `leftTurnSignalOn`, `rightTurnSignalOn`,
/// `daytimeRunningLightsOn`, `reverseLightOn`, `fogLightOn`, `parkingLightsOn`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct ExteriorLights(pub FixedBitString<8>);

small_bit_string!(ExteriorLights, 8);

/// Active controls of the longitudinal movement.
///
/// 7 bits, the first one first: `brakePedalEngaged`, `gasPedalEngaged`, `emergencyBrakeEngaged`,
/// `collisionWarningEngaged`, `accEngaged`, `cruiseControlEngaged`, `speedLimiterEngaged`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct AccelerationControl(pub FixedBitString<7>);

small_bit_string!(AccelerationControl, 7);

/// Further controls of the longitudinal movement.
///
/// 3 bits, the first one first: `rearCrossTrafficAlertEngaged`, `emergencyBrakeRearEngaged`,
/// `assistedParkingLongitudinalEngaged`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("3", extensible))]
pub struct AccelerationControlExtension(pub BitString);

variable_bit_string!(AccelerationControlExtension);

/// Active automated functions.
///
/// 6 bits, the first one first: `emergencySteeringSystemEngaged`, `autonomousEmergencySteeringEngaged`,
/// `automaticLaneChangeEngaged`, `laneKeepingAssistEngaged`, `assistedParkingLateralEngaged`, `emergencyAssistEngaged`;
/// longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("6", extensible))]
pub struct AutomationControl(pub BitString);

variable_bit_string!(AutomationControl);

/// Level of driving automation (SAE J3016).
///
/// 0 to 5.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=5"))]
pub struct SaeAutomationLevel(pub u8);

/// Position of a pedal, in steps of 10 %.
///
/// 0 to 11.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=11"))]
pub struct PedalPositionValue(pub u8);

impl PedalPositionValue {
    /// `notPressed`.
    pub const NOT_PRESSED: Self = Self(0);
    /// `fullyPressed`.
    pub const FULLY_PRESSED: Self = Self(10);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(11);
}

/// State of a pedal.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PedalStatus {
    /// Position of a pedal, in steps of 10 %.
    #[rasn(identifier = "pedalPositionValue")]
    pub pedal_position_value: PedalPositionValue,
}

impl PedalStatus {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(pedal_position_value: PedalPositionValue) -> Self {
        Self { pedal_position_value }
    }
}

/// Controls of a vehicle's movement: pedals and automated functions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VehicleMovementControl {
    /// The accelerator.
    #[rasn(identifier = "accelerationPedalStatus")]
    pub acceleration_pedal_status: PedalStatus,
    /// The brake pedal.
    #[rasn(identifier = "brakePedalStatus")]
    pub brake_pedal_status: PedalStatus,
    /// Level of driving automation (SAE J3016).
    #[rasn(identifier = "saeAutomationLevel")]
    pub sae_automation_level: Option<SaeAutomationLevel>,
    /// Active automated functions.
    #[rasn(identifier = "automationControl")]
    pub automation_control: Option<AutomationControl>,
    /// Active controls of the longitudinal movement.
    #[rasn(identifier = "accelerationControl")]
    pub acceleration_control: Option<AccelerationControl>,
    /// Further controls of the longitudinal movement.
    #[rasn(identifier = "accelerationControlExtension")]
    pub acceleration_control_extension: Option<AccelerationControlExtension>,
}

impl VehicleMovementControl {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(acceleration_pedal_status: PedalStatus, brake_pedal_status: PedalStatus) -> Self {
        Self {
            acceleration_pedal_status,
            brake_pedal_status,
            sae_automation_level: None,
            automation_control: None,
            acceleration_control: None,
            acceleration_control_extension: None,
        }
    }
}

/// Active brake controls.
///
/// 3 bits, the first one first: `abs`, `tcs`, `esc`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("3", extensible))]
pub struct BrakeControl(pub BitString);

variable_bit_string!(BrakeControl);

/// State of the front wiper.
///
/// 0 to 7.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=7"))]
pub struct WiperStatus(pub u8);

impl WiperStatus {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `off`.
    pub const OFF: Self = Self(1);
    /// `intermittent`.
    pub const INTERMITTENT: Self = Self(2);
    /// `low`.
    pub const LOW: Self = Self(3);
    /// `high`.
    pub const HIGH: Self = Self(4);
}

/// State of light bar and siren.
///
/// 2 bits, the first one first: `lightBarActivated`, `sirenActivated`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct LightBarSirenInUse(pub FixedBitString<2>);

small_bit_string!(LightBarSirenInUse, 2);

/// Right of way that an emergency vehicle requests.
///
/// 2 bits, the first one first: `requestForRightOfWay`, `requestForFreeCrossingAtATrafficLight`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct EmergencyPriority(pub FixedBitString<2>);

small_bit_string!(EmergencyPriority, 2);

/// `true` if passengers are getting on or off.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct EmbarkationStatus(pub bool);

/// Special properties of a transport.
///
/// 4 bits, the first one first: `heavyLoad`, `excessWidth`, `excessLength`, `excessHeight`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct SpecialTransportType(pub FixedBitString<4>);

small_bit_string!(SpecialTransportType, 4);

/// Class of dangerous goods.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum DangerousGoodsBasic {
    /// `explosives1`.
    #[rasn(identifier = "explosives1")]
    Explosives1,
    /// `explosives2`.
    #[rasn(identifier = "explosives2")]
    Explosives2,
    /// `explosives3`.
    #[rasn(identifier = "explosives3")]
    Explosives3,
    /// `explosives4`.
    #[rasn(identifier = "explosives4")]
    Explosives4,
    /// `explosives5`.
    #[rasn(identifier = "explosives5")]
    Explosives5,
    /// `explosives6`.
    #[rasn(identifier = "explosives6")]
    Explosives6,
    /// `flammableGases`.
    #[rasn(identifier = "flammableGases")]
    FlammableGases,
    /// `nonFlammableGases`.
    #[rasn(identifier = "nonFlammableGases")]
    NonFlammableGases,
    /// `toxicGases`.
    #[rasn(identifier = "toxicGases")]
    ToxicGases,
    /// `flammableLiquids`.
    #[rasn(identifier = "flammableLiquids")]
    FlammableLiquids,
    /// `flammableSolids`.
    #[rasn(identifier = "flammableSolids")]
    FlammableSolids,
    /// `substancesLiableToSpontaneousCombustion`.
    #[rasn(identifier = "substancesLiableToSpontaneousCombustion")]
    SubstancesLiableToSpontaneousCombustion,
    /// `substancesEmittingFlammableGasesUponContactWithWater`.
    #[rasn(identifier = "substancesEmittingFlammableGasesUponContactWithWater")]
    SubstancesEmittingFlammableGasesUponContactWithWater,
    /// `oxidizingSubstances`.
    #[rasn(identifier = "oxidizingSubstances")]
    OxidizingSubstances,
    /// `organicPeroxides`.
    #[rasn(identifier = "organicPeroxides")]
    OrganicPeroxides,
    /// `toxicSubstances`.
    #[rasn(identifier = "toxicSubstances")]
    ToxicSubstances,
    /// `infectiousSubstances`.
    #[rasn(identifier = "infectiousSubstances")]
    InfectiousSubstances,
    /// `radioactiveMaterial`.
    #[rasn(identifier = "radioactiveMaterial")]
    RadioactiveMaterial,
    /// `corrosiveSubstances`.
    #[rasn(identifier = "corrosiveSubstances")]
    CorrosiveSubstances,
    /// `miscellaneousDangerousSubstances`.
    #[rasn(identifier = "miscellaneousDangerousSubstances")]
    MiscellaneousDangerousSubstances,
}

/// Details of dangerous goods.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct DangerousGoodsExtended {
    /// Class of the goods.
    #[rasn(identifier = "dangerousGoodsType")]
    pub dangerous_goods_type: DangerousGoodsBasic,
    /// UN number, 0 to 9999.
    #[rasn(value("0..=9999"), identifier = "unNumber")]
    pub un_number: u16,
    /// `true` if the goods are carried at elevated temperature.
    #[rasn(identifier = "elevatedTemperature")]
    pub elevated_temperature: bool,
    /// `true` if the goods must not be carried through tunnels.
    #[rasn(identifier = "tunnelsRestricted")]
    pub tunnels_restricted: bool,
    /// `true` if the goods are a limited quantity.
    #[rasn(identifier = "limitedQuantity")]
    pub limited_quantity: bool,
    /// Emergency action code, characters, 1 to 24.
    #[rasn(size("1..=24"), identifier = "emergencyActionCode")]
    pub emergency_action_code: Option<Ia5String>,
    /// Telephone number for assistance.
    #[rasn(identifier = "phoneNumber")]
    pub phone_number: Option<PhoneNumber>,
    /// Name of the company.
    #[rasn(identifier = "companyName")]
    pub company_name: Option<CompanyName>,
}

impl DangerousGoodsExtended {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        dangerous_goods_type: DangerousGoodsBasic,
        un_number: u16,
        elevated_temperature: bool,
        tunnels_restricted: bool,
        limited_quantity: bool,
    ) -> Self {
        Self {
            dangerous_goods_type,
            un_number,
            elevated_temperature,
            tunnels_restricted,
            limited_quantity,
            emergency_action_code: None,
            phone_number: None,
            company_name: None,
        }
    }
}

/// A telephone number.
///
/// 1 to 16 digits and spaces.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("1..=16"))]
pub struct PhoneNumber(pub NumericString);

/// Energy storage of a vehicle.
///
/// 7 bits, the first one first: `hydrogenStorage`, `electricEnergyStorage`, `liquidPropaneGas`, `compressedNaturalGas`,
/// `diesel`, `gasoline`, `ammonia`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct EnergyStorageType(pub FixedBitString<7>);

small_bit_string!(EnergyStorageType, 7);

/// Coding of [`PtActivationData`].
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct PtActivationType(pub u8);

impl PtActivationType {
    /// `undefinedCodingType`.
    pub const UNDEFINED_CODING_TYPE: Self = Self(0);
    /// `r09-16CodingType`.
    pub const R09_16_CODING_TYPE: Self = Self(1);
    /// `vdv-50149CodingType`.
    pub const VDV_50149_CODING_TYPE: Self = Self(2);
}

/// Octets that public transport uses to control signals.
///
/// 1 to 20 octets.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("1..=20"))]
pub struct PtActivationData(pub OctetString);

/// Control of signals by public transport.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PtActivation {
    /// Coding of [`PtActivationData`].
    #[rasn(identifier = "ptActivationType")]
    pub pt_activation_type: PtActivationType,
    /// Octets that public transport uses to control signals.
    #[rasn(identifier = "ptActivationData")]
    pub pt_activation_data: PtActivationData,
}

/// Vehicle descriptor section of a vehicle's identification number; ASN.1 name `VDS`.
///
/// 6 characters.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("6"))]
pub struct Vds(pub Ia5String);

/// World manufacturer identifier of a vehicle's identification number; ASN.1 name `WMInumber`.
///
/// 1 to 3 characters.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("1..=3"))]
pub struct WmiNumber(pub Ia5String);

/// Parts of a vehicle's identification number.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VehicleIdentification {
    /// World manufacturer identifier of a vehicle's identification number; ASN.1 name `WMInumber`.
    #[rasn(identifier = "wMInumber")]
    pub wmi_number: Option<WmiNumber>,
    /// Vehicle descriptor section of a vehicle's identification number; ASN.1 name `VDS`.
    #[rasn(identifier = "vDS")]
    pub vds: Option<Vds>,
}

impl VehicleIdentification {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { wmi_number: None, vds: None }
    }
}

impl Default for VehicleIdentification {
    fn default() -> Self {
        Self::new()
    }
}

/// Time for which a vehicle has been stationary.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum StationarySince {
    /// `lessThan1Minute`.
    #[rasn(identifier = "lessThan1Minute")]
    LessThan1Minute,
    /// `lessThan2Minutes`.
    #[rasn(identifier = "lessThan2Minutes")]
    LessThan2Minutes,
    /// `lessThan15Minutes`.
    #[rasn(identifier = "lessThan15Minutes")]
    LessThan15Minutes,
    /// `equalOrGreater15Minutes`.
    #[rasn(identifier = "equalOrGreater15Minutes")]
    EqualOrGreater15Minutes,
}

/// A trailer and its angle to the towing vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct TrailerData {
    /// Number of the reference point on the vehicle.
    #[rasn(identifier = "refPointId")]
    pub ref_point_id: Identifier1B,
    /// Distance from the reference point to the hitch in 0.1 m.
    #[rasn(identifier = "hitchPointOffset")]
    pub hitch_point_offset: StandardLength1B,
    /// Overhang from the hitch forwards in 0.1 m.
    #[rasn(identifier = "frontOverhang")]
    pub front_overhang: Option<StandardLength1B>,
    /// Overhang from the rear axle backwards in 0.1 m.
    #[rasn(identifier = "rearOverhang")]
    pub rear_overhang: Option<StandardLength1B>,
    /// Width of the trailer.
    #[rasn(identifier = "trailerWidth")]
    pub trailer_width: Option<VehicleWidth>,
    /// Angle between vehicle and trailer.
    #[rasn(identifier = "hitchAngle")]
    pub hitch_angle: CartesianAngle,
}

impl TrailerData {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        ref_point_id: Identifier1B,
        hitch_point_offset: StandardLength1B,
        hitch_angle: CartesianAngle,
    ) -> Self {
        Self {
            ref_point_id,
            hitch_point_offset,
            front_overhang: None,
            rear_overhang: None,
            trailer_width: None,
            hitch_angle,
        }
    }
}

/// Side of a vehicle or an object.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum ObjectFace {
    /// `front`.
    #[rasn(identifier = "front")]
    Front,
    /// `sideLeftFront`.
    #[rasn(identifier = "sideLeftFront")]
    SideLeftFront,
    /// `sideLeftBack`.
    #[rasn(identifier = "sideLeftBack")]
    SideLeftBack,
    /// `sideRightFront`.
    #[rasn(identifier = "sideRightFront")]
    SideRightFront,
    /// `sideRightBack`.
    #[rasn(identifier = "sideRightBack")]
    SideRightBack,
    /// `back`.
    #[rasn(identifier = "back")]
    Back,
}

/// Kind of a message exchange: request or response.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum RequestResponseIndication {
    /// `request`.
    #[rasn(identifier = "request")]
    Request,
    /// `response`.
    #[rasn(identifier = "response")]
    Response,
}

/// Temperature in degrees Celsius.
///
/// -60 to 67.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-60..=67"))]
pub struct Temperature(pub i8);

impl Temperature {
    /// `equalOrSmallerThanMinus60Deg`.
    pub const EQUAL_OR_SMALLER_THAN_MINUS60_DEG: Self = Self(-60);
    /// `equalOrGreaterThan67Deg`.
    pub const EQUAL_OR_GREATER_THAN67_DEG: Self = Self(67);
}
