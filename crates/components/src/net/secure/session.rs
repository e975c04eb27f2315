//! One session: a key for each direction, the own counter and the window of received counters.

use bytes::{BufMut as _, BytesMut};
use viaduct_units::Mono;

use super::counters::DropReason;
use super::limits::{OVERHEAD_OCTETS, Timing};
use super::noise::Transport;
use super::replay::ReplayWindow;
use super::wire::{CIPHER_TAG, DATA_HEADER, put_data_header};

/// A session with a peer.
pub(super) struct Session {
    /// The identifier that this end has chosen; the peer writes it into its data.
    pub(super) own_identifier: u32,
    /// The identifier that the peer has chosen.
    peer_identifier: u32,
    transport: Transport,
    /// Counter of the next datagram to send.
    next_counter: u64,
    received: ReplayWindow,
    /// Time at which the keys were agreed.
    pub(super) since: Mono,
    /// This end has started the handshake.
    pub(super) is_initiator: bool,
}

impl Session {
    pub(super) fn new(
        now: Mono,
        own_identifier: u32,
        peer_identifier: u32,
        transport: Transport,
        is_initiator: bool,
    ) -> Self {
        let received = ReplayWindow::default();
        Self { own_identifier, peer_identifier, transport, next_counter: 0, received, since: now, is_initiator }
    }

    /// Returns `true` if the session may no longer be used.
    pub(super) fn is_expired(&self, now: Mono, timing: &Timing) -> bool {
        now >= self.since.plus(timing.expire_after)
    }

    /// Returns the number of datagrams in the direction that has more of them.
    pub(super) fn datagrams(&self) -> u64 {
        self.next_counter.max(self.received.next())
    }

    /// Appends the datagram of a payload. Returns `false`, and leaves the buffer as it was, if the session has reached its
    /// limit.
    pub(super) fn seal(&mut self, payload: &[u8], out: &mut BytesMut, timing: &Timing) -> bool {
        if self.next_counter >= timing.expire_after_datagrams {
            return false;
        }
        let start = out.len();
        out.reserve(OVERHEAD_OCTETS + payload.len());
        put_data_header(out, self.peer_identifier, self.next_counter);
        out.put_bytes(0, payload.len() + CIPHER_TAG);
        let ciphertext = out.get_mut(start + DATA_HEADER..).unwrap_or_default();
        let is_sealed = self.transport.write_message(self.next_counter, payload, ciphertext).is_ok();
        if !is_sealed {
            out.truncate(start);
        }
        // A counter is used once, even if sealing has failed.
        self.next_counter += 1;
        is_sealed
    }

    /// Opens a ciphertext into a buffer, which then contains the payload. Returns `true` if the counter is the highest one.
    ///
    /// # Errors
    /// The reason to drop the datagram. The buffer is then empty.
    pub(super) fn open(
        &mut self,
        counter: u64,
        sealed: &[u8],
        out: &mut BytesMut,
        timing: &Timing,
    ) -> Result<bool, DropReason> {
        if counter >= timing.expire_after_datagrams {
            return Err(DropReason::CounterLimit);
        }
        self.received.check(counter)?;
        out.resize(sealed.len(), 0);
        let opened = self.transport.read_message(counter, sealed, out);
        out.truncate(opened.as_ref().copied().unwrap_or(0));
        opened.map_err(|_| DropReason::NotAuthentic)?;
        Ok(self.received.accept(counter))
    }
}
