//! Own requests to one peer: matching of responses (RFC 7252, 5.3.2).

mod blocks;
mod bursts;
mod observe;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use viaduct_units::Mono;

use crate::blocks::Joined;
use crate::codec::{Block, Code, OptionNumber, Token};
use crate::message::Inbound;
use crate::shared::{Core, Outgoing, Purpose, Route};
use crate::timers::Timers;
use crate::{Event, Failure, Request, RequestError, RequestId, Response};
use blocks::Taken;
use bursts::{Attempts, Burst, Support};
use observe::Watch;

/// Octets of options that the blocks and observe add to a request.
const OWN_OPTIONS_OCTETS: usize = 24;
/// Octets before the options of a datagram, at most.
const HEADER_OCTETS: usize = 12;

/// Requests that wait for responses.
#[derive(Debug)]
pub(crate) struct Client {
    peer: SocketAddr,
    /// Number of the next request.
    next: u32,
    requests: BTreeMap<u32, Pending>,
    /// Requests by the tokens of their messages.
    tokens: BTreeMap<Token, u32>,
    timers: Timers<Timer>,
    /// Support of Q-Block by the peer.
    support: Support,
}

/// A deadline of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The response is overdue.
    Response(u32),
    /// The observed state is too old.
    Reregister(u32),
    /// The answer to a set of blocks is overdue.
    Burst(u32),
}

/// A request without its final response.
#[derive(Debug)]
struct Pending {
    request: Request,
    /// Token of the request.
    token: Token,
    /// Token of the requests for further blocks of a notification (RFC 7959, 2.6).
    fetch_token: Option<Token>,
    /// Block of the request's body that is in flight, if the body needs more than one.
    upload: Option<Block>,
    /// State of a transfer with Q-Block.
    burst: Option<Burst>,
    /// Tokens of the last set.
    burst_tokens: bursts::Tokens,
    attempts: Attempts,
    /// Body of the response, of which the first blocks have arrived.
    download: Option<Download>,
    /// Observation, if the request asks for one.
    watch: Option<Watch>,
    /// `true` after the owner cancelled the observation: no more events.
    cancelled: bool,
    /// Number of transfers in blocks that began anew.
    restarts: u8,
    timer: Option<(Mono, Timer)>,
}

/// A response that arrives in blocks.
#[derive(Debug)]
struct Download {
    /// First response, with the options of the whole.
    first: Response,
    body: Joined,
    /// Block to ask for next.
    next: Block,
}

