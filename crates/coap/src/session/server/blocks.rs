//! Bodies of requests and responses in blocks (RFC 7959, 2.5 and 2.4).

use std::collections::VecDeque;

use bytes::Bytes;
use viaduct_units::Mono;

use super::Exchange;
use crate::blocks::{JoinError, Joined, cut};
use crate::budget::Share;
use crate::codec::{Block, BlockSize, Code, OptionNumber};
use crate::message::Inbound;
use crate::shared::Core;
use crate::{Request, Response};

/// Octets of a message beside a block of its body and the owner's options: header, token, ETag, Block2, Size2, marker.
const BESIDE_BLOCK_OCTETS: usize = 12 + 9 + 5 + 5 + 1;

/// Identity of a request of a peer without its blocks: a hash of the method and the options that are part of a cache key
/// (RFC 7959, 2.4; RFC 9175, 3.3), and of the body of a FETCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn of(message: &Inbound) -> Self {
        let mut hash = Fnv::new().add(&[message.code.octet()]);
        for (number, value) in message.options.iter() {
            let per_block = matches!(
                number,
                OptionNumber::BLOCK1
                    | OptionNumber::BLOCK2
                    | OptionNumber::Q_BLOCK1
                    | OptionNumber::Q_BLOCK2
                    | OptionNumber::OBSERVE
            );
            if per_block || number.is_no_cache_key() || number == OptionNumber::ETAG {
                continue;
            }
            hash = hash.add(&number.0.to_be_bytes()).add(&value.len().to_be_bytes()).add(value);
        }
        if message.code == Code::FETCH && !message.options.contains(OptionNumber::BLOCK1) {
            hash = hash.add(&message.payload);
        }
        Self(hash.0)
    }
}

/// The hash FNV-1a.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn add(self, octets: &[u8]) -> Self {
        Self(octets.iter().fold(self.0, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01B3)))
    }
}

/// Bodies of requests of which the first blocks have arrived, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Uploads(VecDeque<Upload>);

#[derive(Debug)]
struct Upload {
    key: Key,
    body: Joined,
    expires: Mono,
}

impl Uploads {
    /// Joins a block. Returns the body if the block is the last one, or the answer to the block.
    pub(super) fn join(
        &mut self,
        core: &Core,
        expires: Mono,
        key: Key,
        block: Block,
        request: &Request,
    ) -> Result<Bytes, Response> {
        let limit = core.settings.limits.body_octets;
        let claimed = request.options.uint(OptionNumber::SIZE1).map_or(0, |size| size as usize);
        let before = self.0.iter().position(|upload| upload.key == key).and_then(|index| self.0.remove(index));
        let mut upload =
            if block.number == 0 { self.begin(core, key, expires) } else { before.ok_or_else(|| incomplete(block))? };
        if claimed > limit {
            return Err(too_large(limit, Some(block)));
        }
        match upload.body.join(block, &request.payload) {
            Ok(true) => Ok(upload.body.finish()),
            Ok(false) => {
                upload.expires = expires;
                self.0.push_back(upload);
                Err(proceed(core, block))
            }
            Err(JoinError::Gap) => {
                self.0.push_back(upload);
                Err(incomplete(block))
            }
            Err(JoinError::Size) => Err(Response::new(Code::BAD_REQUEST)),
            Err(JoinError::TooLarge) => Err(too_large(limit, Some(block))),
            Err(JoinError::Exhausted) => Err(exhausted()),
        }
    }

    fn begin(&mut self, core: &Core, key: Key, expires: Mono) -> Upload {
        let limits = &core.settings.limits;
        while self.0.len() >= limits.bodies_per_peer.max(1) {
            self.0.pop_front();
        }
        let body = Joined::new(&core.totals.bodies, limits.body_octets);
        Upload { key, body, expires }
    }

    /// Drops the bodies that have expired. Returns the time at which the next one does.
    pub(super) fn expire(&mut self, now: Mono) -> Option<Mono> {
        self.0.retain(|upload| upload.expires > now);
        self.0.iter().map(|upload| upload.expires).min()
    }
}

/// Returns the answer to a block that is not the last one. It asks for smaller blocks if the settings do.
fn proceed(core: &Core, block: Block) -> Response {
    let block = Block { size: block.size.min(core.sizes.block), ..block };
    Response::new(Code::CONTINUE).with_uint(OptionNumber::BLOCK1, block.value())
}

pub(super) fn exhausted() -> Response {
    Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(10)
}

fn incomplete(block: Block) -> Response {
    let block = Block { more: false, ..block };
    Response::new(Code::REQUEST_ENTITY_INCOMPLETE).with_uint(OptionNumber::BLOCK1, block.value())
}

