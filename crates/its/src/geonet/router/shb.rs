//! Single-hop broadcast, EN 302 636-4-1, clause 10.3.10.

use viaduct_units::Mono;

use super::{
    Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    geonet::{HeaderType, ShbHeader},
    send_error::SendError,
};

impl Router {
    /// Sends a packet (source operations, 10.3.10.2).
    pub(super) fn send_shb(&mut self, now: Mono, request: &GnRequest) -> Result<(), SendError> {
        let source = self.position_to_send()?;
        let mut octets = self.begin_packet(HeaderType::SingleHopBroadcast, 1, request);
        ShbHeader { source, media_dependent: [0; 4] }.write(&mut octets);
        octets.extend_from_slice(&request.payload);
        self.emit(now, Pdu::own(octets, now, request, None), Route::Broadcast)?;
        self.restart_beacon_timer(now);
        Ok(())
    }
}
