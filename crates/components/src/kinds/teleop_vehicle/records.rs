//! The event log: its records on a topic and on disk.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use viaduct_bus::{Meta, Publisher};
use viaduct_messages::DESCRIPTOR_SET;
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::teleop::DrivingEvent as Record;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Context, StartError};
use viaduct_teleop::driving::{DrivingEvent, OperatorId, Vin};
use viaduct_units::{Mono, Tai};
use viaduct_v2x_json::protobuf::JsonOf;

use super::settings::{OperatorSettings, TeleopVehicleSettings};
use super::{EVENTS, TeleopVehicle};
use crate::teleop::event_log::EventLog;
use crate::teleop::operator_id;
use viaduct_units::RateLimiter;

/// Records logged in a second by the node's log. The topic and the file have all of them.
const LOGGED_PER_SECOND: u32 = 10;
/// Largest number of faults in a record.
const FAULTS_MAX: usize = 16;

/// The event log.
pub(super) struct Records {
    publisher: Publisher<Record>,
    log: Option<EventLog>,
    descriptor: MessageDescriptor,
    vin: Vin,
    /// Operators with a configured name.
    operators: Vec<(OperatorId, OperatorSettings)>,
    /// Number of the present or latest trip.
    trip: u64,
    faults: BTreeSet<String>,
    logged: RateLimiter,
}

/// The state of the vehicle at the time of an event.
#[derive(Clone, Copy)]
pub(super) struct Situation<'a> {
    pub(super) mono: Mono,
    pub(super) time: Tai,
    /// State of the vehicle, or `None` if it is unknown or too old.
    pub(super) vehicle: Option<&'a VehicleState>,
    pub(super) operator: Option<OperatorId>,
}

impl Records {
    pub(super) fn new(
        settings: &TeleopVehicleSettings,
        log: Option<EventLog>,
        context: &Context<TeleopVehicle>,
    ) -> Result<Self, StartError> {
        let pool = DescriptorPool::decode(DESCRIPTOR_SET).ok();
        let descriptor = pool.and_then(|pool| pool.get_message_by_name("viaduct.teleop.DrivingEvent"));
        let missing = || StartError::Other("this build lacks the descriptor of viaduct.teleop.DrivingEvent".to_owned());
        let named = |operator: &OperatorSettings| (operator_id(&operator.name), operator.clone());
        Ok(Self {
            publisher: context.publisher(&settings.events, EVENTS)?,
            log,
            descriptor: descriptor.ok_or_else(missing)?,
            vin: settings.vin()?,
            operators: settings.operators.iter().map(named).collect(),
            trip: 0,
            faults: BTreeSet::new(),
            logged: RateLimiter::new(LOGGED_PER_SECOND),
        })
    }

    /// Returns the number of the present or latest trip.
    pub(super) const fn trip(&self) -> u64 {
        self.trip
    }

    /// Returns the present faults.
    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.iter().take(FAULTS_MAX).cloned().collect()
    }

    /// Records an event of driving.
    pub(super) fn driving(&mut self, situation: Situation<'_>, event: &DrivingEvent) {
        if let DrivingEvent::Granted { before: None, .. } = event {
            self.trip = u64::try_from(situation.time.nanos() / 1_000_000_000).unwrap_or(0);
        }
        let situation = match *event {
            DrivingEvent::State { operator, .. } => Situation { operator, ..situation },
            DrivingEvent::EmergencyStop { holder, .. } => Situation { operator: holder, ..situation },
            _ => situation,
        };
        let mut record = self.record(situation, event.name());
        let by = |operator: OperatorId| operator.to_string();
        match *event {
            DrivingEvent::State { from, to, reason, .. } => {
                (record.from, record.to) = (from.name().to_owned(), to.name().to_owned());
                record.reason = reason.map_or_else(String::new, |reason| reason.name().to_owned());
            }
            DrivingEvent::Granted { operator, before, grant, .. } => {
                (record.grant, record.by) = (grant, by(operator));
                record.before = before.map_or_else(String::new, by);
            }
            DrivingEvent::Requested { operator } | DrivingEvent::RequestEnded { operator } => record.by = by(operator),
            DrivingEvent::ClaimRefused { operator, outcome } => {
                (record.by, record.detail) = (by(operator), outcome.name().to_owned());
            }
            DrivingEvent::EmergencyStop { operator, .. } => record.by = operator.map_or_else(String::new, by),
        }
        self.write(situation, record);
    }

    /// Records another event.
    pub(super) fn other(&mut self, situation: Situation<'_>, event: &'static str) {
        let record = self.record(situation, event);
        self.write(situation, record);
    }

    /// Records which faults have begun and ended.
    pub(super) fn set_faults(&mut self, situation: Situation<'_>, present: BTreeSet<String>) {
        let before = std::mem::replace(&mut self.faults, present);
        let begun: Vec<_> = self.faults.difference(&before).map(|fault| ("fault", fault.clone())).collect();
        let ended = before.difference(&self.faults).map(|fault| ("fault_ended", fault.clone()));
        for (event, detail) in begun.into_iter().chain(ended.collect::<Vec<_>>()) {
            let record = Record { detail, ..self.record(situation, event) };
            self.write(situation, record);
        }
    }

    /// Returns a record with the fields that all events have. They are the known fields of the German regulation on remote driving
    /// (StVFernLV, annex 3): the identification of the vehicle, the position with five decimals, the number of the trip, the
    /// certificate of the operator, faults of the system and the version of its software.
    fn record(&self, situation: Situation<'_>, event: &'static str) -> Record {
        let position = situation.vehicle.and_then(|vehicle| vehicle.position.as_ref());
        let operator = situation.operator;
        let named = self.operators.iter().find(|(id, _)| Some(*id) == operator).map(|(_, named)| named);
        Record {
            time: Some(timestamp(situation.time)),
            event: event.to_owned(),
            vin: self.vin.as_str().to_owned(),
            trip: self.trip,
            latitude_deg: position.map(|position| five_decimals(position.latitude_deg)),
            longitude_deg: position.map(|position| five_decimals(position.longitude_deg)),
            speed_mps: situation.vehicle.and_then(|vehicle| vehicle.speed_mps),
            operator: operator.map_or_else(String::new, |operator| operator.to_string()),
            operator_name: named.map_or_else(String::new, |named| named.name.clone()),
            operator_certificate: named.map_or_else(String::new, |named| named.certificate.clone()),
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
            faults: self.faults(),
            ..Record::default()
        }
    }

    fn write(&mut self, situation: Situation<'_>, record: Record) {
        if let Some(events) = self.logged.admit(situation.mono) {
            let Record { event, from, to, reason, operator, by, detail, .. } = &record;
            let [from, to, reason, operator, by, detail] = [from, to, reason, operator, by, detail]
                .map(|text| Some(text.as_str()).filter(|text| !text.is_empty()));
            tracing::info!(event, from, to, reason, operator, by, detail, events, "driving event");
        }
        if let (Some(log), Some(line)) = (&self.log, self.line(&record)) {
            log.write(line);
        }
        // A subscriber whose queue is full counts the drop.
        let _ = self.publisher.try_publish_from(Meta::from_origin(situation.time), record);
    }

    /// Returns the record as JSON.
    fn line(&self, record: &Record) -> Option<String> {
        let encoded = record.encode_to_vec();
        let message = DynamicMessage::decode(self.descriptor.clone(), encoded.as_slice()).ok()?;
        serde_json::to_string(&JsonOf::new(&message)).ok()
    }
}

fn five_decimals(degrees: f64) -> f64 {
    (degrees * 1e5).round() / 1e5
}
