//! The facilities services of a station: inputs come from the bus, generated messages go to the station machine, events and the
//! local dynamic map go to the bus.

mod alacarte;
mod events;
pub mod fuzzing;
mod inputs;
mod outputs;

use std::collections::BTreeMap;
use std::time::Duration;

use viaduct_bus::{Meta, Publisher, Sample, Subscriber};
use viaduct_its::facilities::ldm::{ClockReport, LdmEvent, LdmKey, LdmObject, Query};
use viaduct_its::facilities::{Facilities, FacilitiesEvent, VehicleState};
use viaduct_its::geonet::{Area, Shape};
use viaduct_its::{Ego, Received, SendRequest};
use viaduct_messages::viaduct::its::{EventNotice, EventRequest, LocalDynamicMap};
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle;
use viaduct_node::{Context, Edges, StartError};
use viaduct_units::{Metres, MetresPerSecond, Mono, Now, Position, StationId, StationType};

use self::events::NamedEvents;
use self::inputs::Clock;
pub(super) use self::inputs::InputError;
use super::counters::{Loss, ServiceCounters};
use super::settings::{ItsStationSettings, LdmQuerySettings, LdmSettings, ServicesSettings, VehicleRoleSetting};
use super::{ItsStation, OFFERED};

/// A message on an input topic.
pub(super) enum Input {
    Vehicle(Sample<vehicle::VehicleState>),
    Objects(Sample<PerceivedObjects>),
    Event(Sample<EventRequest>),
}

impl Input {
    pub(super) fn meta(&self) -> Meta {
        match self {
            Self::Vehicle(sample) => sample.meta(),
            Self::Objects(sample) => sample.meta(),
            Self::Event(sample) => sample.meta(),
        }
    }
}

/// The services with their topics and counters.
pub(super) struct Services {
    facilities: Facilities,
    /// Special role of the vehicle, which CAMs contain.
    role: Option<VehicleRoleSetting>,
    vehicle: Option<Subscriber<vehicle::VehicleState>>,
    objects: Option<Subscriber<PerceivedObjects>>,
    events: Option<Subscriber<EventRequest>>,
    notices: Option<Publisher<EventNotice>>,
    map: Option<MapTopic>,
    /// Time shift in nanoseconds of map objects that come from a replayed capture.
    shifts: BTreeMap<LdmKey, i64>,
    /// Last known movement of the station.
    state: Option<VehicleState>,
    /// Events reported by applications.
    named: NamedEvents,
    /// Report on the sender's clock that the last received message caused; returned with that message.
    clock_report: Option<ClockReport>,
    counters: ServiceCounters,
}

/// The topic of the local dynamic map.
struct MapTopic {
    publisher: Publisher<LocalDynamicMap>,
    period: Duration,
    due: Mono,
    radius: Option<Metres>,
    queries: Vec<QueryTopic>,
}

/// The topic of one query of the map.
struct QueryTopic {
    publisher: Publisher<LocalDynamicMap>,
    /// The query without its area.
    query: Query,
    within: Option<Metres>,
    newer_than: Option<Duration>,
}

impl QueryTopic {
    fn new(settings: &LdmQuerySettings, context: &Context<ItsStation>) -> Result<Self, StartError> {
        let LdmQuerySettings { station_id, only_others, .. } = *settings;
        let station_id = station_id.map(StationId);
        Ok(Self {
            publisher: context.publisher(&settings.topic, OFFERED)?,
            query: Query { kinds: settings.kinds(), station_id, only_others, ..Query::default() },
            within: settings.within_m.map(|metres| Metres(metres.into())),
            newer_than: settings.newer_than_ms.map(|millis| Duration::from_millis(millis.into())),
        })
    }

    /// Returns the query with its area around `here`, or `None` if the query has a radius and the position is unknown.
    fn at(&self, here: Option<Position>) -> Option<Query> {
        let area = match self.within {
            Some(radius) => Some(Area { centre: here?, shape: Shape::Circle { radius } }),
            None => None,
        };
        Some(Query { area, ..self.query.clone() })
    }
}

/// Adds the topics that the services read and publish.
pub(super) fn edges(settings: &ServicesSettings, mut edges: Edges) -> Edges {
    if let Some(topic) = &settings.vehicle {
        edges = edges.reads::<vehicle::VehicleState>("services.vehicle", topic, OFFERED);
    }
    if let Some(topic) = &settings.objects {
        edges = edges.reads::<PerceivedObjects>("services.objects", topic, OFFERED);
    }
    if let Some(topic) = &settings.events {
        edges = edges.reads::<EventRequest>("services.events", topic, OFFERED);
    }
    if settings.den.is_some() {
        edges = edges.publishes::<EventNotice>("services.notices", &settings.notices, OFFERED);
    }
    if let Some(ldm) = &settings.ldm {
        edges = edges.publishes::<LocalDynamicMap>("services.ldm.topic", &ldm.topic, OFFERED);
        for (number, query) in ldm.queries.iter().enumerate() {
            let key = format!("services.ldm.queries.{number}.topic");
            edges = edges.publishes::<LocalDynamicMap>(&key, &query.topic, OFFERED);
        }
    }
    edges
}

