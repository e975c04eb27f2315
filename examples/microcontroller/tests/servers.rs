//! The robots with Viaduct's gateway and server, in virtual time.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::net::SocketAddr;

use bytes::Bytes;
use viaduct_coap::codec::Code;
use viaduct_coap::{Endpoint, Event, Response, Settings};
use viaduct_microcontroller::{Robot, coap, mqttsn};
use viaduct_mqttsn::codec::{Packet, Publish, Qos};
use viaduct_mqttsn::{Gateway, GatewayEvent, GatewaySettings, Message};
use viaduct_units::Mono;

const NOW: Mono = Mono(std::time::Duration::ZERO);
const READING: &[u8] = br#"{"charge_percent":57}"#;

fn robot_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5000))
}

/// Returns the robot's next datagram.
fn transmit(robot: &mut impl Robot) -> Bytes {
    let mut buffer = [0; 256];
    let octets = robot.transmit(READING, &mut buffer);
    Bytes::copy_from_slice(&buffer[..octets])
}

/// A gateway with a broker that accepts everything.
struct Edge {
    gateway: Gateway,
    published: Vec<Message>,
}

impl Edge {
    fn new() -> Self {
        let settings = GatewaySettings { storage: false, ..GatewaySettings::default() };
        Self { gateway: Gateway::new(settings, 1).unwrap(), published: vec![] }
    }

    fn answer(&mut self, datagram: &Bytes) -> Bytes {
        self.gateway.handle_datagram(NOW, robot_address(), datagram);
        while let Some(event) = self.gateway.poll_event() {
            match event {
                GatewayEvent::Connect { client, .. } => self.gateway.connected(NOW, client, Ok(false)),
                GatewayEvent::Publish { message, token, .. } => {
                    self.published.push(message);
                    self.gateway.published(token.unwrap(), Ok(()));
                }
                _ => {}
            }
        }
        self.gateway.poll_transmit().unwrap().datagram
    }
}

#[test]
fn the_gateway_publishes_each_reading_once() {
    let (mut robot, mut edge) = (mqttsn::Robot::new("r1", "robots/sn/battery"), Edge::new());
    let mut answers = Vec::new();
    for acknowledged in [false, false, true, true] {
        let datagram = transmit(&mut robot);
        let answer = edge.answer(&datagram);
        assert_eq!(robot.handle(&answer), acknowledged, "{answer:02x?}");
        assert!(!robot.handle(&answer), "a duplicate acknowledges nothing");
        answers.push(answer);
    }
    let published: Vec<_> =
        edge.published.iter().map(|message| (&*message.topic, &message.payload[..], message.qos)).collect();
    assert_eq!(published, [("robots/sn/battery", READING, Qos::AtLeastOnce); 2]);
    // The program for the device holds the same answers.
    assert_eq!(answers[..3], viaduct_microcontroller::ANSWERS[..3]);
}

#[test]
fn a_lost_acknowledgement_of_the_gateway_repeats_the_message() {
    let (mut robot, mut edge) = (mqttsn::Robot::new("r1", "robots/sn/battery"), Edge::new());
    for _ in 0..2 {
        let datagram = transmit(&mut robot);
        robot.handle(&edge.answer(&datagram));
    }
    let lost = edge.answer(&transmit(&mut robot));
    let repeated = transmit(&mut robot);
    assert!(matches!(Packet::decode(&repeated), Ok(Packet::Publish(Publish { dup: true, .. }))));
    assert_eq!(edge.answer(&repeated), lost);
    assert!(robot.handle(&lost));
    assert_eq!(edge.published.len(), 1);
}

#[test]
fn a_robot_without_a_session_connects_again() {
    let (mut robot, mut edge) = (mqttsn::Robot::new("r1", "robots/sn/battery"), Edge::new());
    for _ in 0..3 {
        let datagram = transmit(&mut robot);
        robot.handle(&edge.answer(&datagram));
    }
    let mut restarted = Edge::new();
    let answers: Vec<_> = (0..4)
        .map(|_| {
            let datagram = transmit(&mut robot);
            robot.handle(&restarted.answer(&datagram))
        })
        .collect();
    assert_eq!(answers, [false, false, false, true]);
    assert_eq!(restarted.published.len(), 1);
}

#[test]
fn the_server_receives_each_reading_once() {
    let mut robot = coap::Robot::new("battery", 1);
    let mut edge = Endpoint::new(Settings::default(), 1);
    let answer = |edge: &mut Endpoint, datagram: &Bytes| {
        edge.handle_datagram(NOW, robot_address(), datagram);
        let mut received = 0;
        while let Some(event) = edge.poll_event() {
            if let Event::Request { id, request, .. } = event {
                assert_eq!((request.path_string().as_str(), &request.payload[..]), ("battery", READING));
                edge.respond(NOW, id, Response::new(Code::CHANGED));
                received += 1;
            }
        }
        (received, edge.poll_transmit().unwrap().1)
    };

    let first = transmit(&mut robot);
    let (received, lost) = answer(&mut edge, &first);
    assert_eq!((received, &lost[..]), (1, viaduct_microcontroller::ANSWERS[3]));
    let repeated = transmit(&mut robot);
    assert_eq!(repeated, first);
    assert_eq!(answer(&mut edge, &repeated), (0, lost.clone()));
    assert!(robot.handle(&lost));
    assert!(!robot.handle(&lost), "a duplicate acknowledges nothing");
    let (received, acknowledgement) = answer(&mut edge, &transmit(&mut robot));
    assert_eq!(received, 1);
    assert!(robot.handle(&acknowledgement));
}

#[test]
fn a_message_that_does_not_fit_is_not_sent() {
    let mut buffer = [0; 8];
    assert_eq!(mqttsn::Robot::new("robot", "topic").transmit(READING, &mut buffer), 0);
    assert_eq!(coap::Robot::new("battery", 1).transmit(READING, &mut buffer), 0);
}
