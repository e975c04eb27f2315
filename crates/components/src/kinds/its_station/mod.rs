//! Kind `its_station`: an ETSI ITS station. Frames received from an access layer become messages on the bus, and messages to send are
//! read from the bus and sent as frames.

mod channel;
mod counters;
mod errors;
mod filter;
mod link;
mod replay;
mod runner;
mod services;
mod settings;

use viaduct_bus::Qos;
use viaduct_messages::viaduct::its::{V2xError, V2xMessage, V2xSendRequest};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

use link::Link;
use runner::Runner;
pub use services::fuzzing;
pub use settings::{
    Access, AdaptiveSettings, AreaForwarding, CaServiceSettings, CaptureSettings, CpServiceSettings, Dcc,
    DenServiceSettings, FilterSettings, GeonetSettings, ItsStationSettings, LdmQuerySettings, LdmSettings,
    NonAreaForwarding, Pace, PlaceSettings, ReplaySettings, SensorSettings, SensorTypeSetting, ServicesSettings,
    VaServiceSettings, VehicleRoleSetting, VruProfileSetting, mac_of_station,
};

/// Quality of service of the topics: reliable with a deep queue. The station never waits; a full queue is a counted drop.
pub(crate) const OFFERED: Qos = Qos::reliable(4096, std::time::Duration::ZERO);

/// A station. All its work is in its I/O task, which owns the machine and the socket.
pub struct ItsStation;

impl Component for ItsStation {
    type Settings = ItsStationSettings;

    fn check(settings: &ItsStationSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &ItsStationSettings) -> Result<(), SettingError> {
        settings.access.check_machine()
    }

    fn edges(settings: &ItsStationSettings) -> Edges {
        let mut edges =
            Edges::default().publishes::<V2xMessage>("topics.rx", &format!("{}/*", settings.topics.rx), OFFERED);
        edges = edges.publishes::<V2xError>("topics.errors", &settings.topics.errors, errors::OFFERED);
        if let Some(capture) = &settings.capture {
            edges = edges.takes(Resource::File { path: capture.file.clone(), setting: "capture.file".to_owned() });
        }
        if let Access::UdpMulticast(udp) = &settings.access {
            let (address, setting) = (udp.group.into(), "access.udp_multicast.group".to_owned());
            edges = edges.takes(Resource::UdpBind { address, shared: true, setting });
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
