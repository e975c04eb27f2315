//! Kind `link_emulator`: a relay that emulates a link between a client and a server, without root.
//!
//! ```text
//! client ──► listen ──► [ link a_to_b ] ──► to (server)
//!        ◄──        ◄── [ link b_to_a ] ◄──
//! ```
//!
//! The clients are the end `a` of the link, the server is the end `b`. In the profiles, `a` is the vehicle.
//!
//! With `protocol: udp`, each client has its own port towards the server. All clients share the link. The octets of the headers of IP
//! and UDP count for the rate.
//!
//! With `protocol: tcp`, each connection has its own link, which consists of rate and delay. Loss is not possible: TCP repeats what is
//! lost below it, and a relay above it cannot reproduce that. If the link is full, the sender waits. To emulate loss below TCP, use
//! `viaduct link up`.
//!
//! | counter | meaning |
//! |---|---|
//! | `a_to_b_received`, `b_to_a_received` | datagrams, or pieces of a TCP stream, passed to the link |
//! | `a_to_b_duplicated`, `b_to_a_duplicated` | datagrams that the link has duplicated |
//! | `a_to_b_delivered`, `b_to_a_delivered` | datagrams, or pieces of a stream, that have left the link |
//! | `a_to_b_dropped`, `b_to_a_dropped` | datagrams dropped by the link, by reason |
//! | `clients_dropped` | datagrams without a place in the link, by reason: `clients_full`, `no_socket`, `stranger`, `client_gone`; connections: `clients_full`, `no_resources`, `no_server` |
//! | `sockets_dropped` | datagrams that the kernel has dropped or not sent, by reason |
//!
//! The gauges `lateness_p50_us`, `lateness_p99_us` and `lateness_max_us` are those of all packets since the start, by direction: the time
//! from the arrival that the link has determined to the moment at which the relay passes the packet to the socket.

mod direction;
mod settings;
mod tcp;
mod udp;

use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

pub use settings::{LinkEmulatorSettings, RelayProtocol};

/// A relay that emulates a link. All its work is in its I/O task.
pub struct LinkEmulator;

impl Component for LinkEmulator {
    type Settings = LinkEmulatorSettings;

    fn check(settings: &LinkEmulatorSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &LinkEmulatorSettings) -> Result<(), SettingError> {
        settings.resolve().map(|_| ())
    }

    fn edges(settings: &LinkEmulatorSettings) -> Edges {
        let (address, setting) = (settings.listen, "listen".to_owned());
        Edges::default().connects(settings.to).takes(match settings.protocol {
            RelayProtocol::Udp => Resource::UdpBind { address, shared: false, setting },
            RelayProtocol::Tcp => Resource::TcpListen { address, setting },
        })
    }

    fn start(settings: LinkEmulatorSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let links = settings.resolve()?;
        match settings.protocol {
            RelayProtocol::Udp => {
                let relay = udp::Relay::open(&settings, links, context)?;
                context.spawn_io(relay.run());
            }
            RelayProtocol::Tcp => {
                let relay = tcp::Relay::open(&settings, links, context)?;
                context.spawn_io(relay.run());
            }
        }
        Ok(Self)
    }
}
