//! Remote driving: datagrams, and both ends of a flow that process a sequence of them.

use std::time::Duration;

use bytes::Bytes;
use viaduct_teleop::{
    Desk, DeskSettings, Vehicle, VehicleSettings,
    commands::{Command, Gear},
    driving::{ClaimKind, ClaimOutcome, DrivingState, LimitReason, OperatorId, Reason},
    frames::{Receiver, ReceiverSettings, Sender, SenderSettings, Shape},
    limits::{FRAMES_PER_STREAM_MAX, RECEIVER_OCTETS_MAX},
    wire::{
        Body, Commands, Datagram, DeskHeartbeat, Echo, Feedback, MissingSymbol, NumberedCommand, OpenFrame, Probe,
        StreamId, StreamReport, Symbol, Telemetry, Timing, VehicleHeartbeat,
    },
};
use viaduct_units::{MetresPerSecond, Mono};

/// Length of the record header before each datagram: two octets of its length, one of the time since the one before.
const RECORD_HEADER: usize = 3;
/// Unit of that time.
pub(crate) const UNIT: Duration = Duration::from_micros(700);
/// Epoch of the vehicle and of the desk.
const EPOCHS: (u32, u32) = (1, 2);
/// Datagrams that an end may send after one input.
const TRANSMITS_MAX: usize = 4096;

/// Checks a datagram: writing a parsed one and parsing it again results in the same.
pub fn wire(octets: &[u8]) {
    let Ok(datagram) = Datagram::parse(&Bytes::copy_from_slice(octets)) else { return };
    let written = datagram.to_bytes();
    assert_eq!(written.len(), octets.len());
    assert_eq!(Datagram::parse(&written), Ok(datagram));
}

/// A machine under test.
trait End {
    fn handle_datagram(&mut self, now: Mono, datagram: &Bytes);
    fn handle_timeout(&mut self, now: Mono);
    fn poll_transmit(&mut self) -> Option<Bytes>;
    fn poll_timeout(&self) -> Option<Mono>;
    /// Takes all events.
    fn take_events(&mut self);
    /// Makes an input of the owner.
    fn act(&mut self, _now: Mono, _number: usize) {}
    /// Checks the counters and the limits of the state.
    fn check(&self);
}

/// Implements the methods of [`End`] that each machine has.
macro_rules! of_machine {
    () => {
        fn handle_datagram(&mut self, now: Mono, datagram: &Bytes) {
            Self::handle_datagram(self, now, datagram);
        }

        fn handle_timeout(&mut self, now: Mono) {
            Self::handle_timeout(self, now);
        }

        fn poll_transmit(&mut self) -> Option<Bytes> {
            Self::poll_transmit(self)
        }

        fn poll_timeout(&self) -> Option<Mono> {
            Self::poll_timeout(self)
        }

        fn take_events(&mut self) {
            while self.poll_event().is_some() {}
        }
    };
}

/// Processes a sequence of datagrams. Checks that each datagram sent can be parsed, that no deadline is repeated, and that
/// the state is consistent after each input.
fn process(end: &mut impl End, octets: &[u8]) {
    let mut now = Mono(Duration::from_secs(100));
    for (number, (after, datagram)) in Records(octets).enumerate() {
        now = now.plus(after);
        pass_deadlines(end, now);
        end.act(now, number);
        settle(end);
        end.handle_datagram(now, &Bytes::copy_from_slice(datagram));
        settle(end);
    }
    pass_deadlines(end, now.plus(Duration::from_millis(700)));
}

/// Processes the deadlines before `now`. The same deadline must not occur twice.
fn pass_deadlines(end: &mut impl End, now: Mono) {
    while let Some(due) = end.poll_timeout().filter(|due| *due <= now) {
        end.handle_timeout(due);
        settle(end);
        assert!(end.poll_timeout().is_none_or(|next| next > due), "a deadline is repeated");
    }
}

fn settle(end: &mut impl End) {
    for _ in 0..TRANSMITS_MAX {
        let Some(datagram) = end.poll_transmit() else {
            end.take_events();
            return end.check();
        };
        assert!(datagram.len() <= 1400 && Datagram::parse(&datagram).is_ok(), "{datagram:02x?}");
    }
    panic!("an end sends without limit");
}

impl End for Receiver {
    of_machine!();

    fn check(&self) {
        let counters = self.counters();
        assert_eq!(counters.received, counters.stored + counters.probes + counters.dropped_total(), "{counters:?}");
        assert!(self.buffered_octets() <= RECEIVER_OCTETS_MAX);
    }
}

impl End for Sender {
    of_machine!();

    fn act(&mut self, now: Mono, number: usize) {
        if number.is_multiple_of(4) {
            self.push(now, StreamId(0), Bytes::from(vec![7; 1 + number * 977 % 5000])).expect("the stream exists");
        }
    }

