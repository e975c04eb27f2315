//! Q-Block: bodies in sets of non-confirmable messages (RFC 9177).

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use super::super::gathered::{Gathered, SET, read_missing, set_end};
use super::{Client, Pending, Step, Timer, set_timer};
use crate::blocks::{JoinError, cut};
use crate::codec::{Block, Code, ContentFormat, OptionNumber, Token};
use crate::message::Inbound;
use crate::shared::{Core, Outgoing, Purpose, Route};
use crate::{Failure, Request, Response};

/// Knowledge about the support of Q-Block by a peer.
#[derive(Debug, Default)]
pub(super) enum Support {
    #[default]
    Unknown,
    /// The probe is in flight. Requests wait for it.
    Probing {
        probe: u32,
        held: Vec<u32>,
    },
    Yes,
    No,
}

/// The state of a request with Q-Block.
#[derive(Debug)]
pub(super) enum Burst {
    Upload {
        /// Blocks that were sent last.
        sent: Vec<u32>,
        /// Value of Request-Tag.
        tag: u32,
    },
    /// A response, of which no block has arrived.
    Awaited,
    Download {
        /// First response, with the options of the whole.
        first: Response,
        body: Gathered,
        /// Last block that was asked for.
        end: u32,
    },
}

/// Attempts to receive an answer to a set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    count: u32,
    wait: Duration,
    /// Time at which a set was sent, or `None` while further blocks of one arrive.
    at: Option<Mono>,
}

impl Attempts {
    /// Begins anew after an answer. The answer to the first attempt is a measurement of the round trip.
    fn answered(&mut self, core: &mut Core) {
        if self.count == 1 && self.at.is_some() {
            core.measured = self.at;
        }
        *self = Self::default();
    }
}

/// Returns the request that shows if a peer supports Q-Block.
pub(super) fn probe(core: &Core) -> Request {
    let block = Block { number: 0, more: false, size: core.sizes.block };
    Request::get(".well-known/core").with_uint(OptionNumber::Q_BLOCK2, block.value())
}

/// Returns `true` if the answer to the probe shows that the peer supports Q-Block. The option is critical, so that peers without
/// Q-Block should answer 4.02. Some of them ignore the option instead, and libcoap repeats it in its 4.02.
fn shows_support(answer: &Response) -> bool {
    answer.code != Code::BAD_OPTION && answer.options.contains(OptionNumber::Q_BLOCK2)
}

impl Client {
    /// Returns `true` if a request must wait for the probe of the peer, which is sent if it was not yet.
    pub(super) fn waits_for_probe(&mut self, core: &mut Core, now: Mono, number: u32) -> bool {
        if !core.settings.q_block || core.reliable {
            return false;
        }
        match &mut self.support {
            Support::Yes | Support::No => false,
            Support::Probing { held, .. } => {
                held.push(number);
                true
            }
            Support::Unknown => {
                let request = probe(core);
                let probe = self.add(core, request, false);
                if let Some(pending) = self.requests.get_mut(&probe) {
                    pending.cancelled = true;
                }
                self.support = Support::Probing { probe, held: vec![number] };
                self.send(core, now, probe);
                true
            }
        }
    }

    /// Processes the end of a request: that of the probe releases the requests that wait for it.
    pub(super) fn take_probe(&mut self, core: &mut Core, now: Mono, number: u32, answer: Option<&Response>) {
        let Support::Probing { probe, held } = &mut self.support else { return };
        if *probe != number {
            return;
        }
        let held = std::mem::take(held);
        let supported = answer.is_some_and(shows_support);
        self.support = if supported { Support::Yes } else { Support::No };
        for number in held {
            self.begin_burst(core, number);
            self.send(core, now, number);
        }
    }

    /// Chooses Q-Block for a request if the peer supports it and the request can use it.
    pub(super) fn begin_burst(&mut self, core: &mut Core, number: u32) {
        let Some(pending) = self.requests.get_mut(&number).filter(|_| matches!(self.support, Support::Yes)) else {
            return;
        };
        if pending.upload.is_some() {
            let tag = (core.random.next_u64() >> 32) as u32;
            let end = pending.last_block(core).min(SET - 1);
            pending.burst = Some(Burst::Upload { sent: (0..=end).collect(), tag });
        } else if matches!(pending.request.method, Code::GET | Code::FETCH) && pending.watch.is_none() {
            let own = [OptionNumber::BLOCK2, OptionNumber::Q_BLOCK2];
            let chosen = own.into_iter().any(|number| pending.request.options.contains(number));
            pending.burst = (!chosen).then_some(Burst::Awaited);
        }
    }

