//! Bodies of own requests and of their responses in blocks (RFC 7959, 2.4 and 2.5).

use bytes::Bytes;

use super::{Download, Pending, Step};
use crate::blocks::{JoinError, Joined, cut};
use crate::codec::{Block, BlockSize, Code, OptionNumber};
use crate::message::Inbound;
use crate::shared::Core;
use crate::shared::Sizes;
use crate::{Failure, Options, Request, Response};

/// Returns the first block of a request whose body needs several, or `None`.
pub(super) fn first_block(core: &Core, request: &Request) -> Option<Block> {
    let own = request.options.contains(OptionNumber::BLOCK1);
    let large = request.payload.len() > core.sizes.whole;
    (!own && large).then_some(Block { number: 0, more: true, size: core.sizes.block })
}

/// Adds the options of the block that is in flight, and returns its payload.
pub(super) fn add_upload(pending: &Pending, sizes: &Sizes, options: &mut Options) -> Bytes {
    let body = &pending.request.payload;
    let Some(block) = pending.upload else { return body.clone() };
    let octets = sizes.octets(block.size);
    let Some((block, payload)) = cut(body, block.number, block.size, octets) else { return Bytes::new() };
    options.set_uint(OptionNumber::BLOCK1, block.value());
    if block.number == 0 {
        options.set_uint(OptionNumber::SIZE1, u32::try_from(body.len()).unwrap_or(u32::MAX));
    }
    payload
}

/// Processes the response to a block of the request. Returns `None` if it is the response to the whole request.
pub(super) fn continue_upload(pending: &mut Pending, sizes: &Sizes, message: &Inbound) -> Option<Step> {
    let upload = pending.upload?;
    let confirmed = message.options.get(OptionNumber::BLOCK1).and_then(|value| Block::decode(value));
    match (message.code, confirmed) {
        (Code::CONTINUE, Some(confirmed)) if confirmed.number == upload.number => {
            // The server may ask for smaller blocks (RFC 7959, 2.5).
            let size = upload.size.min(confirmed.size);
            let sent = upload.offset() + sizes.octets(upload.size);
            // The server asks for more, although it has the whole body.
            if sent >= pending.request.payload.len() {
                return Some(Step::Fail(Failure::Blocks));
            }
            let number = u32::try_from(sent / size.octets()).unwrap_or(u32::MAX);
            pending.upload = Some(Block { number, more: true, size });
            Some(Step::Send)
        }
        (Code::CONTINUE, _) => Some(Step::Ignore),
        (Code::REQUEST_ENTITY_TOO_LARGE, Some(wanted)) if wanted.size < upload.size && upload.number == 0 => {
            pending.upload = Some(Block { number: 0, more: true, size: wanted.size });
            Some(Step::Send)
        }
        (Code::REQUEST_ENTITY_INCOMPLETE, _) if upload.number > 0 && pending.restarts < 1 => {
            pending.restarts += 1;
            pending.upload = Some(Block { number: 0, ..upload });
            Some(Step::Send)
        }
        _ => {
            pending.upload = None;
            None
        }
    }
}

/// Kinds of responses in a transfer in blocks.
pub(super) enum Taken {
    /// The response with its whole body.
    Whole(Response),
    /// A block, after which another one must be requested.
    Block,
    /// A block that is not the one that was requested last.
    Stale,
}

/// Joins the block of a response.
pub(super) fn take_block(pending: &mut Pending, core: &mut Core, message: Inbound) -> Result<Taken, Failure> {
    let response = Response { code: message.code, options: message.options, payload: message.payload };
    let block = response.options.get(OptionNumber::BLOCK2).and_then(|value| Block::decode(value));
    // A request for one certain block is answered with that block.
    let asked_for_one = pending.request.options.contains(OptionNumber::BLOCK2);
    let block = match block {
        Some(block) if response.code.is_success() && !asked_for_one => block,
        _ => return Ok(Taken::Whole(response)),
    };
    if block.size == BlockSize::BERT && !core.reliable {
        return Err(Failure::Blocks);
    }
    if block.number == 0 && !block.more {
        return Ok(Taken::Whole(response));
    }
    if pending.download.as_ref().is_some_and(|download| download.body.octets() != block.offset()) {
        return Ok(Taken::Stale);
    }
    let mut download = match pending.download.take() {
        Some(download) => download.checked(&response)?,
        None => begin(pending, core, &response)?,
    };
    let last = download.body.join(block, &response.payload).map_err(|error| match error {
        JoinError::TooLarge | JoinError::Exhausted => Failure::TooLarge,
        JoinError::Gap | JoinError::Size => Failure::Blocks,
    })?;
    if last {
        return Ok(Taken::Whole(Response { payload: download.body.finish(), ..download.first }));
    }
    let number = u32::try_from(download.body.octets() / block.size.octets()).unwrap_or(u32::MAX);
    download.next = Block { number, more: false, size: block.size };
    pending.download = Some(download);
    Ok(Taken::Block)
}

fn begin(pending: &mut Pending, core: &mut Core, response: &Response) -> Result<Download, Failure> {
    let body = Joined::new(&core.totals.bodies, core.settings.limits.body_octets);
    let mut first = Response { payload: Bytes::new(), ..response.clone() };
    first.options.remove(OptionNumber::BLOCK2);
    first.options.remove(OptionNumber::SIZE2);
    if pending.watch.is_some() {
        pending.fetch_token.get_or_insert_with(|| core.token());
    }
    let next = Block { number: 0, more: false, size: core.sizes.block };
    Ok(Download { first, body, next })
}

impl Download {
    /// Returns the download, or fails if the block belongs to another representation (RFC 7959, 2.4).
    fn checked(self, response: &Response) -> Result<Self, Failure> {
        let etag = |options: &Options| options.get(OptionNumber::ETAG).cloned();
        let same = etag(&self.first.options) == etag(&response.options) && self.first.code == response.code;
        if same { Ok(self) } else { Err(Failure::Blocks) }
    }
}
