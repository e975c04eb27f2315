//! Requests of one peer and their answers (RFC 7252, 5.2 and 5.4).

mod blocks;
mod bursts;
mod observe;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use viaduct_units::Mono;

use crate::codec::{Block, BlockSize, Code, OptionNumber, Token};
use crate::link_format;
use crate::message::Inbound;
use crate::shared::{Core, Origin, Outgoing, Purpose, Route};
use crate::timers::Timers;
use crate::{DropReason, Event, ExchangeId, Options, Request, Response};
use blocks::{Bodies, Key, Uploads};
use bursts::{Arrived, Bursts};
use observe::Observers;

/// Requests that wait for answers of the owner, bodies in blocks, and observers.
#[derive(Debug)]
pub(crate) struct Server {
    peer: SocketAddr,
    /// Number of the next exchange or observation.
    next: u32,
    exchanges: BTreeMap<u32, Exchange>,
    uploads: Uploads,
    bodies: Bodies,
    bursts: Bursts,
    observers: Observers,
    /// Times at which bodies may have expired.
    timers: Timers<()>,
}

/// A request without its answer.
#[derive(Debug)]
struct Exchange {
    origin: Origin,
    token: Token,
    method: Code,
    /// Identity of the resource, for further blocks of the response.
    key: Key,
    /// Last block of the request, which the response repeats.
    block1: Option<Block>,
    /// Block of the response that the client asks for.
    block2: Option<Block>,
    /// First block of the response that the client asks for with Q-Block2.
    q_block2: Option<Block>,
    /// `true` if the body of the request arrived with Q-Block1.
    gathered: bool,
    /// Representations that the client has.
    etags: Vec<Bytes>,
    /// Observation that the client asks for.
    observe: Option<u32>,
    /// Classes of responses that the client does not want (RFC 7967), bit 1 for 2.xx, 3 for 4.xx, 4 for 5.xx.
    suppressed: u32,
}