    /// Sends a set of blocks, each with a token of its own, or the request for one.
    pub(super) fn send_burst(&mut self, core: &mut Core, now: Mono, number: u32) {
        self.forget_tokens(number);
        let Some(pending) = self.requests.get(&number) else { return };
        let messages = match &pending.burst {
            Some(Burst::Upload { sent, tag }) => {
                sent.iter().filter_map(|block| pending.block(core, *block, *tag)).collect()
            }
            Some(Burst::Download { body, end, .. }) => vec![pending.ask(core, body, *end)],
            _ => vec![],
        };
        for (code, options, payload) in messages {
            let token = self.new_token(core, number);
            if let Some(pending) = self.requests.get_mut(&number) {
                pending.burst_tokens.push(token);
            }
            let route = Route::Message { confirmable: false };
            core.outgoing.push_back(Outgoing {
                purpose: Purpose::Request(number),
                route,
                code,
                token,
                options,
                payload,
            });
        }
        self.await_burst(core, now, number);
        if let Some(pending) = self.requests.get_mut(&number) {
            pending.attempts.at = Some(now);
        }
    }

    /// Waits for the answer to a set as long as for an acknowledgement.
    pub(super) fn await_burst(&mut self, core: &Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        let profile = &core.settings.retransmission;
        let attempts = &mut pending.attempts;
        attempts.count += 1;
        attempts.wait = if attempts.count == 1 {
            core.wait
        } else {
            profile.next(attempts.count, attempts.wait).unwrap_or(core.wait)
        };
        let at = now.plus(attempts.wait);
        set_timer(&mut self.timers, pending, at, Timer::Burst(number));
    }

    /// Sends the last block of a set again, or the request for missing blocks, after a time without an answer.
    pub(super) fn burst_overdue(&mut self, core: &mut Core, now: Mono, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        if core.settings.retransmission.next(pending.attempts.count, pending.attempts.wait).is_none() {
            return self.failed(core, now, number, Failure::TimedOut);
        }
        if let Some(Burst::Upload { sent, .. }) = &mut pending.burst {
            // The server answers the last block of a set with what is missing.
            sent.drain(..sent.len().saturating_sub(1));
        }
        self.send_burst(core, now, number);
    }

    pub(super) fn forget_tokens(&mut self, number: u32) {
        let Some(pending) = self.requests.get_mut(&number) else { return };
        for token in pending.burst_tokens.drain(..) {
            self.tokens.remove(&token);
        }
    }
}

/// Code, options and payload of a message.
type Parts = (Code, crate::Options, Bytes);

impl Pending {
    fn last_block(&self, core: &Core) -> u32 {
        let blocks = self.request.payload.len().div_ceil(core.sizes.block.octets());
        u32::try_from(blocks).unwrap_or(u32::MAX).saturating_sub(1)
    }

    fn block(&self, core: &Core, number: u32, tag: u32) -> Option<Parts> {
        let size = core.sizes.block;
        let body = &self.request.payload;
        let (block, payload) = cut(body, number, size, size.octets())?;
        let mut options = self.request.options.clone();
        options.set_uint(OptionNumber::Q_BLOCK1, block.value());
        options.set_uint(OptionNumber::SIZE1, u32::try_from(body.len()).unwrap_or(u32::MAX));
        options.add(OptionNumber::REQUEST_TAG, Bytes::copy_from_slice(&tag.to_be_bytes()));
        Some((self.request.method, options, payload))
    }

    /// Returns the request for the missing blocks up to `end`, or for the next set.
    fn ask(&self, core: &Core, body: &Gathered, end: u32) -> Parts {
        let size = core.sizes.block;
        let mut options = self.request.options.clone();
        let missing = body.missing(end);
        let next = Block { number: body.next(), more: true, size };
        if missing.is_empty() || missing.first() == missing.last().map(|last| last.saturating_sub(SET - 1)).as_ref() {
            options.add_uint(OptionNumber::Q_BLOCK2, next.value());
        } else {
            missing.iter().for_each(|number| {
                options.add_uint(OptionNumber::Q_BLOCK2, Block { number: *number, more: false, size }.value());
            });
        }
        let fetch = self.request.method == Code::FETCH;
        (self.request.method, options, if fetch { self.request.payload.clone() } else { Bytes::new() })
    }

