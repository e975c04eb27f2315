//! A robot on a microcontroller: it publishes readings with Viaduct's codecs, from and into buffers of fixed size.
//!
//! | module | protocol |
//! |---|---|
//! | [`mqttsn`] | MQTT-SN 1.2: CONNECT, REGISTER, and PUBLISH with QoS 1 |
//! | [`coap`] | CoAP: a confirmable POST |
//! | [`raw`] | none: the reading is the datagram. Its program is subtracted from the others to get the size of a codec |
//!
//! The device calls [`Robot::transmit`], sends the datagram, and passes what it receives to [`Robot::handle`]. If nothing
//! arrives within the wait of the protocol, it calls `transmit` again, which repeats the message.
//!
//! `scripts/size-constrained` measures the programs.

#![no_std]

pub mod coap;
#[cfg(feature = "device")]
pub mod device;
pub mod mqttsn;
pub mod raw;

/// CONNACK, REGACK and PUBACK of the gateway, and the ACK of the server of CoAP. All programs contain all of
/// them, so that they differ by the robot alone. The tests compare them with those of Viaduct's servers.
pub const ANSWERS: [&[u8]; 4] = [
    &[0x03, 0x05, 0x00],
    &[0x07, 0x0B, 0x00, 0x01, 0x00, 0x02, 0x00],
    &[0x07, 0x0D, 0x00, 0x01, 0x00, 0x03, 0x00],
    &[0x60, 0x44, 0x00, 0x01],
];

/// A robot that publishes one reading after the other.
pub trait Robot {
    /// Writes the next message into the buffer: the reading, or what must precede it. Returns the number of octets, 0 if
    /// the message does not fit.
    fn transmit(&mut self, reading: &[u8], buffer: &mut [u8]) -> usize;

    /// Handles a received datagram. Returns `true` if it acknowledges the reading. Other datagrams are dropped.
    fn handle(&mut self, datagram: &[u8]) -> bool;
}
