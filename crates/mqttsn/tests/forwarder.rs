//! A forwarder between nodes and a gateway.

mod common;

use std::net::SocketAddr;

use bytes::Bytes;
use common::{GatewayEnd, datagram, s};
use viaduct_mqttsn::{
    Destination, Forwarder, GatewaySettings,
    codec::{Connect, Encapsulated, Packet, Publish, Qos, ReturnCode, TopicId},
    forwarder::ForwarderRefusal,
};

fn gateway() -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 10_000))
}

/// Sends a message of a node through the forwarder and the gateway. Returns what the nodes receive.
fn exchange(
    forwarder: &mut Forwarder,
    end: &mut GatewayEnd,
    from: SocketAddr,
    packet: &Packet<'_>,
) -> Vec<(Destination, Bytes)> {
    forwarder.handle_datagram(from, &datagram(packet));
    while let Some(up) = forwarder.poll_transmit() {
        assert_eq!(up.to, Destination::Unicast(gateway()));
        end.gateway.handle_datagram(s(1), SocketAddr::from(([192, 0, 2, 100], 7)), &up.datagram);
        end.settle(s(1));
    }
    for down in end.transmits() {
        forwarder.handle_datagram(gateway(), &down.into());
    }
    std::iter::from_fn(|| forwarder.poll_transmit()).map(|down| (down.to, down.datagram)).collect()
}

#[test]
fn all_messages_of_a_session_pass_a_forwarder() {
    let (mut forwarder, mut end) = (Forwarder::new(gateway()), GatewayEnd::new(GatewaySettings::default()));
    for (node, name) in [("192.0.2.1:1000", "one"), ("[2001:db8::2]:2000", "two")] {
        let node: SocketAddr = node.parse().unwrap();
        let mut expect = |packet: &Packet<'_>, answer: &Packet<'_>| {
            let answers = exchange(&mut forwarder, &mut end, node, packet);
            assert_eq!(answers, [(Destination::Unicast(node), datagram(answer))]);
        };
        let connect = Connect { will: false, clean: true, protocol: 1, duration: 60, client: name };
        expect(&Packet::Connect(connect), &Packet::ConnAck { code: ReturnCode::Accepted });
        let accepted = Packet::RegAck { topic: 1, message: 1, code: ReturnCode::Accepted };
        expect(&Packet::Register { topic: 0, message: 1, name }, &accepted);
        let publish = Publish {
            dup: false,
            qos: Some(Qos::AtLeastOnce),
            retain: false,
            topic: TopicId::Normal(1),
            message: 2,
            data: b"x",
        };
        expect(&Packet::Publish(publish), &Packet::PubAck { topic: 1, message: 2, code: ReturnCode::Accepted });
        expect(&Packet::PingReq { client: "" }, &Packet::PingResp);
    }
    assert_eq!((end.payloads("one").len(), end.payloads("two").len()), (1, 1));
    assert_eq!((forwarder.counters().to_gateway, forwarder.counters().to_nodes), (8, 8));
}

#[test]
fn announcements_of_the_gateway_go_to_all_nodes() {
    let mut forwarder = Forwarder::new(gateway());
    let advertise = datagram(&Packet::Advertise { gateway: 1, duration: 900 });
    forwarder.handle_datagram(gateway(), &advertise);
    let sent = forwarder.poll_transmit().unwrap();
    assert_eq!((sent.to, sent.datagram), (Destination::Broadcast { radius: 0, reply_to: None }, advertise));
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let mut forwarder = Forwarder::new(gateway());
    let node = "192.0.2.1:1000".parse().unwrap();
    let within =
        |node: &[u8], message: &[u8]| datagram(&Packet::Encapsulated(Encapsulated { radius: 0, node, message }));
    for (from, octets, reason) in [
        (node, Bytes::from_static(b"\x09\x17"), ForwarderRefusal::Malformed),
        (node, within(&[1], &[2, 0x17]), ForwarderRefusal::Nested),
        (gateway(), Bytes::from_static(b"\x02\x17"), ForwarderRefusal::NotEncapsulated),
        (gateway(), within(&[1, 2, 3, 4, 5, 6], &[2, 0x17, 0]), ForwarderRefusal::NotEncapsulated),
        (gateway(), within(&[1], &[2, 0x17]), ForwarderRefusal::NodeId),
    ] {
        let before = forwarder.counters().refused(reason);
        forwarder.handle_datagram(from, &octets);
        assert_eq!(forwarder.counters().refused(reason), before + 1, "{}", reason.label());
        assert_eq!(forwarder.poll_transmit(), None);
    }
}
