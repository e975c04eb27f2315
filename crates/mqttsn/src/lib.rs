//! MQTT-SN 1.2 as pure state machines: a client, a gateway to a broker, and a forwarder.
//!
//! | module | holds |
//! |---|---|
//! | [`codec`] | all messages, without allocation and without the standard library |
//! | [`client`] | client: connection, publications, subscriptions, sleep, discovery |
//! | [`gateway`] | gateway for many clients, with an abstract broker side |
//! | [`forwarder`] | forwarder: encapsulates the messages between its nodes and a gateway |
//! | [`limits`] | all limits that are not settings |
//! | [`topic`] | topic names and filters |
//!
//! # Run loop
//!
//! **After each input, take every datagram from `poll_transmit` and every event from `poll_event`, then read
//! `poll_timeout`, before the next input.**
//!
//! ```text
//! handle_datagram(now, from, &Bytes)   handle_timeout(now)   commands (publish, deliver, ...)
//! poll_transmit() -> Option<Transmit>   poll_event() -> Option<Event>   poll_timeout() -> Option<Mono>
//! ```
//!
//! Without the feature `std` (on by default), the crate has only [`codec`].
//!
//! Not here: clocks, sockets, files, random sources, encryption, connections to a broker.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
#[macro_use]
mod reason;

pub mod codec;

#[cfg(feature = "std")]
pub mod client;
#[cfg(feature = "std")]
pub mod forwarder;
#[cfg(feature = "std")]
pub mod gateway;
#[cfg(feature = "std")]
pub mod limits;
#[cfg(feature = "std")]
mod message;
#[cfg(feature = "std")]
mod peer;
#[cfg(feature = "std")]
mod retry;
#[cfg(feature = "std")]
mod settings_error;
#[cfg(feature = "std")]
pub mod topic;

#[cfg(feature = "std")]
pub use crate::{
    client::{Client, ClientEvent, ClientSettings},
    forwarder::Forwarder,
    gateway::{Gateway, GatewayEvent, GatewaySettings},
    message::Message,
    peer::{Destination, NodeId, Peer, Transmit},
    retry::STANDARD,
    settings_error::SettingsError,
};