impl Client {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            next: 0,
            requests: BTreeMap::new(),
            tokens: BTreeMap::new(),
            timers: Timers::default(),
            support: Support::default(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(crate) fn request(
        &mut self,
        core: &mut Core,
        now: Mono,
        request: Request,
        observe: bool,
    ) -> Result<RequestId, RequestError> {
        check(core, &request, self.requests.len())?;
        let number = self.add(core, request, observe);
        if !self.waits_for_probe(core, now, number) {
            self.begin_burst(core, number);
            self.send(core, now, number);
        }
        Ok(RequestId { peer: self.peer, number })
    }

    fn add(&mut self, core: &mut Core, request: Request, observe: bool) -> u32 {
        let number = self.take_number();
        let token = self.new_token(core, number);
        let upload = blocks::first_block(core, &request);
        let watch = observe.then(Watch::default);
        let pending = Pending {
            request,
            token,
            fetch_token: None,
            upload,
            burst: None,
            burst_tokens: Vec::new(),
            attempts: Attempts::default(),
            download: None,
            watch,
            cancelled: false,
            restarts: 0,
            timer: None,
        };
        self.requests.insert(number, pending);
        number
    }

    pub(crate) fn ping(&mut self) -> RequestId {
        RequestId { peer: self.peer, number: self.take_number() }
    }

    pub(crate) fn ping_ended(&self, core: &mut Core, number: u32, failure: Failure) {
        let id = RequestId { peer: self.peer, number };
        // A Reset is the answer to a ping (RFC 7252, 4.3).
        core.events.push_back(match failure {
            Failure::Reset => Event::Pong { id },
            failure => Event::Failed { id, failure },
        });
    }

    /// Processes a response. Returns the number of its request, or `None` if the token is unknown.
    pub(crate) fn handle_response(&mut self, core: &mut Core, now: Mono, message: Inbound) -> Option<u32> {
        let number = *self.tokens.get(&message.token)?;
        let pending = self.requests.get_mut(&number)?;
        if super::unrecognised(&message.options).is_some() {
            self.failed(core, now, number, Failure::BadOption);
            return Some(number);
        }
        let step = pending.take_response(core, now, message);
        self.take_step(core, now, number, step);
        Some(number)
    }

    fn take_step(&mut self, core: &mut Core, now: Mono, number: u32, step: Step) {
        let id = RequestId { peer: self.peer, number };
        match step {
            Step::Ignore => self.acknowledged(core, now, number),
            Step::Send => self.send(core, now, number),
            Step::Burst => self.send_burst(core, now, number),
            Step::Await => self.await_burst(core, now, number),
            Step::Notify(response) => {
                let Some(pending) = self.requests.get_mut(&number) else { return };
                clear_timer(&mut self.timers, pending);
                if let Some(at) = observe::expiry(core, now, &response) {
                    set_timer(&mut self.timers, pending, at, Timer::Reregister(number));
                }
                if !pending.cancelled {
                    core.events.push_back(Event::Notification { id, response });
                }
            }
            Step::Finish(response) => {
                let reported = self.remove(number).is_some_and(|pending| !pending.cancelled);
                self.take_probe(core, now, number, Some(&response));
                if reported {
                    core.events.push_back(Event::Response { id, response });
                }
            }
            Step::Fail(failure) => self.failed(core, now, number, failure),
        }
    }

    /// Sends the next message of a request.
    fn send(&mut self, core: &mut Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        if bursts::is_burst(pending) {
            return self.send_burst(core, now, number);
        }
        if let Some(token) = pending.fetch_token {
            self.tokens.insert(token, number);
        }
        let outgoing = pending.message(core, number);
        core.outgoing.push_back(outgoing);
        self.sent(core, now, number);
    }

    /// Begins to wait for the response to a message that is not acknowledged. After an acknowledgement,
    /// [`Client::acknowledged`] does so.
    fn sent(&mut self, core: &Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        if pending.request.confirmable {
            clear_timer(&mut self.timers, pending);
        } else {
            let at = now.plus(core.settings.response_timeout);
            set_timer(&mut self.timers, pending, at, Timer::Response(number));
        }
    }

    pub(crate) fn acknowledged(&mut self, core: &Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        if pending.timer.is_none() {
            let at = now.plus(core.settings.response_timeout);
            set_timer(&mut self.timers, pending, at, Timer::Response(number));
        }
    }

    pub(crate) fn failed(&mut self, core: &mut Core, now: Mono, number: u32, failure: Failure) {
        let Some(pending) = self.remove(number) else { return };
        self.take_probe(core, now, number, None);
        if !pending.cancelled {
            core.events.push_back(Event::Failed { id: RequestId { peer: self.peer, number }, failure });
        }
    }

    pub(crate) fn cancel(&mut self, core: &mut Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        let observes = pending.watch.as_ref().is_some_and(Watch::is_registered);
        if !observes || pending.cancelled {
            self.remove(number);
            return;
        }
        pending.cancelled = true;
        pending.download = None;
        self.send(core, now, number);
    }

    pub(crate) fn next_timeout(&self) -> Option<Mono> {
        self.timers.next()
    }

    pub(crate) fn handle_timeout(&mut self, core: &mut Core, now: Mono) {
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::Response(number) => {
                    self.forget_timer(number);
                    self.failed(core, now, number, Failure::TimedOut);
                }
                Timer::Burst(number) => {
                    self.forget_timer(number);
                    self.burst_overdue(core, now, number);
                }
                Timer::Reregister(number) => {
                    self.forget_timer(number);
                    self.send(core, now, number);
                }
            }
        }
    }

    pub(crate) fn close(&mut self, core: &mut Core, failure: Failure) {
        self.support = Support::No;
        while let Some((number, _)) = self.requests.first_key_value() {
            self.failed(core, Mono::default(), *number, failure);
        }
    }

    fn forget_timer(&mut self, number: u32) {
        if let Some(pending) = self.requests.get_mut(&number) {
            pending.timer = None;
        }
    }

    fn remove(&mut self, number: u32) -> Option<Pending> {
        let mut pending = self.requests.remove(&number)?;
        clear_timer(&mut self.timers, &mut pending);
        self.tokens.remove(&pending.token);
        for token in pending.burst_tokens.drain(..) {
            self.tokens.remove(&token);
        }
        if let Some(token) = pending.fetch_token {
            self.tokens.remove(&token);
        }
        Some(pending)
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    /// Returns a token that is not in use. If all short random ones are, it is longer.
    fn new_token(&mut self, core: &mut Core, number: u32) -> Token {
        let mut token = core.token();
        for _ in 0..8 {
            if !self.tokens.contains_key(&token) {
                break;
            }
            token = core.token();
        }
        if self.tokens.contains_key(&token) {
            let [a, b, c, d] = number.to_be_bytes();
            token = Token::new(&[0xFF, 0, 0, 0, a, b, c, d]).unwrap_or_default();
        }
        self.tokens.insert(token, number);
        token
    }
}