/// Waits for the next input. Waits forever if there are no services.
pub(super) async fn next_input(services: Option<&Services>) -> Input {
    let Some(Services { vehicle, objects, events, .. }) = services else {
        return std::future::pending().await;
    };
    tokio::select! {
        sample = next(vehicle.as_ref()) => Input::Vehicle(sample),
        sample = next(objects.as_ref()) => Input::Objects(sample),
        sample = next(events.as_ref()) => Input::Event(sample),
    }
}

async fn next<M: viaduct_messages::Message>(subscriber: Option<&Subscriber<M>>) -> Sample<M> {
    if let Some(subscriber) = subscriber
        && let Some(sample) = subscriber.recv().await
    {
        return sample;
    }
    std::future::pending().await
}

impl Services {
    pub(super) fn new(
        settings: &ServicesSettings,
        station: &ItsStationSettings,
        now: Now,
        seed: u64,
        context: &Context<ItsStation>,
    ) -> Result<Self, StartError> {
        let map = |ldm: &LdmSettings| -> Result<MapTopic, StartError> {
            let period = Duration::from_millis(ldm.period_ms);
            let publisher = context.publisher(&ldm.topic, OFFERED)?;
            let radius = ldm.radius_m.map(|radius| Metres(radius.into()));
            let queries = ldm.queries.iter().map(|query| QueryTopic::new(query, context)).collect::<Result<_, _>>()?;
            Ok(MapTopic { publisher, period, due: now.mono.plus(period), radius, queries })
        };
        let notices = settings.den.as_ref().map(|_| context.publisher(&settings.notices, OFFERED));
        let facilities = settings.facilities(StationId(station.station_id), StationType(station.station_type));
        let mut services = Self {
            facilities: Facilities::new(facilities, seed),
            role: settings.ca.as_ref().and_then(|ca| ca.role),
            vehicle: settings.vehicle.as_ref().map(|topic| context.subscribe(topic, OFFERED)).transpose()?,
            objects: settings.objects.as_ref().map(|topic| context.subscribe(topic, OFFERED)).transpose()?,
            events: settings.events.as_ref().map(|topic| context.subscribe(topic, OFFERED)).transpose()?,
            notices: notices.transpose()?,
            map: settings.ldm.as_ref().map(map).transpose()?,
            shifts: BTreeMap::new(),
            state: None,
            named: NamedEvents::default(),
            clock_report: None,
            counters: ServiceCounters::new(context),
        };
        if let Some(cp) = &settings.cp
            && let Some(service) = services.facilities.cp_mut()
        {
            service.set_sensors(cp.sensors());
        }
        services.set_lights(false, false);
        Ok(services)
    }

    /// Updates the state of light bar and siren of a vehicle with a special role.
    fn set_lights(&mut self, light_bar: bool, siren: bool) {
        if let Some(ca) = self.facilities.ca_mut()
            && let Some(role) = self.role
        {
            ca.set_special_vehicle(Some(role.container(light_bar, siren)));
        }
    }

    /// Returns the next input that is waiting, or `None`.
    pub(super) fn try_next_input(&self) -> Option<Input> {
        let vehicle = || self.vehicle.as_ref()?.try_recv().map(Input::Vehicle);
        let objects = || self.objects.as_ref()?.try_recv().map(Input::Objects);
        let event = || self.events.as_ref()?.try_recv().map(Input::Event);
        vehicle().or_else(objects).or_else(event)
    }

    /// Returns `true` if the station's movement comes from a topic.
    pub(super) const fn has_vehicle_topic(&self) -> bool {
        self.vehicle.is_some()
    }

    /// Passes an input to the services. Returns the new position of the station if the input contained one.
    ///
    /// # Errors
    /// Returns the reason why the input is rejected, which is also counted.
    pub(super) fn handle_input(&mut self, now: Now, input: &Input) -> Result<Option<Ego>, InputError> {
        let clock = |meta: Meta| Clock::new(now.tai, meta.origin);
        let handled = match input {
            Input::Vehicle(sample) => inputs::vehicle_state(sample, clock(sample.meta())).map(|state| {
                self.set_lights(sample.light_bar, sample.siren);
                self.set_vehicle(now, &state);
                inputs::ego(&state)
            }),
            Input::Objects(sample) => inputs::objects(sample, clock(sample.meta())).map(|objects| {
                self.facilities.set_objects(objects);
                None
            }),
            Input::Event(sample) => {
                let here = self.state.and_then(|state| state.position);
                self.named.take(&mut self.facilities, now, sample, here).map(|()| None)
            }
        };
        handled.inspect_err(|error| self.counters.count_rejected(error))
    }