impl Server {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            next: 0,
            exchanges: BTreeMap::new(),
            uploads: Uploads::default(),
            bodies: Bodies::default(),
            bursts: Bursts::default(),
            observers: Observers::new(peer),
            timers: Timers::default(),
        }
    }

    pub(crate) fn handle_request(&mut self, core: &mut Core, now: Mono, origin: Origin, message: Inbound) {
        let mut exchange = Exchange::new(core, origin, &message);
        if let Some(refusal) = refusal(core, &message.options) {
            exchange.reply(core, refusal);
            return;
        }
        let mut request = Request {
            method: message.code,
            options: message.options,
            payload: message.payload,
            confirmable: origin.confirmable,
        };
        if !self.gather(core, now, &mut exchange, &mut request) {
            return;
        }
        if let Err(answer) = self.join(core, now, &exchange, &mut request) {
            exchange.reply(core, answer);
            return;
        }
        let limit = core.settings.limits.body_octets;
        if request.payload.len() > limit {
            exchange.reply(core, blocks::too_large(limit, exchange.block1));
            return;
        }
        if self.send_set(core, now, &mut exchange, &request) {
            return;
        }
        if let Some(response) = self.bodies.further_block(core, now, &exchange) {
            exchange.reply(core, response);
            return;
        }
        self.deliver(core, now, exchange, request);
    }

    /// Adds a block with Q-Block1. Returns `true` if the request is complete, with or without blocks.
    fn gather(&mut self, core: &mut Core, now: Mono, exchange: &mut Exchange, request: &mut Request) -> bool {
        let block = request.options.get(OptionNumber::Q_BLOCK1).and_then(|value| Block::decode(value));
        let Some(block) = block else { return true };
        let arrived = self.bursts.add(core, now, exchange, block, request);
        if self.timers.next().is_none() {
            self.bursts.next().into_iter().for_each(|at| self.timers.set(at, ()));
        }
        match arrived {
            Arrived::Body(body) => {
                request.payload = body;
                request.options.remove(OptionNumber::Q_BLOCK1);
                return true;
            }
            Arrived::Answer(answer) => exchange.reply(core, answer),
            Arrived::Nothing => exchange.acknowledge(core),
        }
        false
    }

    /// Joins a block of a request. Returns the answer to the block if it is not the last one.
    fn join(&mut self, core: &mut Core, now: Mono, exchange: &Exchange, request: &mut Request) -> Result<(), Response> {
        let Some(block) = exchange.block1 else { return Ok(()) };
        let at = now.plus(core.settings.limits.body_lifetime);
        if self.timers.next().is_none() {
            self.timers.set(at, ());
        }
        request.payload = self.uploads.join(core, at, exchange.key, block, request)?;
        request.options.remove(OptionNumber::BLOCK1);
        Ok(())
    }

    /// Passes a request with its whole body to the owner, or answers it if it is for `/.well-known/core`.
    fn deliver(&mut self, core: &mut Core, now: Mono, mut exchange: Exchange, request: Request) {
        if self.exchanges.len() >= core.settings.limits.exchanges_per_peer {
            core.drop_one(DropReason::Exchanges);
            exchange.reply(core, Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1));
            return;
        }
        let observe = self.observe(core, &mut exchange, &request);
        let number = self.take_number();
        let listed = (!core.resources.is_empty()).then(|| link_format::answer(&core.resources, &request)).flatten();
        self.exchanges.insert(number, exchange);
        match listed {
            Some(response) => self.respond(core, now, number, response, false),
            None => {
                core.events.push_back(Event::Request { id: ExchangeId { peer: self.peer, number }, request, observe });
            }
        }
    }

    /// Answers a request. `observed` begins the observation that the request asks for.
    pub(crate) fn respond(&mut self, core: &mut Core, now: Mono, number: u32, response: Response, observed: bool) {
        let Some(mut exchange) = self.exchanges.remove(&number) else {
            core.drop_one(DropReason::UnknownExchange);
            return;
        };
        let mut response = validated(&exchange, response);
        if exchange.gathered {
            self.bursts.answered(exchange.key, &response);
        }
        if let Some(number) = exchange.observe.take() {
            if observed && response.code.is_success() {
                self.observers.register(core, now, number, &exchange, &mut response);
            } else {
                self.observers.cancel(core, exchange.token);
            }
        }
        let at = now.plus(core.settings.limits.body_lifetime);
        if exchange.q_block2.is_none()
            && self.bodies.first_block(core, at, exchange.key, exchange.block2, exchange.origin.limit, &mut response)
            && self.timers.next().is_none()
        {
            self.timers.set(at, ());
        }
        if let Some(first) = exchange.q_block2 {
            if response.payload.len() > core.sizes.whole {
                self.bodies.keep(core, at, exchange.key, &mut response);
                if self.timers.next().is_none() {
                    self.timers.set(at, ());
                }
                if self.send_range(core, now, &mut exchange, first) {
                    return;
                }
            } else if first.number == 0 && !first.more && response.payload.len() <= first.size.octets() {
                // The option shows the client that the server supports it.
                let whole = Block { size: first.size.min(core.sizes.block), ..first };
                response.options.add_uint(OptionNumber::Q_BLOCK2, whole.value());
            }
        }
        exchange.reply(core, response);
    }

    pub(crate) fn next_timeout(&self) -> Option<Mono> {
        self.timers.next()
    }

    pub(crate) fn handle_timeout(&mut self, core: &mut Core, now: Mono) {
        let mut due = false;
        while self.timers.take_due(now).is_some() {
            due = true;
        }
        if due {
            let bursts = self.ask_for_missing(core, now);
            let next = [self.uploads.expire(now), self.bodies.expire(now), bursts].into_iter().flatten().min();
            next.into_iter().for_each(|at| self.timers.set(at, ()));
        }
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }
}