/// Next step of a request after a response.
enum Step {
    Ignore,
    /// The next message of the request is sent.
    Send,
    /// The next set of blocks is sent, or the request for it.
    Burst,
    /// Further blocks of the set follow.
    Await,
    /// The observed state has arrived.
    Notify(Response),
    /// The request is complete.
    Finish(Response),
    Fail(Failure),
}

impl Pending {
    /// Returns the next message of the request.
    fn message(&self, core: &Core, number: u32) -> Outgoing {
        let mut options = self.request.options.clone();
        let mut payload = Bytes::new();
        let mut token = self.token;
        if let Some(download) = &self.download {
            token = self.fetch_token.unwrap_or(token);
            options.set_uint(OptionNumber::BLOCK2, download.next.value());
            if self.request.method == Code::FETCH {
                payload = self.request.payload.clone();
            }
        } else {
            if self.watch.is_some() {
                options.set_uint(OptionNumber::OBSERVE, u32::from(self.cancelled));
            }
            if let Some(value) = bursts::first_option(core, self) {
                options.set_uint(OptionNumber::Q_BLOCK2, value);
            }
            payload = blocks::add_upload(self, &core.sizes, &mut options);
        }
        let route = Route::Message { confirmable: self.request.confirmable };
        Outgoing { purpose: Purpose::Request(number), route, code: self.request.method, token, options, payload }
    }

    fn take_response(&mut self, core: &mut Core, now: Mono, message: Inbound) -> Step {
        if let Some(step) = self.continue_burst(core, &message) {
            return step;
        }
        if let Some(step) = blocks::continue_upload(self, &core.sizes, &message) {
            return step;
        }
        let fetched = self.fetch_token == Some(message.token);
        if fetched && self.download.is_none() {
            return Step::Ignore;
        }
        if let Some(watch) = self.watch.as_mut().filter(|_| !fetched) {
            match watch.take(core, now, &message) {
                observe::Order::Newer => self.download = None,
                observe::Order::Older => return Step::Ignore,
                observe::Order::NotObserved => self.watch = None,
            }
        }
        match blocks::take_block(self, core, message) {
            Ok(Taken::Whole(response)) => self.complete(response),
            Ok(Taken::Block) => Step::Send,
            Ok(Taken::Stale) => Step::Ignore,
            Err(failure) => self.restart(failure),
        }
    }

    /// Reports a response with its whole body.
    fn complete(&mut self, response: Response) -> Step {
        self.download = None;
        self.restarts = 0;
        if self.watch.is_some() && !self.cancelled { Step::Notify(response) } else { Step::Finish(response) }
    }

    /// Begins a transfer in blocks anew if the body changed meanwhile, at most four times.
    fn restart(&mut self, failure: Failure) -> Step {
        self.download = None;
        if failure != Failure::Blocks || self.restarts >= 4 || !matches!(self.request.method, Code::GET | Code::FETCH) {
            return Step::Fail(failure);
        }
        self.restarts += 1;
        Step::Send
    }
}

fn check(core: &Core, request: &Request, pending: usize) -> Result<(), RequestError> {
    let limits = &core.settings.limits;
    if !request.method.is_request() {
        return Err(RequestError::Method(request.method));
    }
    if pending >= limits.requests_per_peer {
        return Err(RequestError::Busy(pending));
    }
    if request.payload.len() > limits.body_octets {
        return Err(RequestError::TooLarge(request.payload.len(), limits.body_octets));
    }
    let octets: usize = request.options.iter().map(|(_, value)| value.len() + 5).sum();
    let room = limits.datagram_octets.saturating_sub(HEADER_OCTETS + OWN_OPTIONS_OCTETS + 16);
    if octets > room { Err(RequestError::Options(octets, room)) } else { Ok(()) }
}

fn set_timer(timers: &mut Timers<Timer>, pending: &mut Pending, at: Mono, timer: Timer) {
    clear_timer(timers, pending);
    pending.timer = Some((at, timer));
    timers.set(at, timer);
}

fn clear_timer(timers: &mut Timers<Timer>, pending: &mut Pending) {
    if let Some((at, timer)) = pending.timer.take() {
        timers.clear(at, timer);
    }
}
