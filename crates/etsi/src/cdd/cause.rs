//! Cause codes and sub-cause codes.

use rasn::{
    de::Error as _,
    prelude::*,
    types::{Choice, Constraints, DecodeChoice, Identifier, Tag, TagTree},
};

/// Sub-cause code of road works.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct RoadworksSubCauseCode(pub u8);

impl RoadworksSubCauseCode {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `roadOrCarriagewayClosure`.
    pub const ROAD_OR_CARRIAGEWAY_CLOSURE: Self = Self(1);
    /// `roadMarkingWork-deprecated`.
    pub const ROAD_MARKING_WORK_DEPRECATED: Self = Self(2);
    /// `movingLaneClosure`.
    pub const MOVING_LANE_CLOSURE: Self = Self(3);
    /// `stationaryLaneClosure`.
    pub const STATIONARY_LANE_CLOSURE: Self = Self(4);
    /// `streetCleaning-deprecated`.
    pub const STREET_CLEANING_DEPRECATED: Self = Self(5);
    /// `winterService-deprecated`.
    pub const WINTER_SERVICE_DEPRECATED: Self = Self(6);
    /// `setupPhase`.
    pub const SETUP_PHASE: Self = Self(7);
    /// `remodellingPhase`.
    pub const REMODELLING_PHASE: Self = Self(8);
    /// `dismantlingPhase`.
    pub const DISMANTLING_PHASE: Self = Self(9);
    /// `carriagewayCrossover`.
    pub const CARRIAGEWAY_CROSSOVER: Self = Self(10);
}

/// A sub-cause code.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate, value("0..=255"))]
struct SubCauseCodeType(u8);

/// Cause of an event.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CauseCodeV2 {
    /// Cause and sub-cause.
    #[rasn(identifier = "ccAndScc")]
    pub cc_and_scc: CauseCodeChoice,
}

impl CauseCodeV2 {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(cc_and_scc: CauseCodeChoice) -> Self {
        Self { cc_and_scc }
    }
}

impl CauseCodeV2 {
    /// `reserved0`: no cause.
    pub const RESERVED: Self = Self::new(CauseCodeChoice { cause: 0, sub_cause: 0 });

    /// Returns the code of a cause, 0 to 128, and a sub-cause, or `None` if there is no such cause.
    #[must_use]
    pub const fn from_codes(cause: u8, sub_cause: u8) -> Option<Self> {
        match CauseCodeChoice::new(cause, sub_cause) {
            Some(codes) => Some(Self::new(codes)),
            None => None,
        }
    }
}

/// Cause and sub-cause; ASN.1 name `CauseCodeChoice`.
///
/// The standard has a CHOICE of 129 alternatives: its index is the cause and its value is the sub-cause. This type
/// stores both as numbers. [`super::cause_code`] and [`super::sub_cause_code`] have the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CauseCodeChoice {
    cause: u8,
    sub_cause: u8,
}

impl CauseCodeChoice {
    /// Creates the code from a cause, 0 to 128, and a sub-cause, of which 0 is "unavailable". Returns `None` if there
    /// is no such cause.
    #[must_use]
    pub const fn new(cause: u8, sub_cause: u8) -> Option<Self> {
        if cause <= CAUSE_CODE_MAX { Some(Self { cause, sub_cause }) } else { None }
    }

    /// Returns the cause code, 0 to 128.
    #[must_use]
    pub const fn cause(self) -> u8 {
        self.cause
    }

    /// Returns the sub-cause code.
    #[must_use]
    pub const fn sub_cause(self) -> u8 {
        self.sub_cause
    }

    fn tag(self) -> Tag {
        Tag::new_context(self.cause.into())
    }
}

const CAUSE_CODE_MAX: u8 = 128;
const CAUSES: usize = 129;
/// The tag of a cause is its number (automatic tags).
const TAGS: [TagTree; CAUSES] = {
    let mut tags = [TagTree::Leaf(Tag::new_context(0)); CAUSES];
    let mut number: u32 = 0;
    let mut rest: &mut [TagTree] = &mut tags;
    while let [first, others @ ..] = rest {
        *first = TagTree::Leaf(Tag::new_context(number));
        number += 1;
        rest = others;
    }
    tags
};

impl AsnType for CauseCodeChoice {
    const TAG: Tag = Tag::EOC;
    const TAG_TREE: TagTree = TagTree::Choice(&TAGS);
    const IS_CHOICE: bool = true;
}

impl Choice for CauseCodeChoice {
    const VARIANTS: &'static [TagTree] = &TAGS;
    const VARIANCE_CONSTRAINT: Constraints = rasn::constraints!(rasn::value_constraint!(0, 128));
    const IDENTIFIERS: &'static [&'static str] = &NAMES;
}

