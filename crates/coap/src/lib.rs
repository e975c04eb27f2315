//! CoAP: the codec without allocation, and machines for client and server. No I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`codec`] | messages on the wire (RFC 7252, 8323), options, codes: without `std` and without an allocator |
//! | [`Endpoint`] | client and server of one UDP socket (RFC 7252, 7641, 7959, 9177) |
//! | [`tcp::Connection`] | client and server of one reliable connection (RFC 8323) |
//! | [`Request`], [`Response`], [`Options`] | messages as values |
//! | [`Event`] | reports of the machines, and the identities and reasons in them |
//! | [`settings`] | settings, limits and transmission parameters |
//! | [`link_format`] | links to resources (RFC 6690), which `/.well-known/core` lists |
//!
//! ```
//! use std::net::SocketAddr;
//! use viaduct_coap::{Endpoint, Event, Request, Response, Settings, codec::{Code, ContentFormat}};
//! use viaduct_units::Mono;
//!
//! let (now, client, server) = (Mono::default(), SocketAddr::from(([192, 0, 2, 1], 5683)), SocketAddr::from(([192, 0, 2, 2], 5683)));
//! let mut robot = Endpoint::new(Settings::default(), 1);
//! let mut edge = Endpoint::new(Settings::default(), 2);
//!
//! let id = robot.request(now, server, Request::post("pose", ContentFormat::JSON, "[1,2]"))?;
//! let (_, datagram) = robot.poll_transmit().expect("the request");
//! edge.handle_datagram(now, client, &datagram);
//! while let Some(event) = edge.poll_event() {
//!     if let Event::Request { id, request, .. } = event {
//!         assert_eq!((request.path_string().as_str(), &request.payload[..]), ("pose", &b"[1,2]"[..]));
//!         edge.respond(now, id, Response::new(Code::CHANGED));
//!     }
//! }
//! let (_, datagram) = edge.poll_transmit().expect("the acknowledgement with the response");
//! robot.handle_datagram(now, server, &datagram);
//! assert_eq!(robot.poll_event(), Some(Event::Response { id, response: Response::new(Code::CHANGED) }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: clocks, sockets, threads, DTLS, multicast. Nothing panics, whatever the input.

#![cfg_attr(not(feature = "std"), no_std)]

pub mod codec;

#[cfg(feature = "std")]
mod machines {
    pub use crate::budget::Totals;
    pub use crate::endpoint::Endpoint;
    pub use crate::event::{
        Counters, DropReason, EndReason, Event, ExchangeId, Failure, ObservationId, RequestError, RequestId,
    };
    pub use crate::link_format::Resource;
    pub use crate::message::{Options, Request, Response};
    pub use crate::settings::Settings;
}
#[cfg(feature = "std")]
pub use machines::*;

#[cfg(feature = "std")]
mod blocks;
#[cfg(feature = "std")]
mod budget;
#[cfg(feature = "std")]
mod endpoint;
#[cfg(feature = "std")]
mod event;
#[cfg(feature = "std")]
pub mod link_format;
#[cfg(feature = "std")]
mod message;
#[cfg(feature = "std")]
mod session;
#[cfg(feature = "std")]
pub mod settings;
#[cfg(feature = "std")]
mod shared;
#[cfg(feature = "std")]
pub mod tcp;
#[cfg(feature = "std")]
mod timers;
