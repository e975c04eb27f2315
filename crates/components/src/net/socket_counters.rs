//! The counters of a UDP socket.

use viaduct_node::Context;

use super::udp_socket::{UdpSocket, UnsentReason};
use crate::machine_counters::MachineCounters;

/// Opens the counters of a component's socket.
pub(crate) fn socket_counters<C: Send + 'static>(context: &Context<C>) -> MachineCounters<UdpSocket> {
    MachineCounters::new(context, |totals| {
        totals.one("datagrams_sent", |socket: &UdpSocket| socket.counters().sent);
        totals.one("datagram_octets_sent", |socket| socket.counters().sent_octets);
        totals.one("datagrams_received", |socket| socket.counters().received);
        totals.one("datagram_octets_received", |socket| socket.counters().received_octets);
        totals.each("datagrams_unsent", &UnsentReason::ALL, UnsentReason::label, |socket, reason| {
            socket.counters().unsent(reason)
        });
        totals.each(
            "datagrams_dropped",
            &["too_long"],
            |reason| reason,
            |socket, _| socket.counters().received_too_long,
        );
        totals.each("datagrams_dropped", &["kernel"], |reason| reason, |socket, _| socket.counters().kernel_drops);
        totals.one("delivery_errors", |socket| socket.counters().reported_errors);
    })
}
