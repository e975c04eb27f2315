//! Claims of pages that wait for an answer of the vehicle.

use viaduct_teleop::driving::{Claim, ClaimKind, ClaimOutcome, OperatorId};
use viaduct_teleop::limits::CLAIMS_MAX;

use super::pages::PageId;

/// A claim and the page that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageClaim {
    number: u32,
    pub(super) page: PageId,
    pub(super) kind: ClaimKind,
    pub(super) operator: OperatorId,
    /// Type of the page's message.
    pub(super) reply_to: &'static str,
}

/// The claims that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Claims {
    waiting: Vec<PageClaim>,
}

impl Claims {
    /// Adds a claim that the machine has accepted.
    pub(super) fn add(
        &mut self,
        number: u32,
        page: PageId,
        kind: ClaimKind,
        operator: OperatorId,
        reply_to: &'static str,
    ) {
        // The machine has a limit, too, and reports each claim that it drops.
        if self.waiting.len() > 2 * CLAIMS_MAX {
            self.waiting.remove(0);
        }
        self.waiting.push(PageClaim { number, page, kind, operator, reply_to });
    }

    /// Removes the claim that is answered or dropped.
    pub(super) fn take(&mut self, claim: &Claim) -> Option<PageClaim> {
        let index = self.waiting.iter().position(|waiting| waiting.number == claim.number)?;
        Some(self.waiting.remove(index))
    }

    /// Returns `true` if an emergency stop waits for its answer.
    pub(super) fn stops(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.kind == ClaimKind::EmergencyStop)
    }
}

/// Returns the text of a refusal for the page, or `None` if the outcome is not a refusal.
pub(super) const fn refusal(outcome: ClaimOutcome) -> Option<&'static str> {
    Some(match outcome {
        ClaimOutcome::Granted | ClaimOutcome::Done | ClaimOutcome::WaitingHolder | ClaimOutcome::WaitingVehicle => {
            return None;
        }
        ClaimOutcome::Nothing => "The vehicle has no answer.",
        ClaimOutcome::Moving => {
            "The vehicle moves, or its speed is unknown. Wait until it stands. If it already stands: at the vehicle, set `vehicle` to \
             the topic of the vehicle's state, and list this desk as `driver` in the file of roles."
        }
        ClaimOutcome::Link => "The link to the vehicle is down, or the clocks are not synchronised yet. Try again.",
        ClaimOutcome::NotHolder => "You do not have control.",
        ClaimOutcome::NoRequest => "No request waits for an answer.",
        ClaimOutcome::Busy => "The request of another driver waits for an answer.",
    })
}
