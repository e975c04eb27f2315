//! Emulated link for real packets: two network namespaces, `a` and `b`, joined by the model of `viaduct_netem`.
//!
//! ```text
//! namespace a                    this process                    namespace b
//! programs ── TUN 10.77.0.1 ──► [ thread a_to_b: Link ] ──► TUN 10.77.0.2 ── programs
//!                            ◄── [ thread b_to_a: Link ] ◄──
//! ```
//!
//! Each namespace has a loopback interface and the TUN device `link0`, and no other network. Everything that is not sent to the
//! loopback interface goes into the link. Segmentation offload is off, so that the kernel passes single packets to the emulator, and
//! the loss of one packet means the same as on a real link; longer packets are counted drops. IPv6 is disabled.
//!
//! A namespace without a name disappears with this process, even if the process is killed. One with a name can be used with
//! `ip netns exec`, and stays until [`remove_namespaces`] if the process is killed.

mod direction;
mod error;
mod lateness;
mod namespace;
mod report;
mod settings;
mod sys;
mod tunnel;

pub use error::LinkError;
pub(crate) use lateness::LatenessHistogram;
pub use namespace::{command_in, namespace_path, remove_namespaces};
pub use report::{DirectionReport, Lateness, LinkReport};
pub use settings::{TunnelSettings, check_name, resolve_link};
pub use tunnel::{End, Tunnel};
