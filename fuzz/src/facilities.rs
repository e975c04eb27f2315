//! A station with all services of the facilities layer, which receives frames and inputs of its own applications.

use std::time::Duration;

use bytes::Bytes;
use viaduct_its::{
    Event, Repetition, Station,
    facilities::{
        Facilities, FacilitiesSettings, Message, Offset, VehicleState,
        ca_service::CaSettings,
        cp_service::{CpSettings, PerceivedObject},
        cpm::Object,
        den_service::{DenSettings, EventReport},
        denm::{ActionId, Cause},
        va_service::VaSettings,
    },
    limits::LDM_OBJECTS_MAX,
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Now, Position, StationId, StationType};

use crate::{
    seeds,
    station::{self, Records, ego, make_station, start, write_record},
};

/// Station ID of the station under test.
const STATION_ID: StationId = StationId(7);
/// Maximum number of objects perceived at once.
const OBJECTS_MAX: u8 = 20;
/// Number of received frames in a sequence.
const RECEIVED: usize = 6;
/// Number of short sequences for each long one.
const SHORT_TO_LONG: usize = 20;
/// Time after which every event has expired.
const ALL_EXPIRED: Duration = Duration::from_secs(200_000);

/// Processes a sequence of received frames and inputs of applications. Checks that the services' messages can be
/// decoded and sent, that no deadline is missed, and that the map is empty after all objects have expired. Records
/// have the format of [`station::station`]; the first octet selects a frame or an input.
pub fn facilities(octets: &[u8]) {
    let mut world = World::new();
    for (after, record) in Records(octets) {
        world.wait(after);
        if let Some((which, values)) = record.split_first() {
            world.apply(*which, values);
        }
        world.drain();
    }
    world.now = world.now.plus(ALL_EXPIRED);
    world.facilities.handle_timeout(world.now);
    world.drain();
    assert!(world.facilities.ldm().is_empty(), "the map is not empty after all objects have expired");
    assert_eq!(
        world.facilities.counters().unencodable,
        0,
        "a service generates a value that its message cannot encode"
    );
}

struct World {
    now: Now,
    station: Station,
    facilities: Facilities,
    events: Vec<ActionId>,
}

impl World {
    fn new() -> Self {
        let settings = FacilitiesSettings {
            ca: Some(CaSettings::new(STATION_ID)),
            cp: Some(CpSettings::new(STATION_ID)),
            den: Some(DenSettings {
                station_id: STATION_ID,
                station_type: StationType::PASSENGER_CAR,
                keep_alive_forwarding: true,
            }),
            va: Some(VaSettings { clustering: true, ..VaSettings::new(STATION_ID) }),
            ..FacilitiesSettings::default()
        };
        let mut station = make_station(1, 0);
        station.set_ego(start(), ego(start(), 0.0));
        Self { now: start(), station, facilities: Facilities::new(settings, 1), events: Vec::new() }
    }

    fn apply(&mut self, which: u8, values: &[u8]) {
        let mut numbers = Numbers(values);
        match which % 8 {
            0 => self.hear(values),
            1 => self.move_to(&mut numbers),
            2 => self.perceive(&mut numbers),
            3 => self.trigger(&mut numbers),
            4 => self.update(&mut numbers),
            5 => self.terminate(&mut numbers),
            6 => self.facilities.set_t_gen_dcc(numbers.time(Duration::from_millis(1))),
            _ => self.facilities.forget_received(),
        }
    }

    fn hear(&mut self, frame: &[u8]) {
        self.station.handle_frame(self.now, &Bytes::copy_from_slice(frame));
        while let Some(event) = self.station.poll_event() {
            if let Event::Received(received) = event {
                self.facilities.handle_received(self.now, &received);
            }
        }
    }

    fn move_to(&mut self, numbers: &mut Numbers<'_>) {
        let state = VehicleState {
            time: self.now.tai,
            position: Some(numbers.position()),
            speed: Some(MetresPerSecond(numbers.next())),
            heading: Some(Degrees(numbers.next())),
            ..VehicleState::default()
        };
        self.facilities.set_vehicle(self.now, &state);
    }

    fn perceive(&mut self, numbers: &mut Numbers<'_>) {
        let count = u16::from(numbers.octet() % (OBJECTS_MAX + 1));
        let object = |id: u16| {
            let mut object = Object::new(id, self.now.tai, Offset::default());
            object.velocity = Some([MetresPerSecond(numbers.next()), MetresPerSecond(numbers.next())]);
            PerceivedObject { position: numbers.position(), object }
        };
        self.facilities.set_objects((0..count).map(object).collect());
    }

    fn trigger(&mut self, numbers: &mut Numbers<'_>) {
        let report = self.report(numbers);
        self.events.extend(self.facilities.trigger_event(self.now, report));
    }

    fn update(&mut self, numbers: &mut Numbers<'_>) {
        let report = self.report(numbers);
        if let Some(event) = self.events.last() {
            // An error is expected if the event has ended.
            let _ = self.facilities.update_event(self.now, *event, report);
        }
    }

    fn terminate(&mut self, numbers: &mut Numbers<'_>) {
        let report = self.report(numbers);
        if let Some(event) = self.events.pop() {
            // An error is expected if the event has ended.
            let _ = self.facilities.terminate_event(self.now, event, report);
        }
    }

