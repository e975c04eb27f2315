//! CoAP over a reliable connection, TCP or TLS (RFC 8323).

mod signal;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use viaduct_units::Mono;

use crate::codec::{BlockSize, Code, Frame, FrameError, Token, Writer};
use crate::message::Inbound;
use crate::session::Session;
use crate::shared::{Core, Origin, Outgoing, Purpose, Sizes};
use crate::{
    Counters, DropReason, EndReason, Event, ExchangeId, Failure, ObservationId, Options, Request, RequestError,
    RequestId, Resource, Response, Settings, Totals,
};

/// Octets of a message that each peer accepts before its CSM, and thereafter unless it differs (RFC 8323, 5.3.1).
const BASE_MESSAGE_OCTETS: usize = 1152;
/// Octets of a message beside a block of its body: header and options.
const BESIDE_BODY_OCTETS: usize = 128;
/// Pings without an answer.
const PINGS_MAX: usize = 16;

/// Reasons for which a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer asked for it with a Release.
    Released,
    /// The peer sent an Abort.
    Aborted,
    /// The peer sent something that is not CoAP. An Abort was queued.
    Malformed,
    /// The peer sent a message that is longer than permitted. An Abort was queued.
    TooLong,
    /// The first message of the peer is no CSM, or a CSM has an unknown critical option. An Abort was queued.
    Csm,
    /// The stream ended.
    Ended,
}

impl Closed {
    /// All reasons.
    pub const ALL: [Self; 6] = [Self::Released, Self::Aborted, Self::Malformed, Self::TooLong, Self::Csm, Self::Ended];

    /// Returns the reason as a constant text for counters and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Aborted => "aborted",
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
            Self::Csm => "csm",
            Self::Ended => "ended",
        }
    }
}

/// A connection: client and server at once, as both ends may send requests.
///
/// Until the CSM of the peer has arrived, messages have at most 1152 octets, and block-wise transfer is assumed.
///
/// The owner passes what it reads to [`Connection::handle_octets`], and after each call takes events with
/// [`Connection::poll_event`] and writes what [`Connection::poll_transmit`] returns. If [`Connection::closed`] is not
/// `None`, it writes the rest and closes the stream.
#[derive(Debug)]
pub struct Connection {
    core: Core,
    session: Session,
    peer: SocketAddr,
    /// Octets of an incomplete message, at most [`crate::settings::Limits::message_octets`].
    input: BytesMut,
    output: VecDeque<Bytes>,
    /// `true` after the CSM of the peer.
    greeted: bool,
    /// Octets of a message that the peer accepts.
    message_octets: usize,
    pings: BTreeMap<Token, RequestId>,
    closed: Option<Closed>,
}

impl Connection {
    /// Returns the machine of a connection that is established, with its CSM to send. The address of the peer is part of
    /// the identities in events.
    #[must_use]
    pub fn new(settings: Settings, seed: u64, peer: SocketAddr) -> Self {
        let mut core = Core::new(settings, seed);
        core.reliable = true;
        core.sizes = sizes(BASE_MESSAGE_OCTETS, true);
        let mut connection = Self {
            core,
            session: Session::new(peer),
            peer,
            input: BytesMut::new(),
            output: VecDeque::new(),
            greeted: false,
            message_octets: BASE_MESSAGE_OCTETS,
            pings: BTreeMap::new(),
            closed: None,
        };
        connection.send_csm();
        connection
    }

    /// Counts bodies and observations in the totals of another machine, so that the limits are those of both together.
    #[must_use]
    pub fn sharing(mut self, totals: Totals) -> Self {
        self.core.totals = totals;
        self
    }

    /// Sets the resources that `/.well-known/core` lists. Without resources, requests for it are passed to the owner.
    pub fn set_resources(&mut self, resources: Vec<Resource>) {
        self.core.resources = resources;
    }

    /// Processes octets of the stream.
    pub fn handle_octets(&mut self, now: Mono, octets: &[u8]) {
        if self.closed.is_some() {
            return;
        }
        self.core.counters.octets_received += octets.len() as u64;
        self.input.extend_from_slice(octets);
        while self.closed.is_none() {
            match Frame::length(&self.input, self.core.settings.limits.message_octets) {
                Ok(Some(length)) if length <= self.input.len() => {
                    let message = self.input.split_to(length).freeze();
                    self.handle_message(now, &message);
                }
                Ok(_) => break,
                Err(FrameError::TooLong(_)) => self.abort(Closed::TooLong, "message too long"),
                Err(FrameError::Malformed(error)) => self.abort(Closed::Malformed, error.label()),
            }
            self.flush(now);
        }
    }

