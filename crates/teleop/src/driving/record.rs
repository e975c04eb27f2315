//! Records of the event log.

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
        /// Operator who has control, or had it until this event.
        operator: Option<OperatorId>,
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
        /// Operator who has stopped the vehicle.
        operator: Option<OperatorId>,
        /// Operator who had control until this event.
        holder: Option<OperatorId>,
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
