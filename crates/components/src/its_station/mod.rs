//! Kind `its_station`: an ETSI ITS station. Frames come from an access layer, messages go to the bus; messages to send
//! come from the bus, frames go to the access layer.

mod channel;
mod counts;
mod errors;
mod ethernet;
mod filter;
mod frame_socket;
mod geonet;
mod link;
mod message;
mod replay;
pub(crate) mod request;
mod runner;
mod services;
mod settings;
mod sys;
pub(crate) mod udp;

use viaduct_bus::Qos;
use viaduct_messages::viaduct::its::{V2xError, V2xMessage, V2xSendRequest};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

pub use channel::{AdaptiveSettings, Dcc};
pub use frame_socket::{FrameSocket, SocketFrame};
pub use geonet::{AreaForwarding, GeonetSettings, NonAreaForwarding};
use link::Link;
pub use message::{received_message, sent_or_received};
use runner::Runner;
pub use services::{
    CaServiceSettings, CpServiceSettings, DenServiceSettings, LdmQuerySettings, LdmSettings, SensorSettings,
    SensorTypeSetting, ServiceTexts, ServicesSettings, ToldServices, VaServiceSettings, VehicleRoleSetting,
    VruProfileSetting,
};
pub use settings::{
    Access, CaptureSettings, EthernetSettings, FilterSettings, ItsStationSettings, Pace, PlaceSettings, ReplaySettings,
    UdpMulticastSettings, mac_of_station,
};

/// Queue of a subscriber that must not miss a message. A station never waits: one that is full is a counted drop.
pub(crate) const OFFERED: Qos = Qos::reliable(4096, std::time::Duration::ZERO);

/// Opens a socket that exchanges frames with other stations by UDP multicast. Call it inside the runtime.
///
/// # Errors
/// What the system refuses.
pub fn open_udp_multicast(settings: &UdpMulticastSettings) -> Result<FrameSocket, StartError> {
    udp::open(settings)
}

/// Opens a socket for GeoNetworking frames on a network interface. Call it inside the runtime.
///
/// # Errors
/// What the system refuses: there is no such interface, it is down, or the process has no CAP_NET_RAW.
pub fn open_ethernet(settings: &EthernetSettings) -> Result<FrameSocket, StartError> {
    ethernet::open(settings)
}

/// A station. All its work is in its I/O task, which owns the machine and the socket.
pub struct ItsStation;

impl Component for ItsStation {
    type Settings = ItsStationSettings;

    fn check(settings: &ItsStationSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn edges(settings: &ItsStationSettings) -> Edges {
        let mut edges =
            Edges::default().publishes::<V2xMessage>("topics.rx", &format!("{}/*", settings.topics.rx), OFFERED);
        edges = edges.publishes::<V2xError>("topics.errors", &settings.topics.errors, errors::OFFERED);
        if let Some(capture) = &settings.capture {
            edges = edges.takes(Resource::File { path: capture.file.clone(), setting: "capture.file".to_owned() });
        }
        if settings.sends() {
            edges = edges.publishes::<V2xMessage>("topics.tx", &format!("{}/*", settings.topics.tx), OFFERED);
        }
        if let Some(topic) = &settings.topics.send {
            edges = edges.reads::<V2xSendRequest>("topics.send", topic, OFFERED);
        }
        match &settings.services {
            Some(services) => services::edges(services, edges),
            None => edges,
        }
    }

    fn start(settings: ItsStationSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let link = Link::open(&settings.access, settings.configured_address()?)?;
        let runner = Runner::new(&settings, &link, context)?;
        context.spawn_io(runner.run(link));
        Ok(Self)
    }
}
