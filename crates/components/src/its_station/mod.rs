//! Kind `its_station`: an ETSI ITS station. Frames come from an access layer, messages go to the bus; messages to send
//! come from the bus, frames go to the access layer.

mod errors;
mod message;
mod replay;
pub(crate) mod request;
mod runner;
mod settings;
mod sys;
pub(crate) mod udp;

use viaduct_bus::Qos;
use viaduct_messages::viaduct::its::{V2xError, V2xMessage, V2xSendRequest};
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

pub use message::{received_message, sent_or_received};
use runner::Runner;
pub(crate) use settings::mac_of_station;
pub use settings::{Access, ItsStationSettings, Pace, PlaceSettings, ReplaySettings, UdpMulticastSettings};

/// Queue of a subscriber that must not miss a message. A station never waits: one that is full is a counted drop.
pub(crate) const OFFERED: Qos = Qos::reliable(4096, std::time::Duration::ZERO);

/// A station. All its work is in its I/O task, which owns the machine and the socket.
pub struct ItsStation;

impl Component for ItsStation {
    type Settings = ItsStationSettings;

    fn check(settings: &ItsStationSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn edges(settings: &ItsStationSettings) -> Edges {
        let edges =
            Edges::default().publishes::<V2xMessage>("topics.rx", &format!("{}/*", settings.topics.rx), OFFERED);
        let edges = edges.publishes::<V2xError>("topics.errors", &settings.topics.errors, errors::OFFERED);
        match &settings.topics.send {
            Some(topic) => edges
                .publishes::<V2xMessage>("topics.tx", &format!("{}/*", settings.topics.tx), OFFERED)
                .reads::<V2xSendRequest>("topics.send", topic, OFFERED),
            None => edges,
        }
    }

    fn start(settings: ItsStationSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::new(&settings, context)?;
        match &settings.access {
            Access::UdpMulticast(udp) => {
                let socket = udp::MulticastSocket::open(udp)?;
                context.spawn_io(runner.run_on_socket(socket));
            }
            Access::Replay(replay) => {
                let reader = replay::Replay::open(replay)?;
                context.spawn_io(runner.run_on_replay(reader));
            }
        }
        Ok(Self)
    }
}