    fn check(&self) {
        let counters = self.counters();
        let unfinished = self.unfinished_frames() as u64;
        assert_eq!(counters.frames, counters.frames_arrived + counters.lost_total() + unfinished, "{counters:?}");
        assert!(
            unfinished <= FRAMES_PER_STREAM_MAX as u64
                && self.random_loss() <= 1.0
                && self.rate_bits_per_second() <= 1_000_000_000
        );
        assert!(counters.dropped_total() <= counters.received);
    }
}

impl End for Vehicle {
    of_machine!();

    fn act(&mut self, now: Mono, number: usize) {
        if number.is_multiple_of(4) {
            self.push_frame(now, StreamId(0), Bytes::from_static(&[7; 3000])).expect("the stream exists");
            self.send_telemetry(now, Bytes::from_static(b"telemetry")).expect("the telemetry is short");
        }
        self.set_speed(now, MetresPerSecond((number % 3) as f64));
        let actuation = self.actuation(now);
        assert!(actuation.acceleration.value().is_finite() && actuation.steering.value().abs() <= 31.5);
    }

    fn check(&self) {
        assert!(self.counters().dropped_total() <= self.counters().received);
        let driving = self.driving();
        let held = matches!(
            driving.state(),
            DrivingState::Ready | DrivingState::Driving | DrivingState::Hold | DrivingState::Ramp
        );
        assert_eq!(driving.holder().is_some(), held, "the state and the grant contradict each other");
        let counters = driving.counters();
        assert_eq!(counters.received, counters.accepted + counters.dropped_total());
    }
}

impl End for Desk {
    of_machine!();

    fn act(&mut self, now: Mono, number: usize) {
        let operator = OperatorId::new(5).expect("5 is not 0");
        if number.is_multiple_of(8) {
            let _ = self.claim(now, ClaimKind::Request, operator);
        }
        self.set_input(now, operator, now, COMMAND);
    }

    fn check(&self) {
        assert!(self.counters().dropped_total() <= self.counters().received);
        assert!(self.frames().buffered_octets() <= RECEIVER_OCTETS_MAX);
    }
}

/// Checks a receiver of frames.
pub fn receiver(octets: &[u8]) {
    process(&mut Receiver::new(ReceiverSettings::default(), EPOCHS.1), octets);
}

/// Checks a sender of frames.
pub fn sender(octets: &[u8]) {
    process(&mut Sender::new(SenderSettings::default(), EPOCHS.0).expect("the settings are valid"), octets);
}

/// Checks the end of a vehicle.
pub fn vehicle(octets: &[u8]) {
    process(&mut Vehicle::new(VehicleSettings::default(), EPOCHS.0).expect("the settings are valid"), octets);
}

/// Checks the end of a desk.
pub fn desk(octets: &[u8]) {
    process(&mut Desk::new(DeskSettings::default(), EPOCHS.1).expect("the settings are valid"), octets);
}

/// Iterator of an input's datagrams, each with the time since the one before.
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = (Duration, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[high, low, after], rest) = self.0.split_first_chunk::<RECORD_HEADER>()?;
        let (datagram, rest) = rest.split_at(usize::from(u16::from_be_bytes([high, low])).min(rest.len()));
        self.0 = rest;
        Some((UNIT * u32::from(after), datagram))
    }
}

fn record(datagrams: impl IntoIterator<Item = Datagram>) -> Vec<u8> {
    let mut records = Vec::new();
    for datagram in datagrams {
        let octets = datagram.to_bytes();
        records.extend_from_slice(&u16::try_from(octets.len()).expect("a datagram is short").to_be_bytes());
        records.push(9);
        records.extend_from_slice(&octets);
    }
    records
}

const COMMAND: Command =
    Command { steering: 0.5, accelerator: 0.2, brake: 0.0, gear: Gear::Drive, dead_man: true, emergency_stop: false };

fn from_vehicle(body: Body) -> Datagram {
    Datagram { epoch: EPOCHS.0, body }
}

fn from_desk(body: Body) -> Datagram {
    Datagram { epoch: EPOCHS.1, body }
}

fn symbol(transmission: u32, frame: u32, index: u16, octets: usize) -> Datagram {
    let shape = Shape::new(octets, 300).expect("the frame is short");
    let last = octets - usize::from(shape.sources() - 1) * shape.symbol_octets();
    let payload = if index + 1 == shape.sources() { last } else { shape.symbol_octets() };
    from_vehicle(Body::Symbol(Symbol {
        transmission,
        sent_us: 1000 * transmission,
        round_trip_100us: 100,
        stream: StreamId(0),
        frame,
        index,
        shape,
        age_100us: 5,
        lifespan_ms: 500,
        payload: Bytes::from(vec![frame as u8; payload]),
    }))
}

fn timing(sequence: u32, echo_epoch: u32) -> Timing {
    // The machines of the targets start at 100 s, and an input lasts for some 10 ms.
    let echo = Echo { epoch: echo_epoch, sent_us: 100_000_000, hold_us: 0 };
    Timing { sequence, sent_us: 5000 * sequence, echo: Some(echo), arrived_of_128: 128 }
}

