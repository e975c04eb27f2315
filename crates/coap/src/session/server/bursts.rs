//! Q-Block: bodies in sets of blocks without an answer to each (RFC 9177).

use std::collections::VecDeque;
use std::time::Duration;

use viaduct_units::Mono;

use super::super::gathered::{Gathered, SET, set_end, write_missing};
use super::blocks::{Bodies, Key, exhausted, too_large};
use super::{Exchange, Server};
use crate::blocks::JoinError;
use crate::codec::{Block, Code, ContentFormat, OptionNumber};
use crate::shared::{Core, Origin};
use crate::{Request, Response};

/// Time after the last block until the missing ones are asked for (NON_RECEIVE_TIMEOUT), which doubles each time.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(4);
/// Number of times that missing blocks are asked for after a timeout (NON_MAX_RETRANSMIT).
const ASKED_MAX: u32 = 4;

/// Bodies of requests that arrive in sets, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Bursts(VecDeque<Burst>);

#[derive(Debug)]
struct Burst {
    key: Key,
    body: Body,
    /// Latest request, to which the answer belongs.
    latest: Exchange,
    /// Number of timeouts since the last block.
    asked: u32,
    due: Mono,
}

/// Blocks of a request, and what remains of them.
#[derive(Debug)]
enum Body {
    Arriving(Gathered),
    /// The owner has the body. `None` before its answer.
    Passed(Option<Response>),
}

/// Result of a block of a request.
pub(super) enum Arrived {
    /// The body is complete.
    Body(bytes::Bytes),
    /// The answer to a set: the next one may follow, or blocks are missing.
    Answer(Response),
    /// Further blocks of the set follow.
    Nothing,
}

impl Bursts {
    /// Adds a block.
    pub(super) fn add(
        &mut self,
        core: &Core,
        now: Mono,
        exchange: &Exchange,
        block: Block,
        request: &Request,
    ) -> Arrived {
        let limits = &core.settings.limits;
        let known = self.0.iter().position(|burst| burst.key == exchange.key).and_then(|index| self.0.remove(index));
        while self.0.len() >= limits.bodies_per_peer.max(1) {
            self.0.pop_front();
        }
        let mut burst = known.unwrap_or_else(|| Burst {
            key: exchange.key,
            body: Body::Arriving(Gathered::new(&core.totals.bodies, limits.body_octets, block.size)),
            latest: exchange.without_body(),
            asked: 0,
            due: now,
        });
        let Body::Arriving(body) = &mut burst.body else {
            // The response was lost: a block sent again asks for it.
            let Body::Passed(response) = &burst.body else { return Arrived::Nothing };
            let answer = response.clone().map_or(Arrived::Nothing, Arrived::Answer);
            self.0.push_back(burst);
            return answer;
        };
        let again = body.contains(block.number);
        match body.add(block, &request.payload) {
            Ok(()) => {}
            Err(JoinError::TooLarge) => return Arrived::Answer(too_large(limits.body_octets, None)),
            Err(JoinError::Exhausted) => return Arrived::Answer(exhausted()),
            Err(JoinError::Gap | JoinError::Size) => return Arrived::Answer(Response::new(Code::BAD_REQUEST)),
        }
        if body.is_complete() {
            let Body::Arriving(body) = std::mem::replace(&mut burst.body, Body::Passed(None)) else {
                return Arrived::Nothing;
            };
            (burst.asked, burst.due) = (ASKED_MAX, now.plus(limits.body_lifetime));
            self.0.push_back(burst);
            return Arrived::Body(body.finish());
        }
        let arrived = answer(body, block, again);
        (burst.latest, burst.asked, burst.due) = (exchange.without_body(), 0, now.plus(RECEIVE_TIMEOUT));
        self.0.push_back(burst);
        arrived
    }

    /// Asks for missing blocks after a timeout. Returns the requests to answer, with the answers.
    pub(super) fn overdue(&mut self, now: Mono) -> Vec<(Exchange, Response)> {
        self.0.retain(|burst| burst.due > now || burst.asked < ASKED_MAX);
        let due = self.0.iter_mut().filter(|burst| burst.due <= now);
        due.filter_map(|burst| {
            burst.asked += 1;
            burst.due = now.plus(RECEIVE_TIMEOUT * 2_u32.pow(burst.asked));
            let Body::Arriving(body) = &burst.body else { return None };
            let end = body.highest().map_or(0, |highest| highest.saturating_add(1));
            Some((burst.latest.without_body(), missing(&body.missing(end))))
        })
        .collect()
    }

