//! Sockets shared by several kinds: batched receive, kernel timestamps and kernel drop counters. [`secure`] encrypts datagrams.

pub mod dtls;
pub(crate) mod ethernet;
mod frame_socket;
pub(crate) mod port;
pub mod secure;
mod socket_counters;
mod sys;
pub(crate) mod timer;
pub(crate) mod udp;
pub mod udp_socket;

use viaduct_node::SettingError;

pub use ethernet::{EthernetSettings, open as open_ethernet};
pub use frame_socket::{FrameSocket, SocketFrame};
pub(crate) use socket_counters::socket_counters;
pub use udp::{UdpMulticastSettings, open as open_udp_multicast};

pub(crate) const fn default_receive_buffer() -> usize {
    4 << 20
}

fn check_receive_buffer(key: &str, octets: usize) -> Result<(), SettingError> {
    if !(4096..=268_435_456).contains(&octets) {
        let problem = format!("{octets} is not within 4096 to 268435456");
        return Err(SettingError::new(format!("{key}.receive_buffer_octets"), problem));
    }
    Ok(())
}
