//! Types whose fields have the names of an older edition in vanetza-nap. The octets are the same; only the names differ.

use viaduct_asn1::json::scaled::{FieldKind, LegacyNames};

use super::quantities as q;

/// `ItsPduHeader` of release 1, which its messages of infrastructure and its VAM still have.
pub(super) const HEADER: LegacyNames =
    LegacyNames { names: &[("messageId", "messageID"), ("stationId", "stationID")], members: &[] };

/// `Heading` in the place of `Wgs84Angle` (VAM before TS 103 300-3 V2.2.1).
pub(super) const HEADING: LegacyNames = LegacyNames {
    names: &[("value", "headingValue"), ("confidence", "headingConfidence")],
    members: &[
        ("value", FieldKind::Quantity(&q::HEADING_VALUE)),
        ("confidence", FieldKind::Quantity(&q::HEADING_CONFIDENCE)),
    ],
};

/// `PosConfidenceEllipse` in the place of `PositionConfidenceEllipse`.
const ELLIPSE: LegacyNames = LegacyNames {
    names: &[
        ("semiMajorAxisLength", "semiMajorConfidence"),
        ("semiMinorAxisLength", "semiMinorConfidence"),
        ("semiMajorAxisOrientation", "semiMajorOrientation"),
    ],
    members: &[
        ("semiMajorAxisLength", FieldKind::Quantity(&q::SEMI_AXIS_LENGTH)),
        ("semiMinorAxisLength", FieldKind::Quantity(&q::SEMI_AXIS_LENGTH)),
        ("semiMajorAxisOrientation", FieldKind::Quantity(&q::HEADING_VALUE)),
    ],
};

/// `ReferencePosition` in the place of `ReferencePositionWithConfidence`.
const POSITION: LegacyNames = LegacyNames {
    names: &[],
    members: &[
        ("latitude", FieldKind::Quantity(&q::LATITUDE)),
        ("longitude", FieldKind::Quantity(&q::LONGITUDE)),
        ("positionConfidenceEllipse", FieldKind::LegacyNames(&ELLIPSE)),
    ],
};

/// `BasicContainer` with such a position.
pub(super) const BASIC_CONTAINER: LegacyNames =
    LegacyNames { names: &[], members: &[("referencePosition", FieldKind::LegacyNames(&POSITION))] };
