//! Records of the event log.

use viaduct_units::{MetresPerSecond, Position, Tai};

use super::{ClaimOutcome, DrivingState, OperatorId, Reason};

/// A vehicle identification number (ISO 3779): 17 letters and digits without I, O and Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vin([u8; 17]);

/// The text is not a vehicle identification number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a vehicle identification number has 17 digits and capital letters without I, O and Q")]
pub struct NotAVin;

impl Vin {
    /// Returns the number of a text.
    ///
    /// # Errors
    /// The text is not a vehicle identification number.
    pub fn new(text: &str) -> Result<Self, NotAVin> {
        let octets: [u8; 17] = text.as_bytes().try_into().map_err(|_| NotAVin)?;
        let valid = |octet: &u8| octet.is_ascii_digit() || (octet.is_ascii_uppercase() && !b"IOQ".contains(octet));
        if octets.iter().all(valid) { Ok(Self(octets)) } else { Err(NotAVin) }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// An event of driving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrivingEvent {
    /// The state or its reason has changed.
    State {
        /// State before.
        from: DrivingState,
        /// New state.
        to: DrivingState,
        /// Reason for the new state.
        reason: Option<Reason>,
    },
    /// An operator has got control.
    Granted {
        /// Operator.
        operator: OperatorId,
        /// Operator who had control before.
        before: Option<OperatorId>,
        /// Number of the grant.
        grant: u32,
        /// `true` if the operator took control over without consent.
        forced: bool,
    },
    /// An operator requests control, which waits for a consent.
    Requested {
        /// Operator.
        operator: OperatorId,
    },
    /// The request of an operator was withdrawn, or refused by the operator who has control or by the vehicle.
    RequestEnded {
        /// Operator who had requested control.
        operator: OperatorId,
    },
    /// A claim of an operator was refused.
    ClaimRefused {
        /// Operator.
        operator: OperatorId,
        /// Answer.
        outcome: ClaimOutcome,
    },
    /// An operator has stopped the vehicle at once.
    EmergencyStop {
        /// Operator.
        operator: Option<OperatorId>,
    },
}

impl DrivingEvent {
    /// Returns the kind of event as a constant text.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::State { .. } => "state",
            Self::Granted { forced: false, .. } => "granted",
            Self::Granted { forced: true, .. } => "taken_over",
            Self::Requested { .. } => "requested",
            Self::RequestEnded { .. } => "request_ended",
            Self::ClaimRefused { .. } => "claim_refused",
            Self::EmergencyStop { .. } => "emergency_stop",
        }
    }
}

/// A record of the event log, with the known fields of the German regulation on remote driving (StVFernLV, annex 3): the
/// identification of the vehicle, the position with five decimals, the number of the trip, the certificate of the
/// operator, faults of the system and the version of its software.
///
/// The machine has neither atomic time nor position; its owner completes the record.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Time of the event.
    pub time: Tai,
    /// Identification number of the vehicle.
    pub vin: Vin,
    /// Number of the trip.
    pub trip: u64,
    /// Position, or `None` if unknown.
    pub position: Option<Position>,
    /// Speed, negative in reverse.
    pub speed: MetresPerSecond,
    /// Operator who has control.
    pub operator: Option<OperatorId>,
    /// Fingerprint of the certificate of that operator, at most 128 characters.
    pub operator_certificate: Option<String>,
    /// Version of the software, at most 64 characters.
    pub software_version: String,
    /// Faults of the system at the time of the event, at most 16 of at most 128 characters.
    pub faults: Vec<String>,
    /// The event.
    pub event: DrivingEvent,
}

impl EventRecord {
    /// Returns latitude and longitude in degrees with five decimals (about a metre), or `None` if unknown.
    #[must_use]
    pub fn position_five_decimals(&self) -> Option<(f64, f64)> {
        let rounded = |degrees: f64| (degrees * 1e5).round() / 1e5;
        self.position.map(|position| (rounded(position.latitude.value()), rounded(position.longitude.value())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_17_permitted_characters_are_a_vin() {
        assert_eq!(Vin::new("WVWZZZ1JZXW000001").unwrap().as_str(), "WVWZZZ1JZXW000001");
        for wrong in ["", "WVWZZZ1JZXW00001", "WVWZZZ1JZXW00000I", "wvwzzz1jzxw000001", "WVWZZZ1JZXW00000\u{e9}"] {
            assert_eq!(Vin::new(wrong), Err(NotAVin), "{wrong}");
        }
    }
}
