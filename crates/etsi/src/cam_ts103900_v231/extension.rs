//! Extension containers of a CAM: an identifier, and an open type that depends on the identifier.

use rasn::{
    AsnType,
    de::{Decode, Decoder},
    enc::{Encode, Encoder},
    types::{
        Any, Constraints, Constructed, Identifier, Tag,
        fields::{Field, Fields},
    },
};

use super::{
    MESSAGE,
    types::{
        EHorizonLocationSharingContainer, ExtensionContainerId, GeneralizedLanePositionsContainer,
        PathPredictionContainer, TwoWheelerContainer, VehicleMovementControlContainer, VeryLowFrequencyContainer,
    },
};
use crate::open_type;

// `ExtensionContainerId` (TS 103 900, annex A).
const TWO_WHEELER: i64 = 1;
const E_HORIZON: i64 = 2;
const VERY_LOW_FREQUENCY: i64 = 3;
const PATH_PREDICTION: i64 = 4;
const LANE_POSITIONS: i64 = 5;
const MOVEMENT_CONTROL: i64 = 6;

const ID: Tag = Tag::new_context(0);
const DATA: Tag = Tag::new_context(1);

/// An extension container; ASN.1 name `WrappedExtensionContainer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionContainer {
    /// Container 1: a two-wheeler.
    TwoWheeler(TwoWheelerContainer),
    /// Container 2: the road ahead and behind according to the vehicle.
    EHorizonLocationSharing(Box<EHorizonLocationSharingContainer>),
    /// Container 3: values that change very rarely.
    VeryLowFrequency(VeryLowFrequencyContainer),
    /// Container 4: predicted paths of the vehicle.
    PathPrediction(PathPredictionContainer),
    /// Container 5: lane positions of the vehicle.
    GeneralizedLanePositions(GeneralizedLanePositionsContainer),
    /// Container 6: controls of the vehicle's movement.
    VehicleMovementControl(Box<VehicleMovementControlContainer>),
    /// A container of a later edition.
    Unknown {
        /// `ExtensionContainerId`, 7 to 16 and beyond.
        id: i64,
        /// Octets of the open type.
        octets: Vec<u8>,
    },
}

impl ExtensionContainer {
    /// Returns the `ExtensionContainerId`.
    #[must_use]
    pub const fn id(&self) -> i64 {
        match self {
            Self::TwoWheeler(_) => TWO_WHEELER,
            Self::EHorizonLocationSharing(_) => E_HORIZON,
            Self::VeryLowFrequency(_) => VERY_LOW_FREQUENCY,
            Self::PathPrediction(_) => PATH_PREDICTION,
            Self::GeneralizedLanePositions(_) => LANE_POSITIONS,
            Self::VehicleMovementControl(_) => MOVEMENT_CONTROL,
            Self::Unknown { id, .. } => *id,
        }
    }

    fn encode_data<'b, E: Encoder<'b>>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::TwoWheeler(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::EHorizonLocationSharing(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::VeryLowFrequency(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::PathPrediction(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::GeneralizedLanePositions(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::VehicleMovementControl(held) => open_type::encode(MESSAGE, held, encoder, DATA),
            Self::Unknown { octets, .. } => Any::new(octets.clone()).encode_with_tag(encoder, DATA),
        }
    }

    fn decode_data<D: Decoder>(id: i64, decoder: &mut D) -> Result<Self, D::Error> {
        Ok(match id {
            TWO_WHEELER => Self::TwoWheeler(open_type::decode(MESSAGE, decoder, DATA)?),
            E_HORIZON => Self::EHorizonLocationSharing(open_type::decode(MESSAGE, decoder, DATA)?),
            VERY_LOW_FREQUENCY => Self::VeryLowFrequency(open_type::decode(MESSAGE, decoder, DATA)?),
            PATH_PREDICTION => Self::PathPrediction(open_type::decode(MESSAGE, decoder, DATA)?),
            LANE_POSITIONS => Self::GeneralizedLanePositions(open_type::decode(MESSAGE, decoder, DATA)?),
            MOVEMENT_CONTROL => Self::VehicleMovementControl(open_type::decode(MESSAGE, decoder, DATA)?),
            _ => Self::Unknown { id, octets: Any::decode_with_tag(decoder, DATA)?.into_bytes() },
        })
    }
}

impl AsnType for ExtensionContainer {
    const TAG: Tag = Tag::SEQUENCE;
}

impl Constructed<2, 0> for ExtensionContainer {
    const FIELDS: Fields<2> = Fields::from_static([
        Field::new_required_type::<ExtensionContainerId>(0, "containerId"),
        Field::new_required_type::<Any>(1, "containerData"),
    ]);
}

impl Encode for ExtensionContainer {
    fn encode_with_tag_and_constraints<'b, E: Encoder<'b>>(
        &self,
        encoder: &mut E,
        tag: Tag,
        _: Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        let members = |encoder: &mut E::AnyEncoder<'_, 2, 0>| {
            ExtensionContainerId(self.id()).encode_with_tag(encoder, ID)?;
            self.encode_data(encoder)
        };
        encoder.encode_sequence::<2, 0, Self, _>(tag, members, identifier).map(drop)
    }
}

impl Decode for ExtensionContainer {
    fn decode_with_tag_and_constraints<D: Decoder>(
        decoder: &mut D,
        tag: Tag,
        _: Constraints,
    ) -> Result<Self, D::Error> {
        decoder.decode_sequence::<2, 0, Self, _, _>(tag, None::<fn() -> Self>, |decoder| {
            let id = ExtensionContainerId::decode_with_tag(decoder, ID)?.0;
            Self::decode_data(id, decoder)
        })
    }
}