    /// Renews the position of a station that does not move.
    pub(super) fn set_fixed_position(&mut self, now: Now, position: Position) {
        let state = VehicleState {
            time: now.tai,
            position: Some(position),
            speed: Some(MetresPerSecond(0.0)),
            ..VehicleState::default()
        };
        self.set_vehicle(now, &state);
    }

    /// Sets the minimum interval between CAMs on a busy channel (`T_GenCam_DCC`).
    pub(super) fn set_t_gen_dcc(&mut self, t_gen: Duration) {
        self.facilities.set_t_gen_dcc(t_gen);
    }

    /// Passes a received message to the services and publishes the resulting events. `shift_ns` shifts the times of a replayed
    /// capture to now; it is 0 otherwise.
    ///
    /// Returns a report on the sender's clock if this message revealed its offset.
    #[must_use]
    pub(super) fn handle_received(
        &mut self,
        now: Now,
        packet: &Received,
        cause: &Meta,
        shift_ns: i64,
    ) -> Option<ClockReport> {
        self.facilities.handle_received(now, packet);
        self.publish_events_shifted(cause, shift_ns);
        self.clock_report.take()
    }

    /// Deletes everything received, because the capture restarts. Own events and services continue; a VAM cluster is
    /// dissolved, since its members came from the capture.
    pub(super) fn restart(&mut self, cause: &Meta) {
        self.facilities.forget_received();
        self.publish_events_shifted(cause, 0);
    }

    /// Updates the counters that mirror those of the services. Returns the losses since the last call.
    pub(super) fn sync_counters(&mut self) -> Vec<Loss> {
        self.counters.sync(&mut self.facilities)
    }

    /// Handles timeouts of the services, and publishes the map if it is due.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        if self.facilities.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.facilities.handle_timeout(now);
        }
        self.publish_map(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        let map = self.map.as_ref().map(|map| map.due);
        self.facilities.poll_timeout().into_iter().chain(map).min()
    }

    /// Returns the next message to send.
    pub(super) fn poll_transmit(&mut self) -> Option<SendRequest> {
        self.facilities.poll_transmit()
    }

    /// Publishes the events of the services. Changes of the map appear in its next message.
    pub(super) fn publish_events(&mut self, cause: &Meta) {
        self.publish_events_shifted(cause, 0);
    }

    fn publish_events_shifted(&mut self, cause: &Meta, shift_ns: i64) {
        while let Some(event) = self.facilities.poll_event() {
            match event {
                FacilitiesEvent::Denm(indication, head, security) => {
                    if let Some(notices) = &self.notices {
                        // A subscriber whose queue is full counts the drop.
                        let notice = outputs::notice(indication, &head, security, shift_ns);
                        let _ = notices.try_publish_from(cause, notice);
                    }
                }
                FacilitiesEvent::DenmDropped(reason, _) => self.counters.count_ignored_denm(reason),
                FacilitiesEvent::ClockOffset(report) => self.clock_report = Some(report),
                FacilitiesEvent::Map(LdmEvent::Added(object) | LdmEvent::Updated(object))
                    if shift_ns != 0 && self.map.is_some() =>
                {
                    self.shifts.insert(object.key, shift_ns);
                }
                FacilitiesEvent::Map(
                    LdmEvent::Added(LdmObject { key, .. })
                    | LdmEvent::Updated(LdmObject { key, .. })
                    | LdmEvent::Removed(key, _),
                ) => drop(self.shifts.remove(&key)),
                FacilitiesEvent::Map(LdmEvent::ReceivedForgotten) => self.shifts.clear(),
            }
        }
    }

    fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        self.state = Some(*state);
        self.facilities.set_vehicle(now, state);
        let radius = self.map.as_ref().and_then(|map| map.radius);
        if let Some(centre) = state.position
            && let Some(radius) = radius
        {
            self.facilities.ldm_mut().set_area(Area { centre, shape: Shape::Circle { radius } });
        }
    }

    fn publish_map(&mut self, now: Now) {
        let Some(map) = self.map.as_mut().filter(|map| map.due <= now.mono) else { return };
        map.due = now.mono.plus(map.period);
        let known = self.facilities.ldm();
        // Events about removed objects may have been lost.
        self.shifts.retain(|key, _| known.get(key).is_some());
        let meta = Meta::from_origin(now.tai);
        let everything = outputs::map(known.query(&Query::default()), now, &self.shifts);
        // A subscriber whose queue is full counts the drop.
        let _ = map.publisher.try_publish_from(meta, everything);
        let here = self.state.and_then(|state| state.position);
        for topic in &map.queries {
            let Some(query) = topic.at(here) else { continue };
            let mut found = outputs::map(known.query(&query), now, &self.shifts);
            if let Some(age) = topic.newer_than {
                outputs::keep_newer(&mut found, now, age);
            }
            let _ = topic.publisher.try_publish_from(meta, found);
        }
    }
}
