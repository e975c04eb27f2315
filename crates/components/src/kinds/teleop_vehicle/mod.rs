//! Kind `teleop_vehicle`: the vehicle's end of a remote drive. It sends pictures and the state of the vehicle to a desk, and passes
//! the commands of the driver on to the vehicle under the supervision of [`viaduct_teleop::driving`].
//!
//! Counters: `pictures`, `pictures_refused`, `camera_frames`, `camera_frames_arrived` and `camera_frames_lost` by camera,
//! `frames_lost`, `commands_accepted`, `commands_refused`, `datagrams_*`, `events_*`,
//! `event_log_*`, `answers_outdated`, `telemetry_too_long`. Gauges: `round_trip_ms`,
//! `loss_to_vehicle`, `loss_to_desk`, `rate_bits_per_second`, `queueing_delay_ms`, `camera_budget_octets` and others.

mod cameras;
mod counters;
mod records;
mod runner;
mod settings;

use viaduct_bus::Qos;
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::viaduct::teleop::{DrivingEvent, DrivingState, RequestAnswer};
use viaduct_messages::viaduct::vehicle::{CameraBudget, DriveCommand, VehicleState};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

use crate::teleop::event_log::EventLog;
use crate::teleop::link::DatagramLink;
use runner::Runner;
pub use settings::{CameraSettings, DrivingLimits, OperatorSettings, PacingLimits, TeleopVehicleSettings};

/// Quality of service of pictures, commands and states: the latest one replaces the one before.
const LATEST: Qos = Qos::keep_last(1);
/// Quality of service of events and answers.
const EVENTS: Qos = Qos::keep_last(256);

/// The vehicle's end. All its work is in its I/O task, which owns the machine and the socket.
pub struct TeleopVehicle;

impl Component for TeleopVehicle {
    type Settings = TeleopVehicleSettings;

    fn check(settings: &TeleopVehicleSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &TeleopVehicleSettings) -> Result<(), SettingError> {
        settings.security.load().map(drop)
    }

    fn edges(settings: &TeleopVehicleSettings) -> Edges {
        let mut edges = Edges::default()
            .connects(settings.desk)
            .publishes::<DrivingState>("state", &settings.state, LATEST)
            .publishes::<DrivingEvent>("events", &settings.events, EVENTS);
        for (index, camera) in settings.cameras.iter().enumerate() {
            // The machine holds a picture until the desk has confirmed it.
            edges = edges
                .reads::<CompressedImage>(&format!("cameras.{index}.topic"), &camera.topic, LATEST)
                .holds(camera.keep_last + 1);
            if let Some(budget) = &camera.budget {
                edges = edges.publishes::<CameraBudget>(&format!("cameras.{index}.budget"), budget, LATEST);
            }
        }
        if let Some(vehicle) = &settings.vehicle {
            edges = edges.reads::<VehicleState>("vehicle", vehicle, LATEST).publishes::<DriveCommand>(
                "drive",
                &settings.drive,
                LATEST,
            );
        }
        if let Some(answers) = &settings.answers {
            edges = edges.reads::<RequestAnswer>("answers", answers, EVENTS);
        }
        if let Some(log) = &settings.event_log {
            edges = edges.takes(Resource::File { path: log.file.clone(), setting: "event_log.file".to_owned() });
        }
        edges
    }

    fn start(settings: TeleopVehicleSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let link = DatagramLink::connect(settings.desk, &settings.security, settings.receive_buffer_octets, context)?;
        let log = settings.event_log.as_ref().map(|log| EventLog::open(log, context)).transpose()?;
        let runner = Runner::new(&settings, link, log, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}
