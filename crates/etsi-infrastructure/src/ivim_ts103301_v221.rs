//! Infrastructure to vehicle information message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2006, message id 6, protocol version 2. Its content is ISO TS 19321: what road signs say, where and to whom.

use rasn::{AsnType, Decode, Decoder as _, Encode, Encoder as _};

/// The message's types, under their ASN.1 names.
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
    /// What is informed about.
    pub ivi: IviStructure,
}

/// `IviStructure` (ISO TS 19321): one piece of information.
#[derive(AsnType, Clone, Debug, Decode, Encode, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct IviStructure {
    /// Which information it is, of whom, and how long it holds.
    pub mandatory: ManagementContainer,
    /// Where it holds and what it says, 1 to 8 containers.
    pub optional: Option<IviContainers>,
}

/// `IviManagementContainer` (ISO TS 19321).
///
/// Our own, since the size of an extension addition's list has to stand at the member: rasn 0.28.15 decodes the addition
/// without the constraint of its type otherwise, and c-its-parser's type has it only there.
#[derive(AsnType, Clone, Debug, Decode, Encode, PartialEq, Eq)]
#[rasn(automatic_tags, identifier = "IviManagementContainer")]
#[non_exhaustive]
pub struct ManagementContainer {
    /// Country and number of who informs.
    #[rasn(identifier = "serviceProviderId")]
    pub service_provider_id: Provider,
    /// Number of the information, 1 to 32 767; together with the provider it is unique.
    #[rasn(identifier = "iviIdentificationNumber")]
    pub ivi_identification_number: IviIdentificationNumber,
    /// When the information was made or last changed.
    #[rasn(identifier = "timeStamp")]
    pub time_stamp: Option<TimestampIts>,
    /// From when it holds; at once where absent.
    #[rasn(identifier = "validFrom")]
    pub valid_from: Option<TimestampIts>,
    /// Until when it holds.
    #[rasn(identifier = "validTo")]
    pub valid_to: Option<TimestampIts>,
    /// Informations that belong to this one.
    #[rasn(identifier = "connectedIviStructures")]
    pub connected_ivi_structures: Option<IviIdentificationNumbers>,
    /// 0 new, 1 update, 2 cancellation, 3 negation.
    #[rasn(identifier = "iviStatus")]
    pub ivi_status: IviStatus,
    /// DENMs about the same, 1 to 8.
    #[rasn(extension_addition, size("1..=8", extensible), identifier = "connectedDenms")]
    pub connected_denms: Option<ActionIdList>,
}

/// The standard's name and version.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an IVIM.
pub const MESSAGE_ID: u8 = 6;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// The member of the message that is its body.
pub const BODY: &str = "ivi";

const MESSAGE: &str = "IVIM (TS 103 301 V2.2.1)";

/// Decodes an IVIM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Octets that are not one IVIM, or whole octets behind it.
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
/// A value outside its range.
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
/// The first thing in which the text is not an IVIM, and where it is.
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
/// The first thing in which the text is not an IVIM, and where it is.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Ivim, JsonError> {
    json::read_in(form, text)
}
