//! Counters and gauges of the desk.

use viaduct_bus::{Counter, Gauge, Hop};
use viaduct_node::Context;
use viaduct_teleop::Desk;
use viaduct_teleop::frames::{FrameLoss, ReceiverDropReason};
use viaduct_teleop::vehicle::FlowDropReason;

use super::TeleopDesk;
use super::mailbox::MailboxCounters;
use super::messages::Report;
use super::session::{Close, CommandRefusal};
use super::settings::CameraDescription;
use crate::machine_counters::MachineCounters;
use crate::teleop::{milliseconds, set_gauge};

/// Counters of the owner of the machine.
pub(super) struct Counters {
    machine: MachineCounters<Desk>,
    pub(super) pictures: Vec<CameraCounters>,
    pub(super) not_jpeg: Counter,
    pub(super) too_long: Counter,
    pub(super) unknown_camera: Counter,
    pub(super) telemetry_malformed: Counter,
    pub(super) commands: Counter,
    pub(super) claims_refused: Counter,
    pub(super) pages: Gauge,
    link_up: Gauge,
    round_trip_ms: Gauge,
    loss_to_vehicle: Gauge,
    loss_to_desk: Gauge,
    clock_uncertainty_ms: Gauge,
    queueing_delay_ms: Gauge,
    frame_memory_octets: Gauge,
    command_age_ms: Gauge,
    command_gap_max_ms: Gauge,
}

/// Counters of one camera.
pub(super) struct CameraCounters {
    pub(super) arrived: Counter,
    pub(super) repaired: Counter,
    pub(super) missed: Gauge,
    pub(super) latency_ms: Gauge,
    /// Time from the capture of a picture to its arrival here, on the desk's clock.
    pub(super) hop: Hop,
    glass_ms: Gauge,
}

impl CameraCounters {
    fn new(context: &Context<TeleopDesk>, name: &str) -> Self {
        Self {
            arrived: context.counter_for("pictures", name),
            repaired: context.counter_for("pictures_repaired", name),
            missed: context.gauge_for("pictures_missed", name),
            latency_ms: context.gauge_for("picture_latency_ms", name),
            hop: context.hop_for(name),
            glass_ms: context.gauge_for("glass_to_glass_ms", name),
        }
    }
}

impl Counters {
    pub(super) fn new(cameras: &[CameraDescription], context: &Context<TeleopDesk>) -> Self {
        let machine = MachineCounters::new(context, |totals| {
            totals.one("heartbeats", |desk: &Desk| desk.counters().heartbeats);
            totals.each("datagrams_dropped", &FlowDropReason::ALL, FlowDropReason::name, |desk, reason| {
                desk.counters().dropped(reason)
            });
            totals.each(
                "frame_datagrams_dropped",
                &ReceiverDropReason::ALL,
                ReceiverDropReason::name,
                |desk, reason| desk.frame_counters().dropped(reason),
            );
            totals.each("frames_lost", &FrameLoss::ALL, FrameLoss::name, |desk, reason| {
                desk.frame_counters().lost(reason)
            });
            totals.one("symbols", |desk| desk.frame_counters().stored);
            totals.one("frames_decoded", |desk| desk.frame_counters().frames_decoded);
            totals.one("feedbacks", |desk| desk.frame_counters().feedbacks);
            totals.one("command_datagrams", |desk| desk.command_counters().sent);
            totals.one("command_datagrams_withheld", |desk| desk.command_counters().withheld);
            totals.one("events_dropped", |desk| desk.counters().events_dropped + desk.frame_counters().events_dropped);
        });
        let refused = |reason| context.counter_for("pictures_refused", reason);
        Self {
            machine,
            pictures: cameras.iter().map(|camera| CameraCounters::new(context, &camera.name)).collect(),
            not_jpeg: refused("not_jpeg"),
            too_long: refused("too_long"),
            unknown_camera: refused("unknown_camera"),
            telemetry_malformed: context.counter("telemetry_malformed"),
            commands: context.counter("commands"),
            claims_refused: context.counter("claims_refused"),
            pages: context.gauge("pages"),
            link_up: context.gauge("link_up"),
            round_trip_ms: context.gauge("round_trip_ms"),
            loss_to_vehicle: context.gauge("loss_to_vehicle"),
            loss_to_desk: context.gauge("loss_to_desk"),
            clock_uncertainty_ms: context.gauge("clock_uncertainty_ms"),
            queueing_delay_ms: context.gauge("queueing_delay_ms"),
            frame_memory_octets: context.gauge("frame_memory_octets"),
            command_age_ms: context.gauge("command_age_ms"),
            command_gap_max_ms: context.gauge("command_gap_max_ms"),
        }
    }

