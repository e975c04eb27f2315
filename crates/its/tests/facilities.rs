//! The facilities layer with any input: it does not panic, each request is a valid message, and CAMs keep their minimum
//! interval.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use proptest::prelude::*;
use viaduct_its::{
    Repetition, SendRequest,
    facilities::{
        Facilities, FacilitiesSettings, Message, MessageKind, Offset, VehicleState,
        ca_service::{CaSettings, T_GEN_CAM_MIN},
        cp_service::{CpSettings, PerceivedObject},
        cpm::Object,
        den_service::{DenSettings, EventReport},
        denm::{ActionId, Cause},
        va_service::VaSettings,
    },
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Mono, Now, Position, StationId, StationType, TimestampIts};

/// One input of the layer.
#[derive(Clone, Debug)]
enum Input {
    Vehicle { latitude: f64, longitude: f64, speed: f64, heading: f64 },
    Objects { count: u8, velocity: f64 },
    Trigger { cause: u8, validity_s: u32, interval_ms: u64, distance: f64 },
    Terminate { latest: usize },
    Wait { millis: u64 },
}

/// Generates any number, including NaN and infinities.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -400.0..400.0, 1 => any::<f64>(), 1 => Just(f64::NAN)]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => (number(), number(), number(), number())
            .prop_map(|(latitude, longitude, speed, heading)| Input::Vehicle { latitude, longitude, speed, heading }),
        1 => (any::<u8>(), number()).prop_map(|(count, velocity)| Input::Objects { count, velocity }),
        1 => (any::<u8>(), any::<u32>(), any::<u64>(), number()).prop_map(|(cause, validity_s, interval_ms, distance)| {
            Input::Trigger { cause, validity_s, interval_ms, distance }
        }),
        1 => any::<usize>().prop_map(|latest| Input::Terminate { latest }),
        8 => (0..3_000_u64).prop_map(|millis| Input::Wait { millis }),
    ]
}

struct World {
    now: Now,
    facilities: Facilities,
    events: Vec<ActionId>,
    /// Time of the last CAM.
    last_cam: Option<Mono>,
}

impl World {
    fn new() -> Self {
        let settings = FacilitiesSettings {
            ca: Some(CaSettings::new(StationId(7))),
            cp: Some(CpSettings::new(StationId(7))),
            den: Some(DenSettings {
                station_id: StationId(7),
                station_type: StationType::PASSENGER_CAR,
                keep_alive_forwarding: true,
            }),
            va: Some(VaSettings { clustering: true, ..VaSettings::new(StationId(7)) }),
            ..FacilitiesSettings::default()
        };
        let now = Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() };
        Self { now, facilities: Facilities::new(settings, 1), events: Vec::new(), last_cam: None }
    }

    fn apply(&mut self, input: &Input) {
        match *input {
            Input::Vehicle { latitude, longitude, speed, heading } => {
                let state = VehicleState {
                    time: self.now.tai,
                    position: Some(Position::new(latitude, longitude)),
                    speed: Some(MetresPerSecond(speed)),
                    heading: Some(Degrees(heading)),
                    ..VehicleState::default()
                };
                self.facilities.set_vehicle(self.now, &state);
            }
            Input::Objects { count, velocity } => self.perceive(count, velocity),
            Input::Trigger { cause, validity_s, interval_ms, distance } => {
                let interval = Duration::from_millis(interval_ms);
                let report = EventReport {
                    validity: Duration::from_secs(validity_s.into()),
                    awareness_distance: Some(Metres(distance)),
                    repetition: Some(Repetition { interval, duration: Duration::MAX }),
                    ..self.report(cause)
                };
                self.events.extend(self.facilities.trigger_event(self.now, report));
            }
            Input::Terminate { latest } => {
                let event = self.events.len().checked_sub(1).map(|last| self.events[latest % (last + 1)]);
                let ended = event.map(|event| self.facilities.terminate_event(self.now, event, self.report(0)));
                assert!(event.is_none() || ended.is_some());
            }
            Input::Wait { millis } => self.wait(millis),
        }
        self.drain();
    }

    fn report(&self, code: u8) -> EventReport {
        EventReport::new(Cause { code, sub_code: 0 }, self.now.tai, Position::new(45.0, 7.6))
    }

    fn perceive(&mut self, count: u8, velocity: f64) {
        let object = |id: u8| {
            let mut object = Object::new(id.into(), self.now.tai, Offset::default());
            object.velocity = Some([MetresPerSecond(velocity), MetresPerSecond(-velocity)]);
            PerceivedObject { position: Position::new(45.0, velocity), object }
        };
        self.facilities.set_objects((0..count).map(object).collect());
    }

    /// Runs from deadline to deadline. A deadline is never in the past.
    fn wait(&mut self, millis: u64) {
        let end = self.now.plus(Duration::from_millis(millis));
        while let Some(due) = self.facilities.poll_timeout().filter(|due| *due <= end.mono) {
            self.now = self.now.plus(due.since(self.now.mono));
            self.facilities.handle_timeout(self.now);
            self.drain();
            assert!(self.facilities.poll_timeout().is_none_or(|next| next > self.now.mono), "a deadline that is over");
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(request) = self.facilities.poll_transmit() {
            self.check(&request);
        }
        while self.facilities.poll_event().is_some() {}
    }

    fn check(&mut self, request: &SendRequest) {
        Message::decode(request.kind, &request.payload).unwrap();
        if request.kind == MessageKind::Cam {
            assert!(self.last_cam.is_none_or(|last| self.now.mono.since(last) >= T_GEN_CAM_MIN));
            self.last_cam = Some(self.now.mono);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_causes_a_panic(inputs in proptest::collection::vec(input(), 1..60)) {
        let mut world = World::new();
        inputs.iter().for_each(|input| world.apply(input));
        let counters = world.facilities.counters();
        prop_assert_eq!((counters.unencodable, counters.events_lost), (0, 0));
    }
}