    /// Processes the end of the stream.
    pub fn handle_end(&mut self) {
        self.close(Closed::Ended);
    }

    /// Does the work that is due. Does nothing before the deadline of [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Mono) {
        self.session.handle_timeout(&mut self.core, now);
        self.flush(now);
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.session.next_timeout()
    }

    /// Returns the next message to write, or `None`.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.output.pop_front()
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    /// Returns the reason for which the connection is closed, or `None` if it is open.
    #[must_use]
    pub const fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Sends a request. Its last event is [`Event::Response`] or [`Event::Failed`].
    ///
    /// # Errors
    /// The request violates a limit, or the connection is closed.
    pub fn request(&mut self, now: Mono, request: Request) -> Result<RequestId, RequestError> {
        self.send_request(now, request, false)
    }

    /// Observes a resource ([`crate::Endpoint::observe`]).
    ///
    /// # Errors
    /// The request violates a limit, or the connection is closed.
    pub fn observe(&mut self, now: Mono, request: Request) -> Result<RequestId, RequestError> {
        self.send_request(now, request, true)
    }

    /// Ends a request or an observation of this endpoint without a further event.
    pub fn cancel(&mut self, now: Mono, id: RequestId) {
        self.session.cancel(&mut self.core, now, id.number);
        self.flush(now);
    }

    /// Sends a Ping. Its event is [`Event::Pong`] or, at the end of the connection, [`Event::Failed`].
    ///
    /// # Errors
    /// Too many pings are unanswered, or the connection is closed.
    pub fn ping(&mut self) -> Result<RequestId, RequestError> {
        if self.closed.is_some() {
            return Err(RequestError::Closed);
        }
        if self.pings.len() >= PINGS_MAX {
            return Err(RequestError::Busy(self.pings.len()));
        }
        let id = self.session.ping();
        let token = Token::new(&id.number.to_be_bytes()).unwrap_or_default();
        self.pings.insert(token, id);
        self.write(Code::PING, token, |_| Ok(()), 0);
        Ok(id)
    }

    /// Answers a request.
    pub fn respond(&mut self, now: Mono, id: ExchangeId, response: Response) {
        self.session.respond(&mut self.core, now, id.number, response, false);
        self.flush(now);
    }

    /// Answers a request and begins the observation that it asks for ([`crate::Endpoint::respond_observed`]).
    pub fn respond_observed(&mut self, now: Mono, id: ExchangeId, response: Response) {
        self.session.respond(&mut self.core, now, id.number, response, true);
        self.flush(now);
    }

    /// Returns `true` if an observation has begun and has not ended. None begins beyond [`crate::settings::Limits::observations`], nor
    /// with an error as response.
    #[must_use]
    pub fn is_observed(&self, id: ObservationId) -> bool {
        self.session.has_observation(id)
    }

    /// Sends the state of an observed resource. An error ends the observation.
    pub fn notify(&mut self, now: Mono, id: ObservationId, response: Response) {
        self.session.notify(&mut self.core, now, id, response);
        self.flush(now);
    }

    /// Ends an observation with a last response, such as `4.04 Not Found`.
    pub fn end_observation(&mut self, now: Mono, id: ObservationId, response: Response) {
        self.session.end_observation(&mut self.core, now, id, response);
        self.flush(now);
    }

    /// Asks the peer to close the connection after its last response (Release).
    pub fn release(&mut self) {
        if self.closed.is_none() {
            self.write(Code::RELEASE, Token::EMPTY, |_| Ok(()), 0);
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    fn send_request(&mut self, now: Mono, request: Request, observe: bool) -> Result<RequestId, RequestError> {
        if self.closed.is_some() {
            return Err(RequestError::Closed);
        }
        let id = self.session.request(&mut self.core, now, request, observe)?;
        self.flush(now);
        Ok(id)
    }

    fn handle_message(&mut self, now: Mono, octets: &Bytes) {
        self.core.counters.received += 1;
        let frame = match Frame::parse(octets) {
            Ok(frame) => frame,
            Err(error) => {
                self.core.drop_one(DropReason::Malformed);
                return self.abort(Closed::Malformed, error.label());
            }
        };
        if frame.code.is_signal() {
            return self.handle_signal(&frame);
        }
        if !self.greeted {
            return self.abort(Closed::Csm, "the first message is no CSM");
        }
        let message = Inbound {
            code: frame.code,
            token: frame.token,
            options: Options::of(octets, frame.options()),
            payload: octets.slice_ref(frame.payload),
        };
        if frame.code.is_request() {
            let safe = matches!(frame.code, Code::GET | Code::FETCH);
            let origin = Origin { id: 0, confirmable: true, octets: octets.len(), limit: usize::MAX, safe };
            self.session.handle_request(&mut self.core, now, origin, message);
        } else if frame.code.is_response() && self.session.handle_response(&mut self.core, now, message).is_none() {
            self.core.drop_one(DropReason::UnknownToken);
        }
    }

    /// Writes the messages that the request layer has queued.
    fn flush(&mut self, now: Mono) {
        while let Some(outgoing) = self.core.outgoing.pop_front() {
            // A response that the client does not want leaves an empty message, which nothing requires here.
            if outgoing.code.is_empty() || self.closed.is_some() {
                continue;
            }
            if self.write_outgoing(&outgoing) {
                // A reliable connection delivers each message that it accepts.
                self.session.acknowledged(&mut self.core, now, outgoing.purpose);
            } else {
                self.core.drop_one(DropReason::Unsendable);
                if matches!(outgoing.purpose, Purpose::Response) {
                    self.write_too_large(outgoing.token);
                }
                self.session.failed(&mut self.core, now, outgoing.purpose, Failure::TooLarge);
            }
        }
    }

    fn write_outgoing(&mut self, outgoing: &Outgoing) -> bool {
        let octets = outgoing.body_octets();
        if octets + crate::codec::HEADER_OCTETS_MAX + Token::OCTETS_MAX > self.message_octets {
            return false;
        }
        self.write(outgoing.code, outgoing.token, |writer| outgoing.write_body(writer), octets)
    }

    /// Answers a request whose response the client does not accept, so that the client does not wait for it.
    fn write_too_large(&mut self, token: Token) {
        let text = b"the response is too large";
        self.write(Code::INTERNAL_SERVER_ERROR, token, |writer| writer.payload(text), 1 + text.len());
    }

    fn write(
        &mut self,
        code: Code,
        token: Token,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), crate::codec::WriteError>,
        body_octets: usize,
    ) -> bool {
        let Ok(claimed) = u32::try_from(body_octets) else { return false };
        let mut buffer = vec![0; body_octets + crate::codec::HEADER_OCTETS_MAX + Token::OCTETS_MAX];
        let written = Writer::frame(&mut buffer, code, &token, claimed).and_then(|mut writer| {
            body(&mut writer)?;
            Ok(writer.finish())
        });
        let Ok(octets) = written else { return false };
        buffer.truncate(octets);
        self.core.counters.sent += 1;
        self.core.counters.octets_sent += octets as u64;
        self.output.push_back(buffer.into());
        true
    }

    fn close(&mut self, reason: Closed) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(reason);
        self.session.close(&mut self.core, Failure::Closed, EndReason::Closed);
        for (_, id) in std::mem::take(&mut self.pings) {
            self.core.events.push_back(Event::Failed { id, failure: Failure::Closed });
        }
    }

    /// Returns the address of the peer.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }
}

/// Returns the sizes of messages to a peer that accepts messages of a number of octets and, if `blocks` is `true`,
/// block-wise transfer. Larger messages than the base carry several blocks each (BERT).
fn sizes(message_octets: usize, blocks: bool) -> Sizes {
    let room = message_octets.saturating_sub(BESIDE_BODY_OCTETS);
    let block = if message_octets > BASE_MESSAGE_OCTETS { BlockSize::BERT } else { BlockSize::at_most(room) };
    let whole = if blocks { room.max(block.octets()) } else { usize::MAX };
    Sizes { whole, block, bert_octets: (room / 1024).max(1) * 1024 }
}
