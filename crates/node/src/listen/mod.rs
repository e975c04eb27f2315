//! Listeners: how many connections a node accepts, from whom, and for how long a client may take.
//!
//! Each listener has a [`Gate`], which limits its connections, those of one address, and the file descriptors of the process.
//! [`serve`] adds the time limits of HTTP.

mod connection;
mod descriptors;
mod gate;
mod hosts;
mod http;
mod tls;

use connection::LimitedConnection;
pub use descriptors::raise_limit as raise_descriptor_limit;
pub use gate::{Gate, GateLimits, Place};
pub use hosts::{Hosts, is_same_origin};
pub use http::{HttpListener, serve};
pub use tls::{ServerTls, ServerTlsError, ServerTlsFiles};
