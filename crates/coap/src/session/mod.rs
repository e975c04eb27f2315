//! The request layer of one peer (RFC 7252, 5), which all transports share.

mod client;
mod gathered;
mod server;

use std::net::SocketAddr;

use viaduct_units::Mono;

use crate::codec::OptionNumber;
use crate::message::Inbound;
use crate::shared::{Core, Origin, Purpose};
use crate::{EndReason, Failure, ObservationId, Options, Request, RequestError, RequestId, Response};
pub(crate) use client::Client;
pub(crate) use server::Server;

/// Requests to and from one peer.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    server: Server,
}

impl Session {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self { client: Client::new(peer), server: Server::new(peer) }
    }

    /// Returns `true` if the owner waits for a response of the peer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.client.is_busy()
    }

    /// Returns `true` if the peer observes a resource.
    pub(crate) fn is_observed(&self) -> bool {
        self.server.has_observations()
    }

    pub(crate) fn request(
        &mut self,
        core: &mut Core,
        now: Mono,
        request: Request,
        observe: bool,
    ) -> Result<RequestId, RequestError> {
        self.client.request(core, now, request, observe)
    }

    pub(crate) fn ping(&mut self) -> RequestId {
        self.client.ping()
    }

    pub(crate) fn cancel(&mut self, core: &mut Core, now: Mono, number: u32) {
        self.client.cancel(core, now, number);
    }

    /// Processes a response. Returns the number of its request, or `None` if the token is unknown.
    pub(crate) fn handle_response(&mut self, core: &mut Core, now: Mono, message: Inbound) -> Option<u32> {
        self.client.handle_response(core, now, message)
    }

    pub(crate) fn handle_request(&mut self, core: &mut Core, now: Mono, origin: Origin, message: Inbound) {
        self.server.handle_request(core, now, origin, message);
    }

    pub(crate) fn respond(&mut self, core: &mut Core, now: Mono, number: u32, response: Response, observed: bool) {
        self.server.respond(core, now, number, response, observed);
    }

    pub(crate) fn has_observation(&self, id: ObservationId) -> bool {
        self.server.is_observed(id.number)
    }

    pub(crate) fn notify(&mut self, core: &mut Core, now: Mono, id: ObservationId, response: Response) {
        self.server.notify(core, now, id.number, response);
    }

    pub(crate) fn end_observation(&mut self, core: &mut Core, now: Mono, id: ObservationId, response: Response) {
        self.server.end_observation(core, now, id.number, response);
    }

    /// Takes the newer state that replaces a notification in flight, or returns `None`.
    pub(crate) fn newer_notification(
        &mut self,
        core: &mut Core,
        now: Mono,
        number: u32,
    ) -> Option<crate::shared::Outgoing> {
        self.server.newer_notification(core, now, number)
    }

    /// Processes the acknowledgement of a confirmable message, or the sending of a non-confirmable one.
    pub(crate) fn acknowledged(&mut self, core: &mut Core, now: Mono, purpose: Purpose) {
        match purpose {
            Purpose::Request(number) => self.client.acknowledged(core, now, number),
            Purpose::Notification(number) => self.server.acknowledged(core, now, number),
            Purpose::Ping(_) | Purpose::Response | Purpose::Verification => {}
        }
    }

    /// Processes the failure of a message: no acknowledgement, or a Reset.
    pub(crate) fn failed(&mut self, core: &mut Core, now: Mono, purpose: Purpose, failure: Failure) {
        match purpose {
            Purpose::Request(number) => self.client.failed(core, now, number, failure),
            Purpose::Ping(number) => self.client.ping_ended(core, number, failure),
            Purpose::Notification(number) => {
                let reason = if failure == Failure::Reset { EndReason::Reset } else { EndReason::TimedOut };
                self.server.remove_observation(core, number, reason);
            }
            Purpose::Response | Purpose::Verification => {}
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Mono> {
        [self.client.next_timeout(), self.server.next_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, core: &mut Core, now: Mono) {
        self.client.handle_timeout(core, now);
        self.server.handle_timeout(core, now);
    }

    /// Ends all requests and observations.
    pub(crate) fn close(&mut self, core: &mut Core, failure: Failure, reason: EndReason) {
        self.client.close(core, failure);
        self.server.close(core, reason);
    }
}

/// Returns the first critical option that is not recognised: unknown, of a wrong length (RFC 7252, 5.4.3), or repeated
/// although it must not be (5.4.5). `None` if there is none.
fn unrecognised(options: &Options) -> Option<OptionNumber> {
    let mut before = None;
    for (number, value) in options.iter() {
        let recognised = number.limit().is_some_and(|limit| {
            let length = usize::from(limit.shortest)..=usize::from(limit.longest);
            length.contains(&value.len()) && (limit.repeatable || before != Some(number))
        });
        if number.is_critical() && !recognised {
            return Some(number);
        }
        before = Some(number);
    }
    None
}
