//! ASN.1 types of the ETSI ITS messages, with their UPER and JSON codecs.
//!
//! There is one module for each message and edition: [`cam_ts103900_v231`], [`denm_ts103831_v231`],
//! [`cpm_ts103324_v211`], [`vam_ts103300_3_v231`], and the messages of TS 103 301. Each module has the edition's
//! types and the functions `decode`, `encode`, `write_json` and `from_json`. These functions are not generic on
//! purpose: the codecs are generic, and only this crate and `viaduct-etsi-infrastructure` instantiate them. The types
//! that the messages share are in [`cdd`]. The JSON form is described in [`viaduct_asn1`];
//! [`SCALED`] is the style with units.
//!
//! Headers below the message, signatures and SI units are outside this crate (see the crate `its`).

pub mod cam_ts103900_v231;
pub mod cdd;
pub mod cpm_ts103324_v211;
pub mod denm_ts103831_v231;
mod header;
mod scaled;
pub mod vam_ts103300_3_v231;

pub use header::{PduHeader, pdu_header};
pub use scaled::SCALED;
pub use viaduct_asn1::{HeaderDefaults, JsonError, JsonForm, JsonProblem, JsonStyle, UperError, limits};
pub use viaduct_etsi_infrastructure::{
    ivim_ts103301_v221, mapem_ts103301_v221, spatem_ts103301_v221, srem_ts103301_v221, ssem_ts103301_v221,
};

use viaduct_asn1::{json, open_type, uper};
