//! MQTT-SN 1.2 as pure state machines.
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
#[macro_use]
mod reason;

pub mod codec;
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
pub mod topic;

#[cfg(feature = "std")]
pub use crate::{
    gateway::{Gateway, GatewayEvent, GatewaySettings},
    message::Message,
    peer::{Destination, NodeId, Peer, Transmit},
    retry::STANDARD,
};