    /// Stores the response to a body that arrived in sets.
    pub(super) fn answered(&mut self, key: Key, response: &Response) {
        if let Some(burst) = self.0.iter_mut().find(|burst| burst.key == key) {
            burst.body = Body::Passed(Some(response.clone()));
        }
    }

    pub(super) fn next(&self) -> Option<Mono> {
        self.0.iter().map(|burst| burst.due).min()
    }
}

/// Answers the last block of a set, the last one that was missing, and one that was sent `again` because an answer was lost.
fn answer(body: &Gathered, block: Block, again: bool) -> Arrived {
    let highest = body.highest().unwrap_or(0);
    let absent = body.missing(highest);
    let ends = again || block.number == set_end(block.number) || !block.more;
    if !absent.is_empty() {
        return if ends { Arrived::Answer(missing(&absent)) } else { Arrived::Nothing };
    }
    if highest != set_end(highest) {
        return Arrived::Nothing;
    }
    let block = Block { number: highest, more: true, size: block.size };
    Arrived::Answer(Response::new(Code::CONTINUE).with_uint(OptionNumber::Q_BLOCK1, block.value()))
}

/// Returns the request for missing blocks.
fn missing(numbers: &[u32]) -> Response {
    Response::new(Code::REQUEST_ENTITY_INCOMPLETE).with_payload(ContentFormat::MISSING_BLOCKS, write_missing(numbers))
}

impl Exchange {
    /// Returns the parts that are needed to answer the request.
    fn without_body(&self) -> Self {
        Self { etags: Vec::new(), block1: None, observe: None, ..*self }
    }
}

impl Server {
    /// Answers the requests whose blocks are overdue.
    /// Returns the time of the next timeout.
    pub(super) fn ask_for_missing(&mut self, core: &mut Core, now: Mono) -> Option<Mono> {
        for (mut exchange, response) in self.bursts.overdue(now) {
            exchange.reply(core, response);
        }
        self.bursts.next()
    }

    /// Sends the blocks of a stored body that a request with Q-Block2 asks for. Returns `false` if none is stored.
    pub(super) fn send_set(&mut self, core: &mut Core, now: Mono, exchange: &mut Exchange, request: &Request) -> bool {
        let asked = request.options.all(OptionNumber::Q_BLOCK2).filter_map(|value| Block::decode(value));
        let asked: Vec<Block> = asked.take(SET as usize).collect();
        if asked.first().is_none_or(|block| block.number == 0 && block.more) {
            return false;
        }
        let mut sent = false;
        for block in asked {
            sent |= self.send_range(core, now, exchange, block);
        }
        sent
    }

    /// Sends a block of a stored body or, if its bit `M` is set, all blocks from there to the end of the set.
    pub(super) fn send_range(&mut self, core: &mut Core, now: Mono, exchange: &mut Exchange, first: Block) -> bool {
        let end = if first.more { set_end(first.number) } else { first.number };
        let mut sent = false;
        for number in first.number..=end {
            let Some(response) = self.bodies.block(core, now, exchange.key, Block { number, ..first }) else { break };
            exchange.reply(core, response);
            // The further blocks are non-confirmable messages.
            exchange.origin = Origin { confirmable: false, ..exchange.origin };
            sent = true;
        }
        sent
    }
}

impl Bodies {
    /// Returns a block of a stored body with the option Q-Block2, or `None`.
    fn block(&mut self, core: &Core, now: Mono, key: Key, block: Block) -> Option<Response> {
        let mut response = self.stored(core, now, key)?;
        let octets = response.payload.len();
        let size = block.size.min(core.sizes.block);
        let (block, payload) = crate::blocks::cut(&response.payload, block.number, size, size.octets())?;
        response.options.add_uint(OptionNumber::Q_BLOCK2, block.value());
        response.options.add_uint(OptionNumber::SIZE2, u32::try_from(octets).unwrap_or(u32::MAX));
        response.payload = payload;
        Some(response)
    }
}
