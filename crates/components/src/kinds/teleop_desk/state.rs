//! The message `state`, from the machine and the latest telemetry.

use std::time::Duration;

use viaduct_messages::viaduct::vehicle::{Gear, VehicleState};
use viaduct_teleop::Desk;
use viaduct_teleop::driving::{OperatorId, Reason};
use viaduct_units::{Mono, Now};

use super::desk_clock::{Offset, VehicleClock};
use super::messages::{
    ClockValues, CommandValues, DeskMessage, DrivingValues, GearName, Holder, LinkValues, PositionValues, Request,
    State, VehicleValues,
};
use super::people::People;
use super::time::{tai_us, us_of_mono};
use crate::teleop::milliseconds;

/// The present state, as all pages see it.
pub(super) struct Snapshot {
    time_us: u64,
    vehicle: VehicleValues,
    position: Option<PositionValues>,
    state: &'static str,
    reason: Option<&'static str>,
    since_us: u64,
    holder: Option<String>,
    request: Option<(u32, String)>,
    link: LinkValues,
    command: CommandValues,
    clock: ClockValues,
}

/// The inputs of a snapshot.
pub(super) struct Sources<'a> {
    pub(super) machine: &'a Desk,
    pub(super) people: &'a People,
    pub(super) clock: &'a VehicleClock,
    /// Latest state of the vehicle, and its arrival.
    pub(super) vehicle: Option<&'a (Mono, VehicleState)>,
    /// Start of the present state of driving.
    pub(super) since: Mono,
    pub(super) request: Option<(u32, OperatorId)>,
    pub(super) rate_mbps: f64,
    pub(super) missed: u64,
    pub(super) command_seq: Option<u32>,
    pub(super) commands_refused: u64,
}

/// Returns the state of driving and its reason, as far as the desk knows them.
///
/// Without heartbeats, the vehicle receives no commands or the driver receives no pictures. The vehicle then stops by itself within its
/// times.
pub(super) fn driving_state(machine: &Desk) -> (&'static str, Option<&'static str>) {
    match machine.vehicle() {
        None => ("idle", Some("no_driver")),
        Some(_) if !machine.link().up => ("stopped", Some("link_lost")),
        Some(vehicle) => (vehicle.state.name(), vehicle.reason.map(Reason::name)),
    }
}

/// Returns the operator who has control, as far as the desk knows.
pub(super) fn holder(machine: &Desk) -> Option<OperatorId> {
    machine.vehicle().filter(|_| machine.link().up).and_then(|vehicle| vehicle.holder)
}

impl Snapshot {
    pub(super) fn new(now: Now, sources: &Sources<'_>) -> Self {
        let (state, reason) = driving_state(sources.machine);
        let name = |operator| sources.people.name_of(operator);
        Self {
            time_us: tai_us(now.tai),
            vehicle: vehicle_values(now, sources),
            position: sources.vehicle.and_then(|(_, vehicle)| position(vehicle)),
            state,
            reason,
            since_us: us_of_mono(now, sources.since),
            holder: holder(sources.machine).map(name),
            request: sources.request.map(|(id, operator)| (id, name(operator))),
            link: link_values(sources),
            command: command_values(sources),
            clock: clock_values(now.mono, sources),
        }
    }

    /// Returns the message for one page. `holds` and `requests` are `true` if the page has control and if its person
    /// requests it.
    pub(super) fn message(&self, seq: u32, holds: bool, requests: bool) -> String {
        let holder = self.holder.as_ref().map(|name| Holder { name, you: holds });
        let request = self.request.as_ref().map(|(id, name)| Request { id: *id, name, you: requests });
        DeskMessage::State(State {
            seq,
            time_us: self.time_us,
            vehicle: self.vehicle,
            position: self.position,
            driving: DrivingValues { state: self.state, reason: self.reason, since_us: self.since_us, holder, request },
            link: self.link,
            command: self.command,
            clock: self.clock,
        })
        .to_text()
    }
}

fn vehicle_values(now: Now, sources: &Sources<'_>) -> VehicleValues {
    let heard = sources.machine.vehicle();
    let (arrival, vehicle) = sources.vehicle.map_or((None, None), |(at, vehicle)| (Some(*at), Some(vehicle)));
    let one_way = sources.machine.link().round_trip.unwrap_or_default() / 2;
    let lights = vehicle.and_then(|vehicle| vehicle.lights.as_ref());
    VehicleValues {
        age_ms: arrival.map(|arrival| milliseconds(now.mono.since(arrival) + one_way).min(3_600_000.0)),
        speed_mps: vehicle.and_then(|vehicle| vehicle.speed_mps).and_then(|speed| within(speed, -100.0, 100.0)),
        speed_limit_mps: heard.and_then(|heard| within(heard.speed_limit.value(), 0.0, 100.0)),
        limit_reason: heard.map_or("not_driving", |heard| heard.limit_reason.name()),
        steering_rad: vehicle.and_then(|vehicle| vehicle.steering_angle_rad).and_then(|angle| within(angle, -2.0, 2.0)),
        gear: vehicle.and_then(|vehicle| gear(vehicle.gear())),
        hazard_lights: lights.map(|lights| lights.left_turn_signal && lights.right_turn_signal),
    }
}

const fn gear(gear: Gear) -> Option<GearName> {
    match gear {
        Gear::Park => Some(GearName::P),
        Gear::Reverse => Some(GearName::R),
        Gear::Neutral => Some(GearName::N),
        Gear::Drive => Some(GearName::D),
        Gear::Unknown => None,
    }
}

fn position(vehicle: &VehicleState) -> Option<PositionValues> {
    let position = vehicle.position.as_ref()?;
    Some(PositionValues {
        lat_deg: within(position.latitude_deg, -90.0, 90.0)?,
        lon_deg: within(position.longitude_deg, -180.0, 180.0)?,
        heading_deg: vehicle.heading_deg.and_then(|heading| within(heading, 0.0, 360.0)),
    })
}

fn link_values(sources: &Sources<'_>) -> LinkValues {
    let link = sources.machine.link();
    let round_trip = link.round_trip.filter(|_| link.up);
    LinkValues {
        connected: link.up,
        rtt_ms: round_trip.map(milliseconds),
        one_way_ms: round_trip.map(|round_trip| milliseconds(round_trip / 2)),
        loss: link.up.then_some(link.loss_in),
        rate_mbps: Some(sources.rate_mbps.min(100_000.0)),
        missed: sources.missed,
    }
}

fn command_values(sources: &Sources<'_>) -> CommandValues {
    let vehicle = sources.machine.vehicle();
    let command = vehicle.and_then(|vehicle| vehicle.command);
    let refused = vehicle.map_or(0, |vehicle| u64::from(vehicle.commands_refused));
    CommandValues {
        age_ms: command.map(|(_, age)| milliseconds(age)),
        seq: sources.command_seq,
        refused: sources.commands_refused + refused,
    }
}

fn clock_values(now: Mono, sources: &Sources<'_>) -> ClockValues {
    let offset = sources.clock.offset(now);
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    ClockValues {
        offset_us: offset.map(Offset::micros).filter(|micros| micros.unsigned_abs() < 1 << 53),
        uncertainty_us: offset.map(|offset| micros(offset.uncertainty)),
    }
}

fn within(value: f64, least: f64, most: f64) -> Option<f64> {
    (least..=most).contains(&value).then_some(value)
}
