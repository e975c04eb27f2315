//! Common data dictionary, ETSI TS 102 894-2 V2.4.1: the types that CAM, DENM, CPM and VAM of release 2 share.
//!
//! There is one file for each subject. Names are those of the standard in Rust's spelling; if a name differs more,
//! its documentation has the ASN.1 name. A number is scaled as in the standard, and its documentation has unit and
//! range. Values with a special meaning ("unavailable", "out of range") are constants of the type, documented by
//! their ASN.1 names. The variants of enumerations are documented in the same way.
//!
//! A type that later editions may extend is `#[non_exhaustive]` and has a constructor for its mandatory members.
//!
//! The dictionary's types that none of these messages uses are not included. SI units are in the crate `its`.

mod bits;
mod cause;
pub mod cause_code;
mod event;
mod extensible;
mod header;
mod motion;
mod path;
mod perception;
mod position;
mod road;
mod shape;
pub mod sub_cause_code;
mod text;
mod time;
mod vehicle;
mod vru;
mod zone;

pub use cause::*;

pub use event::*;
pub(crate) use extensible::extensible_integer;
pub use header::*;
pub use motion::*;
pub use path::*;
pub use perception::*;
pub use position::*;
pub use road::*;
pub use shape::*;
pub use text::*;
pub use time::*;
pub use vehicle::*;
pub use vru::*;
pub use zone::*;
