//! Counters and gauges of the vehicle's end.

use viaduct_bus::Gauge;
use viaduct_node::Context;
use viaduct_teleop::Vehicle;
use viaduct_teleop::commands::CommandDropReason;
use viaduct_teleop::driving::DrivingState;
use viaduct_teleop::frames::{FrameLoss, SenderDropReason};
use viaduct_teleop::vehicle::FlowDropReason;

use super::TeleopVehicle;
use crate::machine_counters::MachineCounters;
use crate::teleop::{milliseconds, set_gauge};

/// Counters that mirror the machine, and gauges.
pub(super) struct Counters {
    machine: MachineCounters<Vehicle>,
    link_up: Gauge,
    round_trip_ms: Gauge,
    loss_to_vehicle: Gauge,
    loss_to_desk: Gauge,
    clock_uncertainty_ms: Gauge,
    rate_bits_per_second: Gauge,
    target_bits_per_second: Gauge,
    queueing_delay_ms: Gauge,
    random_loss: Gauge,
    unfinished_frames: Gauge,
    speed_mps: Gauge,
    command_age_ms: Gauge,
    state: Vec<(DrivingState, Gauge)>,
}

impl Counters {
    pub(super) fn new(context: &Context<TeleopVehicle>) -> Self {
        let machine = MachineCounters::new(context, |totals| {
            totals.one("heartbeats", |vehicle: &Vehicle| vehicle.counters().heartbeats);
            totals.each("datagrams_dropped", &FlowDropReason::ALL, FlowDropReason::name, |vehicle, reason| {
                vehicle.counters().dropped(reason)
            });
            totals.each("feedback_dropped", &SenderDropReason::ALL, SenderDropReason::name, |vehicle, reason| {
                vehicle.frame_counters().dropped(reason)
            });
            totals.each("frames_lost", &FrameLoss::ALL, FrameLoss::name, |vehicle, reason| {
                vehicle.frame_counters().lost(reason)
            });
            totals.one("frame_octets", |vehicle| vehicle.frame_counters().frame_octets);
            totals.one("symbols", |vehicle| vehicle.frame_counters().symbols);
            totals.one("symbol_octets", |vehicle| vehicle.frame_counters().symbol_octets);
            totals.one("probes", |vehicle| vehicle.frame_counters().probes);
            totals.one("queue_stops", |vehicle| vehicle.frame_counters().stops);
            totals.one("commands_received", |vehicle| vehicle.command_counters().received);
            totals.one("commands_accepted", |vehicle| vehicle.command_counters().accepted);
            totals.one("commands_repeated", |vehicle| vehicle.command_counters().repeated);
            totals.one("commands_slowed", |vehicle| vehicle.command_counters().slowed);
            totals.each("commands_refused", &CommandDropReason::ALL, CommandDropReason::name, |vehicle, reason| {
                vehicle.command_counters().dropped(reason)
            });
            totals.one("events_dropped", |vehicle| {
                vehicle.counters().events_dropped
                    + vehicle.frame_counters().events_dropped
                    + vehicle.driving().events_dropped()
            });
        });
        let state = DrivingState::ALL.map(|state| (state, context.gauge_for("driving_state", state.name())));
        Self {
            machine,
            link_up: context.gauge("link_up"),
            round_trip_ms: context.gauge("round_trip_ms"),
            loss_to_vehicle: context.gauge("loss_to_vehicle"),
            loss_to_desk: context.gauge("loss_to_desk"),
            clock_uncertainty_ms: context.gauge("clock_uncertainty_ms"),
            rate_bits_per_second: context.gauge("rate_bits_per_second"),
            target_bits_per_second: context.gauge("target_bits_per_second"),
            queueing_delay_ms: context.gauge("queueing_delay_ms"),
            random_loss: context.gauge("random_loss"),
            unfinished_frames: context.gauge("unfinished_frames"),
            speed_mps: context.gauge("speed_mps"),
            command_age_ms: context.gauge("command_age_ms"),
            state: state.to_vec(),
        }
    }

    /// Updates all counters and gauges. `speed_mps` is `None` if the speed is unknown.
    pub(super) fn sync(&mut self, vehicle: &Vehicle, speed_mps: Option<f64>) {
        self.machine.sync(vehicle);
        let link = vehicle.link();
        self.link_up.set(f64::from(u8::from(link.up)));
        set_gauge(&self.round_trip_ms, link.round_trip.map(milliseconds));
        self.loss_to_vehicle.set(link.loss_in);
        self.loss_to_desk.set(link.loss_out);
        set_gauge(&self.clock_uncertainty_ms, link.clock_offset.map(|offset| milliseconds(offset.uncertainty)));
        let frames = vehicle.frames();
        self.rate_bits_per_second.set(frames.rate_bits_per_second() as f64);
        self.target_bits_per_second.set(frames.target_bits_per_second() as f64);
        self.queueing_delay_ms.set(milliseconds(frames.queueing_delay()));
        self.random_loss.set(frames.random_loss());
        self.unfinished_frames.set(frames.unfinished_frames() as f64);
        set_gauge(&self.speed_mps, speed_mps);
        let command = vehicle.driving().command();
        set_gauge(&self.command_age_ms, command.map(|command| milliseconds(command.age.estimate)));
        for (state, gauge) in &self.state {
            gauge.set(f64::from(u8::from(*state == vehicle.state())));
        }
    }
}