    /// Updates the counters and gauges of the machine.
    pub(super) fn sync(&mut self, desk: &Desk) {
        self.machine.sync(desk);
        let link = desk.link();
        self.link_up.set(f64::from(u8::from(link.up)));
        set_gauge(&self.round_trip_ms, link.round_trip.map(milliseconds));
        self.loss_to_desk.set(link.loss_in);
        self.loss_to_vehicle.set(link.loss_out);
        set_gauge(&self.clock_uncertainty_ms, link.clock_offset.map(|offset| milliseconds(offset.uncertainty)));
        self.queueing_delay_ms.set(milliseconds(desk.frames().queueing_delay()));
        self.frame_memory_octets.set(desk.frames().buffered_octets() as f64);
        let command = desk.vehicle().and_then(|vehicle| vehicle.command);
        set_gauge(&self.command_age_ms, command.map(|(_, age)| milliseconds(age)));
    }

    /// Shows the latencies that the driver's page has measured.
    pub(super) fn show_report(&self, report: &Report) {
        self.command_gap_max_ms.set(report.command_gap_max_ms.into());
        for camera in &report.cameras {
            let Some(counters) = self.pictures.get(usize::from(camera.camera)) else { continue };
            set_gauge(&counters.glass_ms, camera.glass_median_us().map(|us| f64::from(us) / 1e3));
        }
    }
}

/// Counters of the connections.
#[derive(Clone)]
pub(super) struct PageCounters {
    pub(super) connections: Counter,
    pub(super) logins: Counter,
    pub(super) logins_failed: Counter,
    pub(super) malformed: Counter,
    pub(super) refused_origin: Counter,
    pub(super) refused_host: Counter,
    pub(super) refused_protocol: Counter,
    pub(super) refused_commands: Vec<(CommandRefusal, Counter)>,
    /// Logged-in pages whose connection has ended, for any reason.
    pub(super) left: Counter,
    pub(super) mailbox: MailboxCounters,
}

impl PageCounters {
    pub(super) fn new(context: &Context<TeleopDesk>) -> Self {
        let upgrade = |reason| context.counter_for("upgrades_refused", reason);
        let command = |refusal: CommandRefusal| (refusal, context.counter_for("commands_refused", refusal.name()));
        let close = |close: Close| (close, context.counter_for("pages_closed", close.name()));
        Self {
            connections: context.counter("connections"),
            logins: context.counter("logins"),
            logins_failed: context.counter("logins_failed"),
            malformed: context.counter("messages_malformed"),
            refused_origin: upgrade("origin"),
            refused_host: upgrade("host"),
            refused_protocol: upgrade("protocol"),
            refused_commands: CommandRefusal::ALL.into_iter().map(command).collect(),
            left: context.counter("pages_left"),
            mailbox: MailboxCounters {
                closed: Close::ALL.into_iter().map(close).collect(),
                frames: context.counter("frames_sent"),
                superseded: context.counter_for("frames_unsent", "superseded"),
                late: context.counter_for("frames_unsent", "late"),
                states_superseded: context.counter("states_superseded"),
                events_dropped: context.counter_for("page_messages_dropped", "events"),
            },
        }
    }

    pub(super) fn count_refused(&self, refusal: CommandRefusal) {
        if let Some((_, counter)) = self.refused_commands.iter().find(|(of, _)| *of == refusal) {
            counter.increment();
        }
    }

    /// Returns the number of commands that the desk has refused.
    pub(super) fn commands_refused(&self) -> u64 {
        self.refused_commands.iter().map(|(_, counter)| counter.value()).sum()
    }
}
