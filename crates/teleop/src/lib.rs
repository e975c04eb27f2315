//! Remote driving over a lossy link, as pure state machines: frames of cameras from the vehicle to the desk, commands of
//! the driver back, and the supervision of the driver in the vehicle.
//!
//! | module | holds |
//! |---|---|
//! | [`vehicle`], [`desk`] | the two ends of a flow of datagrams, which join the other modules |
//! | [`frames`] | frames with a deadline: erasure code, requests for further symbols, scheduling |
//! | [`pacing`] | rate control by delivery rate and queueing delay |
//! | [`commands`] | commands: each datagram repeats the last three; the vehicle accepts the newest only |
//! | [`driving`] | who has control, staged stop, dead-man control, speed limit, event log |
//! | [`wire`] | formats of the datagrams, as tables |
//! | [`limits`] | all limits |
//!
//! # Run loop
//!
//! **After each input, take every datagram from `poll_transmit` and every event from `poll_event`, then read
//! `poll_timeout`, before the next input.**
//!
//! ```text
//! handle_datagram(now, &Bytes)   handle_timeout(now)   commands (push_frame, claim, set_input, ...)
//! poll_transmit() -> Option<Bytes>   poll_event() -> Option<Event>   poll_timeout() -> Option<Mono>
//! ```
//!
//! The owner encrypts and authenticates datagrams, and passes on only those of its peer. An authenticated datagram can
//! still be wrong in every way: it is dropped and counted.
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use viaduct_teleop::{Desk, DeskEvent, DeskSettings, Vehicle, VehicleSettings, frames::ReceiverEvent, wire::StreamId};
//! use viaduct_units::Mono;
//!
//! let mut vehicle = Vehicle::new(VehicleSettings::default(), 1)?;
//! let mut desk = Desk::new(DeskSettings::default(), 1)?;
//! let mut now = Mono(Duration::from_secs(1));
//! let frame = Bytes::from(vec![7; 20_000]);
//! vehicle.push_frame(now, StreamId(0), frame.clone())?;
//!
//! let arrived = loop {
//!     // 1. Drain the datagrams of both ends into the link, which is perfect here.
//!     while let Some(datagram) = vehicle.poll_transmit() {
//!         desk.handle_datagram(now, &datagram);
//!     }
//!     while let Some(datagram) = desk.poll_transmit() {
//!         vehicle.handle_datagram(now, &datagram);
//!     }
//!     // 2. Drain the events.
//!     if let Some(DeskEvent::Frames(ReceiverEvent::Arrived(frame))) = desk.poll_event() {
//!         break frame;
//!     }
//!     // 3. Wait for the next deadline; here, time is advanced at once.
//!     let due = [vehicle.poll_timeout(), desk.poll_timeout()].into_iter().flatten().min();
//!     now = due.expect("heartbeats are due").max(now);
//!     vehicle.handle_timeout(now);
//!     desk.handle_timeout(now);
//! };
//! assert_eq!(arrived.data, frame);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: clocks, sockets, threads, random sources, encryption, encoders of pictures.

#[macro_use]
mod reason;

mod clock;
pub mod commands;
pub mod desk;
pub mod driving;
mod epoch;
pub mod frames;
mod heartbeat;
pub mod limits;
mod micros;
pub mod pacing;
mod round_trip;
pub mod vehicle;
pub mod wire;

pub use clock::Age;
pub use desk::{Desk, DeskEvent, DeskSettings};
pub use heartbeat::{ClockOffset, LinkQuality};
pub use vehicle::{Vehicle, VehicleEvent, VehicleSettings};
