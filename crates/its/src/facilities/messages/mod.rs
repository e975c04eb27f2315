//! Messages of the facilities layer and their content in SI units.
//!
//! Scaled integers and "unavailable" codes end here: [`Summary`] contains the known values as quantities, and the `build`
//! function of each message makes a message from them.

pub mod cam;
pub mod cpm;
pub mod denm;
mod dictionary;
mod generation_time;
pub(super) mod infrastructure;
mod minute_of_year;
mod path;
pub(super) mod scale;
mod shape;
pub mod vam;

pub use dictionary::ConfidenceEllipse;
pub use path::{PathPoint, PredictedPoint};
pub use shape::{Offset, Outline, Shape};

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, StationType, Tai};

/// The values of a message that most applications need. A value that the message does not contain is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Identifier of the station that generated the message.
    pub station_id: StationId,
    /// Type of that station (`StationType`, TS 102 894-2: 5 is a passenger car, 15 a roadside unit). `None` for a CPM.
    pub station_type: Option<StationType>,
    /// Time at which the message was generated.
    pub generation: Option<Tai>,
    /// Reference position; for a DENM the position of the event.
    pub position: Option<Position>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Speed over ground.
    pub speed: Option<MetresPerSecond>,
    /// Heading in a CAM or VAM, heading of the event in a DENM, orientation of the vehicle in a CPM; 0 to less than 360.
    pub heading: Option<Degrees>,
}
