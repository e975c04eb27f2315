//! Advertisement and discovery of the gateway (6.1).

use std::net::SocketAddr;

use viaduct_units::Mono;

use super::{Gateway, GatewaySettings};
use crate::{Destination, Peer, codec::Packet};

/// Times of ADVERTISE and GWINFO.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    /// Time of the next ADVERTISE, or `None` before the first one.
    advertise: Option<Mono>,
    /// The GWINFO that is to be sent. One answers all SEARCHGW that arrive until then.
    gwinfo: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    due: Mono,
    radius: u8,
    reply_to: SocketAddr,
}

impl Discovery {
    /// Returns the time of the next message. The first ADVERTISE is due at once.
    pub(super) fn due(&self, settings: &GatewaySettings) -> Option<Mono> {
        let advertise = settings.advertise.map(|_| self.advertise.unwrap_or_default());
        [advertise, self.gwinfo.map(|answer| answer.due)].into_iter().flatten().min()
    }
}

impl Gateway {
    /// Sends ADVERTISE and GWINFO if they are due.
    pub(super) fn discover(&mut self, now: Mono) {
        let gateway = self.settings.gateway_id;
        if let Some(interval) = self.settings.advertise
            && self.discovery.advertise.is_none_or(|due| due <= now)
        {
            self.discovery.advertise = Some(now.plus(interval));
            let duration = u16::try_from(interval.as_secs()).unwrap_or(u16::MAX);
            let to = Destination::Broadcast { radius: 0, reply_to: None };
            self.out.broadcast(to, &Packet::Advertise { gateway, duration });
        }
        if let Some(answer) = self.discovery.gwinfo.take_if(|answer| answer.due <= now) {
            let to = Destination::Broadcast { radius: answer.radius, reply_to: Some(answer.reply_to) };
            self.out.broadcast(to, &Packet::GwInfo { gateway, address: &[] });
        }
    }

    /// Processes SEARCHGW: GWINFO follows after a random delay, so that the answers of several gateways do not collide.
    pub(super) fn handle_search(&mut self, now: Mono, peer: &Peer, radius: u8) {
        if peer.node.is_some() {
            let answer = Packet::GwInfo { gateway: self.settings.gateway_id, address: &[] };
            return self.send_to_stranger(now, peer, &answer);
        }
        if self.discovery.gwinfo.is_none() && self.strangers.admit(now, peer.address.ip()) {
            let due = now.plus(self.random.duration_up_to(self.settings.gwinfo_delay_max));
            self.discovery.gwinfo = Some(Answer { due, radius, reply_to: peer.address });
        }
    }
}
