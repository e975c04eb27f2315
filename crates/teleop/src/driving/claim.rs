//! Claims of operators to control.

use std::num::NonZeroU64;

/// Identifier of an operator, for example the beginning of the hash of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(NonZeroU64);

impl OperatorId {
    /// Returns the identifier with the given number, or `None` for 0.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0.get()
    }
}

impl std::fmt::Display for OperatorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A claim of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Number, one more than that of the claim before.
    pub number: u32,
    /// Kind.
    pub kind: ClaimKind,
    /// Operator who makes the claim.
    pub operator: OperatorId,
}

/// The kind of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// Requests control. If another operator has it, the request waits for that operator.
    Request,
    /// Releases control, or withdraws the request.
    Release,
    /// Hands control over to the operator whose request waits.
    Accept,
    /// Refuses the request that waits.
    Refuse,
    /// Takes control over at once. The desk decides which operators may do that.
    TakeOver,
    /// Stops the vehicle at once and ends the grant. Any operator may do that.
    EmergencyStop,
}

impl ClaimKind {
    /// Returns the kind with the given code.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Request,
            2 => Self::Release,
            3 => Self::Accept,
            4 => Self::Refuse,
            5 => Self::TakeOver,
            6 => Self::EmergencyStop,
            _ => return None,
        })
    }

    /// Returns the code on the wire.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Release => 2,
            Self::Accept => 3,
            Self::Refuse => 4,
            Self::TakeOver => 5,
            Self::EmergencyStop => 6,
        }
    }
}

reasons! {
    /// The answer to a claim.
    ClaimOutcome {
        /// There was no claim yet.
        Nothing => "nothing",
        /// The operator has control.
        Granted => "granted",
        /// The claim had its effect.
        Done => "done",
        /// The request waits for the operator who has control.
        WaitingHolder => "waiting_holder",
        /// The request waits for the vehicle.
        WaitingVehicle => "waiting_vehicle",
        /// Refused: the vehicle still brakes after a stop.
        Moving => "moving",
        /// Refused: the link is down, or the clocks are not synchronised.
        Link => "link",
        /// Refused: the operator does not have control.
        NotHolder => "not_holder",
        /// Refused: no request waits.
        NoRequest => "no_request",
        /// Refused: the request of another operator waits.
        Busy => "busy",
    }
}
