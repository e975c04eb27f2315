//! Kind `teleop_desk`: the desk of a remote drive. It receives pictures and states of a vehicle, serves the page of the driver's desk,
//! and passes on what its drivers do. `docs/reference/teleop-desk-websocket.md` has the protocol between desk and page.
//!
//! Counters: `pictures` and `pictures_repaired` by camera, `pictures_refused`, `frames_lost`, `frames_decoded`, `frames_sent`,
//! `frames_unsent`, `commands`, `commands_refused`, `claims_refused`, `connections`, `logins`, `logins_failed`, `pages_closed`,
//! `messages_malformed`, `datagrams_*`, `event_log_*`. Gauges: `pages`, `round_trip_ms`, `picture_latency_ms`, `glass_to_glass_ms` and others.

mod claims;
mod counters;
mod desk_clock;
mod events;
mod frame;
mod mailbox;
mod map;
mod messages;
mod missed;
mod pages;
mod people;
mod runner;
mod server;
mod session;
mod settings;
mod state;
mod time;
mod waiting;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use viaduct_bus::Qos;
use viaduct_messages::foxglove::{CompressedImage, Log};
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::listen::GateLimits;
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

use crate::teleop::event_log::EventLog;
use crate::teleop::link::DatagramLink;
use counters::PageCounters;
use people::People;
pub use people::Role;
use runner::{Parts, Runner};
use server::Shared;
pub use settings::{
    CameraDescription, Login, PageSettings, PersonSettings, Place, TeleopDeskSettings, VehicleDescription,
};

/// Quality of service of pictures and states: the latest one replaces the one before.
const LATEST: Qos = Qos::keep_last(1);
/// Largest number of messages of all pages that wait for the owner of the machine.
const FROM_PAGES_MAX: usize = 256;

/// The desk. One I/O task owns the machine and the socket, another one serves the pages.
pub struct TeleopDesk;

impl Component for TeleopDesk {
    type Settings = TeleopDeskSettings;

    fn check(settings: &TeleopDeskSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &TeleopDeskSettings) -> Result<(), SettingError> {
        settings.security.load()?;
        people(settings)?;
        map(settings).map(drop)
    }

    fn edges(settings: &TeleopDeskSettings) -> Edges {
        let http = Resource::TcpListen { address: settings.http, setting: "http".to_owned() };
        let udp = Resource::UdpBind { address: settings.listen, shared: false, setting: "listen".to_owned() };
        let mut edges =
            Edges::default().takes(http).takes(udp).publishes::<Log>("events", &settings.events, events::OFFERED);
        for (index, camera) in settings.cameras.iter().enumerate() {
            if let Some(topic) = &camera.topic {
                edges = edges.publishes::<CompressedImage>(&format!("cameras.{index}.topic"), topic, LATEST);
            }
        }
        if let Some(topic) = &settings.vehicle_topic {
            edges = edges.publishes::<VehicleState>("vehicle_topic", topic, LATEST);
        }
        if let Some(log) = &settings.event_log {
            edges = edges.takes(Resource::File { path: log.file.clone(), setting: "event_log.file".to_owned() });
        }
        edges
    }

    fn start(settings: TeleopDeskSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let people = Arc::new(people(&settings)?);
        let (to_owner, from_pages) = tokio::sync::mpsc::channel(FROM_PAGES_MAX);
        let page_counters = PageCounters::new(context);
        let parts = Parts {
            link: DatagramLink::listen(settings.listen, &settings.security, settings.receive_buffer_octets, context)?,
            log: settings.event_log.as_ref().map(|log| EventLog::open(log, context)).transpose()?,
            map: map(&settings)?,
            people: people.clone(),
            from_pages,
            page_counters: page_counters.clone(),
        };
        let shared = Shared::new(
            format!("{}/{}", context.node(), context.name()),
            people,
            Duration::from_millis(settings.vehicle.ramp_ms),
            settings.pages_max,
            to_owner,
            page_counters,
            context.stop(),
        );
        let listener = listen(&settings)?;
        let runner = Runner::new(settings, parts, context)?;
        context.spawn_io(runner.run());
        let gate = context.gate(GateLimits::new(server::CONNECTIONS_MAX));
        context.spawn_io(async move {
            server::serve(tokio::net::TcpListener::from_std(listener)?, gate, shared).await;
            Ok::<_, std::io::Error>(())
        });
        Ok(Self)
    }
}

/// Binds the address of the page. A port in use is thus an error of the start.
fn listen(settings: &TeleopDeskSettings) -> Result<TcpListener, StartError> {
    let failed = |cause| StartError::io(format!("cannot listen on {}", settings.http), cause);
    let listener = TcpListener::bind(settings.http).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "driver's desk is listening");
    Ok(listener)
}

/// Reads the people who may log in.
fn people(settings: &TeleopDeskSettings) -> Result<People, SettingError> {
    match &settings.login {
        Login::None => Ok(People::without_login(settings)),
        Login::People(people) => People::of(people, settings),
        Login::Tokens(path) => People::read(path, settings)
            .map_err(|error| SettingError::new("login.tokens", format!("{}: {error}", path.display()))),
    }
}

/// Reads the lines of the map.
fn map(settings: &TeleopDeskSettings) -> Result<Option<String>, SettingError> {
    let Some(path) = &settings.map else { return Ok(None) };
    let read = map::read(path).map_err(|error| SettingError::new("map", format!("{}: {error}", path.display())));
    read.map(Some)
}