    /// Processes a response to a request with Q-Block. Returns `None` if it is the response to the whole request.
    pub(super) fn continue_burst(&mut self, core: &mut Core, message: &Inbound) -> Option<Step> {
        match self.burst {
            Some(Burst::Upload { .. }) => self.continue_upload_burst(core, message),
            Some(Burst::Awaited | Burst::Download { .. }) => self.continue_download_burst(core, message),
            None => None,
        }
    }

    fn continue_upload_burst(&mut self, core: &mut Core, message: &Inbound) -> Option<Step> {
        let last = self.last_block(core);
        let format = message.options.uint(OptionNumber::CONTENT_FORMAT);
        let Some(Burst::Upload { sent, .. }) = &mut self.burst else { return None };
        match message.code {
            Code::CONTINUE => {
                let block = message.options.get(OptionNumber::Q_BLOCK1).and_then(|value| Block::decode(value));
                let next = block.map_or(0, |block| block.number.saturating_add(1));
                if next > last || sent.last().is_some_and(|sent| *sent >= next) {
                    return Some(Step::Ignore);
                }
                *sent = (next..=last.min(set_end(next))).collect();
            }
            Code::REQUEST_ENTITY_INCOMPLETE if format == Some(ContentFormat::MISSING_BLOCKS.0.into()) => {
                let missing: Vec<u32> =
                    read_missing(&message.payload).into_iter().filter(|block| *block <= last).collect();
                if missing.is_empty() {
                    return Some(Step::Fail(Failure::Blocks));
                }
                *sent = missing;
            }
            Code::BAD_OPTION => {
                self.burst = None;
                return Some(Step::Send);
            }
            _ => {
                self.burst = None;
                self.upload = None;
                return None;
            }
        }
        self.attempts.answered(core);
        Some(Step::Burst)
    }

    fn continue_download_burst(&mut self, core: &mut Core, message: &Inbound) -> Option<Step> {
        let block = message.options.get(OptionNumber::Q_BLOCK2).and_then(|value| Block::decode(value));
        let Some(block) = block.filter(|_| message.code.is_success()) else {
            self.burst = None;
            return None;
        };
        if let Some(Burst::Awaited) = self.burst {
            let body = Gathered::new(&core.totals.bodies, core.settings.limits.body_octets, block.size);
            let mut first = Response { code: message.code, options: message.options.clone(), payload: Bytes::new() };
            first.options.remove(OptionNumber::Q_BLOCK2);
            first.options.remove(OptionNumber::SIZE2);
            self.burst = Some(Burst::Download { first, body, end: SET - 1 });
        }
        let Some(Burst::Download { first, body, end }) = &mut self.burst else { return None };
        if first.options.get(OptionNumber::ETAG) != message.options.get(OptionNumber::ETAG) {
            self.burst = Some(Burst::Awaited);
            return Some(self.restart(Failure::Blocks));
        }
        match body.add(block, &message.payload) {
            Ok(()) => {}
            Err(JoinError::TooLarge | JoinError::Exhausted) => return Some(Step::Fail(Failure::TooLarge)),
            Err(JoinError::Gap | JoinError::Size) => return Some(Step::Fail(Failure::Blocks)),
        }
        if body.is_complete() {
            let Some(Burst::Download { first, body, .. }) = self.burst.take() else { return None };
            return Some(self.complete(Response { payload: body.finish(), ..first }));
        }
        self.attempts.answered(core);
        let ends = block.number == *end || !block.more;
        if body.next() > *end {
            *end = set_end(body.next());
            return Some(Step::Burst);
        }
        Some(if ends { Step::Burst } else { Step::Await })
    }
}

/// Returns the option of a request that begins a download, or `None`.
pub(super) fn first_option(core: &Core, pending: &Pending) -> Option<u32> {
    let block = Block { number: 0, more: true, size: core.sizes.block };
    matches!(pending.burst, Some(Burst::Awaited)).then(|| block.value())
}

/// Returns `true` if a message of the request is a set.
pub(super) fn is_burst(pending: &Pending) -> bool {
    matches!(pending.burst, Some(Burst::Upload { .. } | Burst::Download { .. }))
}

/// Tokens of the messages of a set.
pub(super) type Tokens = Vec<Token>;
