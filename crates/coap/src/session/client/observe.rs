//! Observation of a resource of the peer (RFC 7641, 3).

use std::time::Duration;

use viaduct_units::Mono;

use crate::Response;
use crate::codec::OptionNumber;
use crate::message::Inbound;
use crate::shared::Core;

/// Half of the range of the 24-bit sequence numbers.
const HALF: u32 = 1 << 23;
/// Age of a notification from which any other one is newer.
const FRESH_FOR: Duration = Duration::from_secs(128);
/// Time after the end of Max-Age at which the client registers anew: at least, and random in addition (RFC 7641, 3.3.1).
const REREGISTER_AFTER: Duration = Duration::from_secs(5);
const REREGISTER_SPREAD: Duration = Duration::from_secs(10);

/// The newest notification of an observation.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Sequence number and time of arrival.
    newest: Option<(u32, Mono)>,
}

/// Order of a response relative to the newest notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Newer,
    Older,
    /// The response is no notification: the server ended the observation or did not begin it.
    NotObserved,
}

impl Watch {
    pub(super) fn is_registered(&self) -> bool {
        self.newest.is_some()
    }

    /// Compares a response with the newest notification and stores it if it is newer (RFC 7641, 3.4).
    pub(super) fn take(&mut self, core: &Core, now: Mono, message: &Inbound) -> Order {
        let Some(sequence) = message.options.uint(OptionNumber::OBSERVE).filter(|_| message.code.is_success()) else {
            return Order::NotObserved;
        };
        // A reliable transport keeps the order, and the numbers have no meaning (RFC 8323, 7.1).
        if let Some((newest, at)) = self.newest.filter(|_| !core.reliable) {
            let newer =
                (newest < sequence && sequence - newest < HALF) || (newest > sequence && newest - sequence > HALF);
            if !newer && now.since(at) <= FRESH_FOR {
                return Order::Older;
            }
        }
        self.newest = Some((sequence, now));
        Order::Newer
    }
}

/// Returns the time at which a client that has received no newer state registers anew, or `None` if it need not.
pub(super) fn expiry(core: &mut Core, now: Mono, response: &Response) -> Option<Mono> {
    if core.reliable {
        return None;
    }
    let max_age = Duration::from_secs(response.max_age().into());
    Some(now.plus(max_age + REREGISTER_AFTER + core.random.duration_up_to(REREGISTER_SPREAD)))
}
