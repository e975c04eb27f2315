//! The check of a peer's address before large messages (RFC 7252, 11.3; RFC 9175, 2.4).

use bytes::Bytes;
use viaduct_units::Mono;

use super::{Action, Messages, empty};
use crate::codec::{Block, Code, OptionNumber};
use crate::settings::AddressCheck;
use crate::shared::{Core, Origin, Outgoing, Purpose};
use crate::{DropReason, Options};

/// Large responses that wait for the check of the address.
const HELD_MAX: usize = 4;
/// Largest factor between a response and its request, to an address that is not verified.
pub(super) const AMPLIFICATION_MAX: usize = 3;
/// Octets of a response that are always permitted (RFC 9175, 2.4).
const SMALL_OCTETS: usize = 136;
/// Acknowledgements and Resets of no message after which another one verifies no address: an attacker may guess message IDs.
const GUESSES_MAX: u32 = 16;
/// Octets of a body from which a response is a reason to verify the address.
const LARGE_OCTETS: usize = 256;

impl Messages {
    /// Transmits a datagram of at most `least` octets, or one that the address may receive before it is verified. Otherwise sends a ping.
    /// Returns `true` if the datagram was transmitted.
    pub(super) fn transmit_within(&mut self, core: &mut Core, now: Mono, datagram: &Bytes, least: usize) -> bool {
        if datagram.len() > self.allowance(core).max(least) {
            core.drop_one(DropReason::Unverified);
            self.verify_soon(core, now);
            return false;
        }
        self.unverified.1 = self.unverified.1.saturating_add(datagram.len());
        core.transmit(self.address, datagram.clone());
        true
    }

    /// Returns the octets to which the response to a request of a number of octets is cut.
    pub(in crate::endpoint) fn block_limit(&self, core: &Core, octets: usize) -> usize {
        let cut = core.settings.address_check == AddressCheck::SmallBlocks;
        if cut { self.response_limit(core, octets) } else { usize::MAX }
    }

    /// Returns the octets that the response to a request of a number of octets may have.
    pub(super) fn response_limit(&self, core: &Core, octets: usize) -> usize {
        let least = octets.saturating_mul(AMPLIFICATION_MAX);
        match core.settings.address_check {
            _ if self.verified => usize::MAX,
            AddressCheck::Off => usize::MAX,
            AddressCheck::Ping | AddressCheck::Echo => least.max(SMALL_OCTETS),
            AddressCheck::SmallBlocks => self.allowance(core).max(least).max(SMALL_OCTETS),
        }
    }

    /// Returns the octets that the address may receive before it is verified.
    fn allowance(&self, core: &Core) -> usize {
        if self.verified || core.settings.address_check == AddressCheck::Off {
            return usize::MAX;
        }
        let (received, sent) = self.unverified;
        let allowed = received.saturating_mul(AMPLIFICATION_MAX).saturating_add(core.settings.limits.unverified_octets);
        allowed.saturating_sub(sent)
    }

    /// Sends a ping, so that the address is verified when further messages follow.
    pub(super) fn verify_soon(&mut self, core: &mut Core, now: Mono) {
        if !self.verified && !self.checking {
            self.checking = true;
            self.transmit(core, now, empty(Purpose::Verification));
        }
    }

    /// Answers a request whose response is larger than the address may receive: with an Echo option, or after a ping.
    pub(super) fn check_address(
        &mut self,
        core: &mut Core,
        now: Mono,
        origin: Origin,
        mut outgoing: Outgoing,
    ) -> Action {
        if core.settings.address_check == AddressCheck::Echo && origin.safe {
            let value = self.echo.get_or_insert_with(|| echo_value(core)).clone();
            outgoing.code = Code::UNAUTHORIZED;
            outgoing.options = Options::new();
            outgoing.options.add(OptionNumber::ECHO, value);
            outgoing.payload = Bytes::new();
            return self.reply(core, now, Origin { octets: usize::MAX / 4, ..origin }, outgoing);
        }
        if origin.confirmable && self.received.is_open(origin.id) {
            self.acknowledge(core, origin.id);
        }
        if self.held.len() >= HELD_MAX {
            core.drop_one(DropReason::Unverified);
            return Action::None;
        }
        self.held.push_back(outgoing);
        if std::mem::replace(&mut self.checking, true) {
            return Action::None;
        }
        self.send(core, now, empty(Purpose::Verification))
    }

    /// Marks the address as verified, and queues the responses that waited for it.
    pub(super) fn verify(&mut self, core: &mut Core) {
        self.verified = true;
        core.outgoing.extend(self.held.drain(..));
    }

    /// Marks the address as verified by a message ID of this endpoint, unless too many others were tried before.
    pub(super) fn verify_by_id(&mut self, core: &mut Core) {
        if self.verified || self.guesses < GUESSES_MAX {
            return self.verify(core);
        }
        self.held.drain(..).for_each(|_| core.drop_one(DropReason::Unverified));
    }

    /// Counts an acknowledgement or Reset of no message.
    pub(in crate::endpoint) fn unmatched(&mut self, core: &mut Core) {
        core.drop_one(DropReason::Unmatched);
        self.guesses = self.guesses.saturating_add(u32::from(!self.verified));
    }

    pub(in crate::endpoint) fn check_echo(&mut self, value: Option<&Bytes>) {
        self.verified |= value.is_some() && value == self.echo.as_ref();
    }
}

/// Returns `true` for a response that is a reason to verify the address: a large one, or a part of a transfer in blocks.
pub(super) fn is_large(outgoing: &Outgoing) -> bool {
    let options = &outgoing.options;
    let block = options.get(OptionNumber::BLOCK2).and_then(|value| Block::decode(value));
    outgoing.payload.len() >= LARGE_OCTETS || outgoing.code == Code::CONTINUE || block.is_some_and(|block| block.more)
}

fn echo_value(core: &mut Core) -> Bytes {
    Bytes::copy_from_slice(&core.random.next_u64().to_be_bytes())
}
