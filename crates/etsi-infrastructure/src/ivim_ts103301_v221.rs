//! Infrastructure to vehicle information message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2006, message id 6, protocol version 2. The content is defined by ISO TS 19321: the information of road
//! signs, with its location and its addressees.

use rasn::{AsnType, Decode, Decoder as _, Encode, Encoder as _};

/// Types of the message, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::{ActionIdList, ItsPduHeader, Provider, TimestampIts},
        ivim_2_2_1::ivi::*,
    };
}

use self::types::{
    ActionIdList, ItsPduHeader, IviContainers, IviIdentificationNumber, IviIdentificationNumbers, IviStatus, Provider,
    TimestampIts,
};
use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// An IVIM.
#[derive(AsnType, Clone, Debug, Decode, Encode, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Ivim {
    /// Protocol version, message id, station id.
    pub header: ItsPduHeader,
    /// Pieces of information.
    pub ivi: IviStructure,
}

/// `IviStructure` (ISO TS 19321): one piece of information.
#[derive(AsnType, Clone, Debug, Decode, Encode, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct IviStructure {
    /// Identifier, provider and validity of the information.
    pub mandatory: ManagementContainer,
    /// Location and content of the information, 1 to 8 containers.
    pub optional: Option<IviContainers>,
}

/// `IviManagementContainer` (ISO TS 19321).
///
/// This crate defines the type itself because rasn 0.28.15 decodes an extension addition without the constraint of
/// its type. The size of the list must therefore be at the member, but c-its-parser has it only at the type.
#[derive(AsnType, Clone, Debug, Decode, Encode, PartialEq, Eq)]
#[rasn(automatic_tags, identifier = "IviManagementContainer")]
#[non_exhaustive]
pub struct ManagementContainer {
    /// Country and number of the provider.
    #[rasn(identifier = "serviceProviderId")]
    pub service_provider_id: Provider,
    /// Number of the information, 1 to 32 767, unique for the provider.
    #[rasn(identifier = "iviIdentificationNumber")]
    pub ivi_identification_number: IviIdentificationNumber,
    /// Time at which the information was created or last changed.
    #[rasn(identifier = "timeStamp")]
    pub time_stamp: Option<TimestampIts>,
    /// Start of the validity; if it is absent, the information is valid at once.
    #[rasn(identifier = "validFrom")]
    pub valid_from: Option<TimestampIts>,
    /// End of the validity.
    #[rasn(identifier = "validTo")]
    pub valid_to: Option<TimestampIts>,
    /// Numbers of connected pieces of information.
    #[rasn(identifier = "connectedIviStructures")]
    pub connected_ivi_structures: Option<IviIdentificationNumbers>,
    /// 0 new, 1 update, 2 cancellation, 3 negation.
    #[rasn(identifier = "iviStatus")]
    pub ivi_status: IviStatus,
    /// DENMs on the same subject, 1 to 8.
    #[rasn(extension_addition, size("1..=8", extensible), identifier = "connectedDenms")]
    pub connected_denms: Option<ActionIdList>,
}

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an IVIM.
pub const MESSAGE_ID: u8 = 6;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "ivi";

const MESSAGE: &str = "IVIM (TS 103 301 V2.2.1)";

/// Decodes an IVIM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one IVIM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Ivim, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being an IVIM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Ivim>(MESSAGE, octets)
}

/// Encodes an IVIM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode(ivim: &Ivim) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, ivim)
}

/// Appends the IVIM's JSON form to `out`.
pub fn write_json(ivim: &Ivim, out: &mut Vec<u8>) {
    json::write(ivim, out);
}

/// Reads an IVIM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Ivim, JsonError> {
    json::read(text)
}

/// Appends the IVIM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, ivim: &Ivim, out: &mut Vec<u8>) {
    json::write_in(style, ivim, out);
}

/// Reads an IVIM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Ivim, JsonError> {
    json::read_in(form, text)
}
