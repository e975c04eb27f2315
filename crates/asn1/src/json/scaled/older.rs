//! Types whose members vanetza-nap calls as an older edition did. The octets are the same; only names differ.

use super::{Meaning, quantities as q};

/// A type under older names of its members.
#[derive(Debug, PartialEq)]
pub(in crate::json) struct Older {
    /// Names that differ: as they are now, and as they were.
    pub(super) names: &'static [(&'static str, &'static str)],
    /// What the members mean there, by their names as they are now.
    pub(super) members: &'static [(&'static str, Meaning)],
}

/// `ItsPduHeader` of release 1, which its messages of infrastructure and its VAM still have.
pub(super) const HEADER: Older =
    Older { names: &[("messageId", "messageID"), ("stationId", "stationID")], members: &[] };

/// `Heading` in the place of `Wgs84Angle` (VAM before TS 103 300-3 V2.2.1).
pub(super) const HEADING: Older = Older {
    names: &[("value", "headingValue"), ("confidence", "headingConfidence")],
    members: &[
        ("value", Meaning::Quantity(&q::HEADING_VALUE)),
        ("confidence", Meaning::Quantity(&q::HEADING_CONFIDENCE)),
    ],
};

/// `PosConfidenceEllipse` in the place of `PositionConfidenceEllipse`.
const ELLIPSE: Older = Older {
    names: &[
        ("semiMajorAxisLength", "semiMajorConfidence"),
        ("semiMinorAxisLength", "semiMinorConfidence"),
        ("semiMajorAxisOrientation", "semiMajorOrientation"),
    ],
    members: &[
        ("semiMajorAxisLength", Meaning::Quantity(&q::SEMI_AXIS_LENGTH)),
        ("semiMinorAxisLength", Meaning::Quantity(&q::SEMI_AXIS_LENGTH)),
        ("semiMajorAxisOrientation", Meaning::Quantity(&q::HEADING_VALUE)),
    ],
};

/// `ReferencePosition` in the place of `ReferencePositionWithConfidence`.
const POSITION: Older = Older {
    names: &[],
    members: &[
        ("latitude", Meaning::Quantity(&q::LATITUDE)),
        ("longitude", Meaning::Quantity(&q::LONGITUDE)),
        ("positionConfidenceEllipse", Meaning::Older(&ELLIPSE)),
    ],
};

/// `BasicContainer` with such a position.
pub(super) const BASIC_CONTAINER: Older =
    Older { names: &[], members: &[("referencePosition", Meaning::Older(&POSITION))] };