    fn report(&self, numbers: &mut Numbers<'_>) -> EventReport {
        let cause = Cause { code: numbers.octet(), sub_code: numbers.octet() };
        EventReport {
            validity: numbers.time(Duration::from_secs(1)),
            awareness_distance: Some(Metres(numbers.next())),
            repetition: Some(Repetition {
                interval: numbers.time(Duration::from_millis(10)),
                duration: numbers.time(Duration::from_secs(1)),
            }),
            ..EventReport::new(cause, self.now.tai, numbers.position())
        }
    }

    /// Advances the time from deadline to deadline and checks that each is in the future.
    fn wait(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while let Some(due) = self.facilities.poll_timeout().filter(|due| *due <= end.mono) {
            self.now = self.now.plus(due.since(self.now.mono));
            self.facilities.handle_timeout(self.now);
            self.drain();
            assert!(
                self.facilities.poll_timeout().is_none_or(|next| next > self.now.mono),
                "a deadline is in the past"
            );
        }
        self.now = end;
        self.station.handle_timeout(self.now);
    }

    fn drain(&mut self) {
        while let Some(request) = self.facilities.poll_transmit() {
            let message = Message::decode(request.kind, &request.payload).expect("a service's message decodes");
            assert_eq!(message.kind(), request.kind);
            // An error is expected if the message is longer than a packet.
            let _ = self.station.send(self.now, &request);
            station::take_frames(&mut self.station, self.now);
        }
        while self.facilities.poll_event().is_some() {}
        assert!(self.facilities.ldm().len() <= LDM_OBJECTS_MAX);
    }
}

/// Reads values from octets, and zeros after their end.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn pair(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    fn time(&mut self, unit: Duration) -> Duration {
        unit * u32::from(self.pair())
    }

    /// Returns a realistic value, or an extreme one.
    fn next(&mut self) -> f64 {
        match self.pair() {
            u16::MAX => f64::NAN,
            0xFFFE => f64::INFINITY,
            0xFFFD => f64::MIN,
            number => f64::from(number) / 50.0 - 400.0,
        }
    }

    /// Returns a position near the station, or an invalid one.
    fn position(&mut self) -> Position {
        Position::new(45.0 + self.next() / 10_000.0, 7.5 + self.next() / 10_000.0)
    }
}

/// Returns the seeds: frames of every packet type and message, a drive with objects and events, and both combined. The
/// frames are single, after a few steps of a drive, or many together. Most seeds are short, because the others take a
/// hundred times as long.
pub(crate) fn sequences() -> Vec<Vec<u8>> {
    let frames = [station::frames(), seeds::frames(), messages()].concat();
    let received = frames.chunks(RECEIVED).map(|frames| {
        let mut records = Vec::new();
        frames.iter().for_each(|frame| write_record(20, &[&[0], frame.as_slice()].concat(), &mut records));
        records
    });
    let received: Vec<Vec<u8>> = received.collect();
    let mut driven = Vec::new();
    for number in 0..14_u8 {
        let place = [78, 32 + number, 78, 32];
        let event = [94, 0, 0, 60, 80, 0, 0, 50, 0, 30];
        let inputs: [&[u8]; 7] = [
            &[&[1][..], &place, &[82, number], &[90, 0]].concat(),
            &[&[2, if number < 7 { OBJECTS_MAX } else { 4 }][..], &place, &place, &place].concat(),
            &[&[3][..], &event, &place].concat(),
            &[&[1][..], &place, &[82, number], &[90, number]].concat(),
            &[&[4][..], &event, &place].concat(),
            &[&[5][..], &event, &place].concat(),
            &[6, 0, number],
        ];
        write_record(10, inputs.get(usize::from(number) % 7).copied().unwrap_or_default(), &mut driven);
    }
    let both: Vec<Vec<u8>> = received.iter().map(|records| [&driven[..], records].concat()).collect();
    let warned = messages().into_iter().map(|frame| {
        let mut sequence = driven.get(..80).map(<[u8]>::to_vec).unwrap_or_default();
        (0..3).for_each(|_| write_record(50, &[&[0], frame.as_slice()].concat(), &mut sequence));
        sequence
    });
    let long = std::iter::once(driven.clone()).chain(both).chain(received);
    let alone = frames.iter().map(|frame| {
        let mut sequence = Vec::new();
        write_record(20, &[&[0], frame.as_slice()].concat(), &mut sequence);
        sequence
    });
    let short: Vec<Vec<u8>> = alone.chain(warned).collect();
    let shorts = long.clone().count() * SHORT_TO_LONG;
    short.into_iter().cycle().take(shorts).chain(long).collect()
}

/// Returns one frame of another station for each message that fits into a frame.
fn messages() -> Vec<Vec<u8>> {
    let mut sender = make_station(2, 0);
    sender.set_ego(start(), ego(start(), 10.0));
    let mut frames = Vec::new();
    for (kind, octets) in seeds::messages() {
        let request = viaduct_its::SendRequest::single_hop(kind, octets.into());
        if sender.send(start(), &request).is_ok() {
            frames.extend(std::iter::from_fn(|| sender.poll_transmit()));
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_received_and_sent() {
        let mut world = World::new();
        for sequence in sequences() {
            for (after, record) in Records(&sequence) {
                world.wait(after);
                world.apply(record[0], &record[1..]);
                world.drain();
            }
        }
        assert!(world.facilities.ldm().counters().added > 5, "{:?}", world.facilities.ldm().counters());
        assert!(world.facilities.counters().sent > 20, "{:?}", world.facilities.counters());
        assert!(world.facilities.den().is_some_and(|den| den.counters().sent > 2));
    }
}