fn vehicle_heartbeat(sequence: u32) -> Datagram {
    from_vehicle(Body::VehicleHeartbeat(VehicleHeartbeat {
        timing: timing(sequence, EPOCHS.1),
        state: DrivingState::Driving,
        reason: Some(Reason::DeadMan),
        holder: OperatorId::new(5),
        grant: 3,
        requester: OperatorId::new(6),
        claim: sequence,
        outcome: ClaimOutcome::Granted,
        speed_cmps: -5,
        speed_limit_cmps: 500,
        limit_reason: LimitReason::Latency,
        command: 7,
        command_age_100us: Some(90),
        commands_refused: 1,
    }))
}

fn desk_heartbeat(sequence: u32, kind: Option<ClaimKind>) -> Datagram {
    let operator = OperatorId::new(5).expect("5 is not 0");
    let claim = kind.map(|kind| viaduct_teleop::driving::Claim { number: sequence, kind, operator });
    let timing = timing(sequence, EPOCHS.0);
    from_desk(Body::DeskHeartbeat(DeskHeartbeat { timing, picture_latency_100us: Some(300), claim }))
}

fn commands(sequence: u32) -> Datagram {
    let command = |sequence| NumberedCommand { sequence, sampled_us: sequence.wrapping_mul(5000), command: COMMAND };
    let commands = (0..3).map(|before| command(sequence.wrapping_sub(before))).collect();
    from_desk(Body::Commands(Commands { vehicle_epoch: EPOCHS.0, grant: 1, commands }))
}

fn feedback(sequence: u32, largest: u32, needed: u16) -> Datagram {
    let open = vec![OpenFrame { before_latest: 0, needed }];
    let report = StreamReport { stream: StreamId(0), latest: 1, delivered: 2, abandoned: 0, open };
    from_desk(Body::Feedback(Feedback {
        peer_epoch: EPOCHS.0,
        sequence,
        largest,
        settled: largest,
        hold_us: 50,
        arrived_us: 3000 * sequence,
        queue_min_us: 100,
        queue_last_us: 200,
        jitter_us: 50,
        received: 5 * sequence,
        received_octets: 7000 * sequence,
        lost_random: sequence,
        lost_outage: 0,
        streams: vec![report],
        missing: vec![MissingSymbol { stream: StreamId(0), before_latest: 0, index: 1 }],
    }))
}

fn probe(transmission: u32) -> Datagram {
    from_vehicle(Body::Probe(Probe { transmission, sent_us: 1000 * transmission }))
}

fn telemetry(sequence: u32) -> Datagram {
    let payload = Bytes::from_static(b"{\"latitude\":52.27}");
    from_vehicle(Body::Telemetry(Telemetry { sequence, sent_us: 9, payload }))
}

/// Returns one datagram of each kind.
pub(crate) fn datagrams() -> Vec<Vec<u8>> {
    [
        symbol(0, 0, 0, 900),
        symbol(1, 0, 2, 801),
        symbol(2, 0, 5, 900),
        probe(3),
        feedback(1, 3, 2),
        desk_heartbeat(1, None),
        desk_heartbeat(2, Some(ClaimKind::Request)),
        vehicle_heartbeat(1),
        commands(3),
        telemetry(1),
    ]
    .map(|datagram| datagram.to_bytes().to_vec())
    .to_vec()
}

/// Returns sequences of datagrams that a desk receives.
pub(crate) fn to_desk() -> Vec<Vec<u8>> {
    let complete = (0..3).map(|index| symbol(index.into(), 0, index, 900));
    let repaired = [symbol(3, 1, 0, 801), symbol(5, 1, 2, 801), probe(6), symbol(7, 1, 4, 801)];
    let two_frames = [symbol(0, 4, 0, 900), symbol(1, 5, 0, 700), symbol(2, 4, 1, 900), symbol(3, 5, 1, 700)];
    let state = [vehicle_heartbeat(1), telemetry(1), vehicle_heartbeat(2), telemetry(2), vehicle_heartbeat(3)];
    vec![record(complete.chain(repaired)), record(two_frames), record(state)]
}

/// Returns sequences of datagrams that a vehicle receives.
pub(crate) fn to_vehicle() -> Vec<Vec<u8>> {
    // The first transmission is a probe; then the frames follow.
    let feedbacks = (1..12).map(|number| feedback(number, (number - 1) * 3 / 2, 3 - number as u16 % 3));
    let drive = [
        desk_heartbeat(1, None),
        desk_heartbeat(2, Some(ClaimKind::Request)),
        commands(1),
        commands(2),
        desk_heartbeat(3, Some(ClaimKind::TakeOver)),
        commands(5),
        desk_heartbeat(4, Some(ClaimKind::EmergencyStop)),
        commands(6),
    ];
    vec![record(feedbacks), record(drive)]
}