pub(super) fn too_large(limit: usize, block: Option<Block>) -> Response {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE).with_uint(OptionNumber::SIZE1, limit);
    match block {
        Some(block) => response.with_uint(OptionNumber::BLOCK1, Block { more: false, ..block }.value()),
        None => response,
    }
}

/// Bodies of responses, from which the further blocks are served, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Bodies(VecDeque<Body>);

#[derive(Debug)]
struct Body {
    key: Key,
    response: Response,
    expires: Mono,
    _share: Share,
}

impl Bodies {
    /// Reduces a response to the block that the request asks for, or to the first block, and stores its body. Returns
    /// `true` if the body was stored.
    pub(super) fn first_block(
        &mut self,
        core: &Core,
        expires: Mono,
        key: Key,
        asked: Option<Block>,
        limit: usize,
        response: &mut Response,
    ) -> bool {
        let size = permitted_size(core, limit, response);
        let asked = match asked {
            Some(asked) => Some(asked.reduced(size)),
            None if size < core.sizes.block => Some(Block { number: 0, more: false, size }),
            None => None,
        };
        let block = asked.unwrap_or(Block { number: 0, more: false, size: core.sizes.block });
        let whole = if asked.is_some() { core.sizes.octets(block.size) } else { core.sizes.whole };
        let fits = response.payload.len() <= whole && block.number == 0;
        if (fits && asked.is_none()) || response.options.contains(OptionNumber::BLOCK2) {
            return false;
        }
        let stored = !fits && self.keep(core, expires, key, response);
        if !reduce(core, response, block) {
            *response = Response::diagnostic(Code::BAD_REQUEST, "the body ends before the block");
        }
        stored
    }

    /// Stores a response, with an ETag. Returns `false` if all bodies together are too large.
    pub(super) fn keep(&mut self, core: &Core, expires: Mono, key: Key, response: &mut Response) -> bool {
        if !response.options.contains(OptionNumber::ETAG) {
            let etag = Fnv::new().add(&response.payload).0.to_be_bytes();
            response.options.add(OptionNumber::ETAG, Bytes::copy_from_slice(&etag));
        }
        self.0.retain(|body| body.key != key);
        while self.0.len() >= core.settings.limits.bodies_per_peer.max(1) {
            self.0.pop_front();
        }
        let Some(share) = core.totals.bodies.take(response.payload.len()) else { return false };
        let mut response = response.clone();
        response.options.remove(OptionNumber::OBSERVE);
        self.0.push_back(Body { key, response, expires, _share: share });
        true
    }

    /// Returns a stored response.
    pub(super) fn stored(&mut self, core: &Core, now: Mono, key: Key) -> Option<Response> {
        let body = self.0.iter_mut().find(|body| body.key == key)?;
        body.expires = now.plus(core.settings.limits.body_lifetime);
        Some(body.response.clone())
    }

    /// Returns a block after the first one, or `None` if the request asks for another one or the body is not stored.
    pub(super) fn further_block(&mut self, core: &Core, now: Mono, exchange: &Exchange) -> Option<Response> {
        let block = exchange.block2.filter(|block| block.number > 0)?;
        let Some(mut response) = self.stored(core, now, exchange.key) else {
            let safe = matches!(exchange.method, Code::GET | Code::FETCH);
            return (!safe).then(|| Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        };
        let block = block.reduced(permitted_size(core, exchange.origin.limit, &response));
        if !reduce(core, &mut response, block) {
            return Some(Response::diagnostic(Code::BAD_REQUEST, "the body ends before the block"));
        }
        Some(response)
    }

    /// Drops the bodies that have expired. Returns the time at which the next one does.
    pub(super) fn expire(&mut self, now: Mono) -> Option<Mono> {
        self.0.retain(|body| body.expires > now);
        self.0.iter().map(|body| body.expires).min()
    }
}

/// Returns the size of the blocks of a response whose messages may have a number of octets.
fn permitted_size(core: &Core, limit: usize, response: &Response) -> BlockSize {
    let options: usize = response.options.iter().map(|(_, value)| value.len() + 2).sum();
    let beside = BESIDE_BLOCK_OCTETS + options;
    if limit == usize::MAX || response.payload.len() + beside <= limit {
        return core.sizes.block;
    }
    core.sizes.block.min(BlockSize::at_most(limit.saturating_sub(beside)))
}

/// Reduces a response to a block. Returns `false` if its body ends before the block.
fn reduce(core: &Core, response: &mut Response, block: Block) -> bool {
    let octets = response.payload.len();
    let Some((block, payload)) = cut(&response.payload, block.number, block.size, core.sizes.octets(block.size)) else {
        return false;
    };
    response.options.add_uint(OptionNumber::BLOCK2, block.value());
    if block.number == 0 {
        response.options.add_uint(OptionNumber::SIZE2, u32::try_from(octets).unwrap_or(u32::MAX));
    }
    response.payload = payload;
    true
}