impl Encode for CauseCodeChoice {
    fn encode_with_tag_and_constraints<'b, E: Encoder<'b>>(
        &self,
        encoder: &mut E,
        tag: Tag,
        _: Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        encoder.encode_explicit_prefix(tag, self, identifier).map(drop)
    }

    fn encode<'b, E: Encoder<'b>>(&self, encoder: &mut E) -> Result<(), E::Error> {
        let tag = self.tag();
        let sub_cause = SubCauseCodeType(self.sub_cause);
        let alternative = |encoder: &mut E| sub_cause.encode_with_tag(encoder, tag).map(|()| tag);
        encoder.encode_choice::<Self>(Self::CONSTRAINTS, tag, alternative, Self::IDENTIFIER).map(drop)
    }
}

impl Decode for CauseCodeChoice {
    fn decode_with_tag_and_constraints<D: Decoder>(
        decoder: &mut D,
        tag: Tag,
        _: Constraints,
    ) -> Result<Self, D::Error> {
        decoder.decode_explicit_prefix(tag)
    }

    fn decode<D: Decoder>(decoder: &mut D) -> Result<Self, D::Error> {
        decoder.decode_choice(Self::CONSTRAINTS)
    }
}

impl DecodeChoice for CauseCodeChoice {
    fn from_tag<D: Decoder>(decoder: &mut D, tag: Tag) -> Result<Self, D::Error> {
        let sub_cause = SubCauseCodeType::decode_with_tag(decoder, tag)?.0;
        let cause = u8::try_from(tag.value).ok().filter(|cause| *cause <= CAUSE_CODE_MAX);
        cause
            .map(|cause| Self { cause, sub_cause })
            .ok_or_else(|| D::Error::no_valid_choice("CauseCodeChoice", decoder.codec()))
    }
}

/// ASN.1 names of the alternatives, indexed by cause code.
const NAMES: [&str; CAUSES] = [
    "reserved0",
    "trafficCondition1",
    "accident2",
    "roadworks3",
    "detectedRoadworks4",
    "impassability5",
    "adhesion6",
    "aquaplaning7",
    "reserved8",
    "hazardousLocation-SurfaceCondition9",
    "hazardousLocation-ObstacleOnTheRoad10",
    "hazardousLocation-AnimalOnTheRoad11",
    "humanPresenceOnTheRoad12",
    "reserved13",
    "wrongWayDriving14",
    "rescueRecoveryAndMaintenanceWorkInProgress15",
    "reserved16",
    "adverseWeatherCondition-Wind17",
    "adverseWeatherCondition-Visibility18",
    "adverseWeatherCondition-Precipitation19",
    "violence20",
    "reserved21",
    "reserved22",
    "reserved23",
    "reserved24",
    "reserved25",
    "slowVehicle26",
    "dangerousEndOfQueue27",
    "publicTransportVehicleApproaching28",
    "reserved29",
    "reserved30",
    "reserved31",
    "reserved32",
    "reserved33",
    "reserved34",
    "reserved35",
    "reserved36",
    "reserved37",
    "reserved38",
    "reserved39",
    "reserved40",
    "reserved41",
    "dontPanic42",
    "reserved43",
    "reserved44",
    "reserved45",
    "reserved46",
    "reserved47",
    "reserved48",
    "reserved49",
    "reserved50",
    "reserved51",
    "reserved52",
    "reserved53",
    "reserved54",
    "reserved55",
    "reserved56",
    "reserved57",
    "reserved58",
    "reserved59",
    "reserved60",
    "reserved61",
    "reserved62",
    "reserved63",
    "reserved64",
    "reserved65",
    "reserved66",
    "reserved67",
    "reserved68",
    "reserved69",
    "reserved70",
    "reserved71",
    "reserved72",
    "reserved73",
    "reserved74",
    "reserved75",
    "reserved76",
    "reserved77",
    "reserved78",
    "reserved79",
    "reserved80",
    "reserved81",
    "reserved82",
    "reserved83",
    "reserved84",
    "reserved85",
    "reserved86",
    "reserved87",
    "reserved88",
    "reserved89",
    "reserved90",
    "vehicleBreakdown91",
    "postCrash92",
    "humanProblem93",
    "stationaryVehicle94",
    "emergencyVehicleApproaching95",
    "hazardousLocation-DangerousCurve96",
    "collisionRisk97",
    "signalViolation98",
    "dangerousSituation99",
    "railwayLevelCrossing100",
    "reserved101",
    "reserved102",
    "reserved103",
    "reserved104",
    "reserved105",
    "reserved106",
    "reserved107",
    "reserved108",
    "reserved109",
    "reserved110",
    "reserved111",
    "reserved112",
    "reserved113",
    "reserved114",
    "reserved115",
    "reserved116",
    "reserved117",
    "reserved118",
    "reserved119",
    "reserved120",
    "reserved121",
    "reserved122",
    "reserved123",
    "reserved124",
    "reserved125",
    "reserved126",
    "reserved127",
    "reserved128",
];