impl Exchange {
    fn new(core: &Core, origin: Origin, message: &Inbound) -> Self {
        let block = |number| message.options.get(number).and_then(|value| Block::decode(value));
        let longest = core.sizes.block;
        Self {
            origin,
            token: message.token,
            method: message.code,
            key: Key::of(message),
            block1: block(OptionNumber::BLOCK1),
            block2: block(OptionNumber::BLOCK2).map(|block| block.reduced(longest)),
            q_block2: block(OptionNumber::Q_BLOCK2),
            gathered: message.options.contains(OptionNumber::Q_BLOCK1),
            etags: message.options.all(OptionNumber::ETAG).cloned().collect(),
            observe: None,
            suppressed: message.options.uint(OptionNumber::NO_RESPONSE).unwrap_or(0),
        }
    }

    /// Acknowledges the request without an answer.
    fn acknowledge(&self, core: &mut Core) {
        core.outgoing.push_back(Outgoing {
            purpose: Purpose::Response,
            route: Route::Reply(self.origin),
            code: Code::EMPTY,
            token: Token::EMPTY,
            options: Options::new(),
            payload: Bytes::new(),
        });
    }

    /// Sends the answer to the request.
    fn reply(&mut self, core: &mut Core, mut response: Response) {
        if let Some(block) = self.block1.filter(|_| !response.options.contains(OptionNumber::BLOCK1)) {
            response.options.add_uint(OptionNumber::BLOCK1, block.value());
        }
        if self.suppressed >> (response.code.class().saturating_sub(1)) & 1 == 1 {
            // An empty acknowledgement remains of a suppressed response to a confirmable request.
            return self.acknowledge(core);
        }
        core.outgoing.push_back(Outgoing {
            purpose: Purpose::Response,
            route: Route::Reply(self.origin),
            code: response.code,
            token: self.token,
            options: response.options,
            payload: response.payload,
        });
    }
}

/// Returns the answer to a request with options that cannot be processed, or `None`.
fn refusal(core: &Core, options: &Options) -> Option<Response> {
    if let Some(number) = super::unrecognised(options) {
        return Some(Response::diagnostic(Code::BAD_OPTION, &format!("{number:?}")));
    }
    let bert = |number| {
        let block = options.get(number).map(|value| Block::decode(value));
        block.is_some_and(|block| block.is_none_or(|block| block.size == BlockSize::BERT))
    };
    // The size 7 is reserved on datagrams (RFC 7959, 2.2).
    if !core.reliable && (bert(OptionNumber::BLOCK1) || bert(OptionNumber::BLOCK2)) {
        return Some(Response::diagnostic(Code::BAD_REQUEST, "block size"));
    }
    let q_block = options.contains(OptionNumber::Q_BLOCK1) || options.contains(OptionNumber::Q_BLOCK2);
    if q_block && (!core.settings.q_block || core.reliable) {
        return Some(Response::diagnostic(Code::BAD_OPTION, "Q-Block"));
    }
    let proxied = options.contains(OptionNumber::PROXY_URI) || options.contains(OptionNumber::PROXY_SCHEME);
    (proxied && !core.settings.proxy).then(|| Response::new(Code::PROXYING_NOT_SUPPORTED))
}

/// Replaces a response by `2.03 Valid` if the client has the representation already (RFC 7252, 5.6.2).
fn validated(exchange: &Exchange, response: Response) -> Response {
    let known = response.options.get(OptionNumber::ETAG).is_some_and(|etag| exchange.etags.contains(etag));
    if !known || response.code != Code::CONTENT || !matches!(exchange.method, Code::GET | Code::FETCH) {
        return response;
    }
    let mut valid = Response::new(Code::VALID);
    for number in [OptionNumber::ETAG, OptionNumber::MAX_AGE] {
        if let Some(value) = response.options.get(number) {
            valid.options.add(number, value.clone());
        }
    }
    valid
}
