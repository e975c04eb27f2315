//! Observers of the own resources (RFC 7641, 4).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

use viaduct_units::Mono;

use super::blocks::Key;
use super::{Exchange, Server};
use crate::budget::Share;
use crate::codec::{Block, Code, OptionNumber, Token};
use crate::shared::{Core, Outgoing, Purpose, Route};
use crate::{DropReason, EndReason, Event, ObservationId, Request, Response};

/// Observations of one peer.
#[derive(Debug)]
pub(super) struct Observers {
    peer: SocketAddr,
    observers: BTreeMap<u32, Observer>,
    tokens: BTreeMap<Token, u32>,
}

/// An observation.
#[derive(Debug)]
struct Observer {
    token: Token,
    key: Key,
    /// Size of the blocks of large notifications that the client asked for.
    block2: Option<Block>,
    /// Sequence number of the last notification, of which 24 bits are sent.
    sequence: u32,
    /// `true` while a confirmable notification is not acknowledged.
    in_flight: bool,
    /// State that follows the notification in flight.
    waiting: Option<Response>,
    /// Time of the last acknowledged notification.
    confirmed: Mono,
    _share: Share,
}

impl Observers {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self { peer, observers: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    /// Begins an observation, or continues that of the same token, and marks the response as its first notification.
    pub(super) fn register(
        &mut self,
        core: &Core,
        now: Mono,
        number: u32,
        exchange: &Exchange,
        response: &mut Response,
    ) {
        // 24 bits of the milliseconds: after a restart, the numbers continue (RFC 7641, 4.4).
        let start = u32::try_from(now.0.as_millis() & 0xFF_FFFF).unwrap_or(0);
        let observer = match self.observers.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let Some(share) = core.totals.observations.take(1) else { return };
                self.tokens.insert(exchange.token, number);
                vacant.insert(Observer {
                    token: exchange.token,
                    key: exchange.key,
                    block2: None,
                    sequence: start,
                    in_flight: false,
                    waiting: None,
                    confirmed: now,
                    _share: share,
                })
            }
        };
        observer.key = exchange.key;
        observer.block2 = exchange.block2.map(|block| Block { number: 0, ..block });
        response.options.set_uint(OptionNumber::OBSERVE, observer.next_sequence());
    }

    /// Ends the observation with this token, if there is one, as its client asks.
    pub(super) fn cancel(&mut self, core: &mut Core, token: Token) {
        if let Some(number) = self.tokens.get(&token) {
            self.remove(core, *number, EndReason::Cancelled);
        }
    }

    fn remove(&mut self, core: &mut Core, number: u32, reason: EndReason) {
        if let Some(observer) = self.observers.remove(&number) {
            self.tokens.remove(&observer.token);
            let id = ObservationId { peer: self.peer, number };
            core.events.push_back(Event::ObservationEnded { id, reason });
        }
    }
}

impl Observer {
    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1) & 0xFF_FFFF;
        self.sequence
    }
}

impl Server {
    pub(crate) fn has_observations(&self) -> bool {
        !self.observers.observers.is_empty()
    }

    pub(crate) fn is_observed(&self, number: u32) -> bool {
        self.observers.observers.contains_key(&number)
    }

    /// Reads the option Observe. Returns the identity of the observation that the client asks for.
    pub(super) fn observe(
        &mut self,
        core: &mut Core,
        exchange: &mut Exchange,
        request: &Request,
    ) -> Option<ObservationId> {
        if !matches!(request.method, Code::GET | Code::FETCH) {
            return None;
        }
        let asked = request.options.uint(OptionNumber::OBSERVE)?;
        let limits = &core.settings.limits;
        let known = self.observers.tokens.get(&exchange.token).copied();
        let number = match (asked, known) {
            (0, Some(number)) => number,
            (0, None) if self.observers.observers.len() < limits.observations_per_peer => self.take_number(),
            (1, _) => {
                self.observers.cancel(core, exchange.token);
                return None;
            }
            // Beyond the limits, the request is an ordinary one (RFC 7641, 4.1).
            _ => return None,
        };
        exchange.observe = Some(number);
        Some(ObservationId { peer: self.peer, number })
    }

    /// Sends the state of an observed resource, after the acknowledgement of the notification in flight.
    pub(crate) fn notify(&mut self, core: &mut Core, now: Mono, number: u32, response: Response) {
        let Some(observer) = self.observers.observers.get_mut(&number) else {
            core.drop_one(DropReason::UnknownExchange);
            return;
        };
        if observer.in_flight {
            if observer.waiting.replace(response).is_some() {
                core.counters.superseded += 1;
            }
            return;
        }
        let settings = core.settings.notifications;
        let due = now.since(observer.confirmed) >= settings.confirm_interval;
        let last = !response.code.is_success();
        let confirmable = settings.confirmable || due || last;
        observer.in_flight = confirmable;
        let outgoing = self.notification(core, now, number, response, confirmable);
        core.outgoing.extend(outgoing);
        if last {
            self.observers.remove(core, number, EndReason::Finished);
        }
    }

    /// Sends a last notification, which ends the observation.
    pub(crate) fn end_observation(&mut self, core: &mut Core, now: Mono, number: u32, response: Response) {
        if let Some(observer) = self.observers.observers.get_mut(&number) {
            observer.in_flight = false;
            self.notify(core, now, number, response);
            self.remove_observation(core, number, EndReason::Finished);
        }
    }

    /// Returns the message of a notification, or `None` if the observation has ended.
    fn notification(
        &mut self,
        core: &Core,
        now: Mono,
        number: u32,
        mut response: Response,
        confirmable: bool,
    ) -> Option<Outgoing> {
        let observer = self.observers.observers.get_mut(&number)?;
        if response.code.is_success() {
            response.options.set_uint(OptionNumber::OBSERVE, observer.next_sequence());
        }
        let at = now.plus(core.settings.limits.body_lifetime);
        if self.bodies.first_block(core, at, observer.key, observer.block2, usize::MAX, &mut response)
            && self.timers.next().is_none()
        {
            self.timers.set(at, ());
        }
        Some(Outgoing {
            purpose: Purpose::Notification(number),
            route: Route::Message { confirmable },
            code: response.code,
            token: observer.token,
            options: response.options,
            payload: response.payload,
        })
    }

    /// Takes the newer state that replaces a notification in flight (RFC 7641, 4.5.2), or returns `None`.
    pub(crate) fn newer_notification(&mut self, core: &mut Core, now: Mono, number: u32) -> Option<Outgoing> {
        let response =
            self.observers.observers.get_mut(&number)?.waiting.take_if(|response| response.code.is_success())?;
        core.counters.superseded += 1;
        self.notification(core, now, number, response, true)
    }

    /// Processes the acknowledgement of a notification: the newer state follows.
    pub(crate) fn acknowledged(&mut self, core: &mut Core, now: Mono, number: u32) {
        let Some(observer) = self.observers.observers.get_mut(&number) else { return };
        observer.in_flight = false;
        observer.confirmed = now;
        if let Some(response) = observer.waiting.take() {
            self.notify(core, now, number, response);
        }
    }

    pub(crate) fn remove_observation(&mut self, core: &mut Core, number: u32, reason: EndReason) {
        self.observers.remove(core, number, reason);
    }

    /// Ends all observations and forgets all requests.
    pub(crate) fn close(&mut self, core: &mut Core, reason: EndReason) {
        self.exchanges.clear();
        while let Some((number, _)) = self.observers.observers.first_key_value() {
            self.observers.remove(core, *number, reason);
        }
    }
}
