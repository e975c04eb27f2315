//! The gate keeper in virtual time.

use super::*;
use crate::{
    geonet::{
        BasicHeader, BasicNextHeader, CommonHeader, CommonNextHeader, HeaderType, Lifetime, ShapeKind, TrafficClass,
        mib::ITS_GN_DEFAULT_TRAFFIC_CLASS,
    },
    limits::DCC_QUEUE_FRAMES_MAX,
};

const LIFETIME: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn adaptive() -> GateKeeper {
    GateKeeper::new(DccSettings { mode: DccMode::Adaptive, ..DccSettings::default() })
}

/// Returns a frame of this length whose octets are all `mark`.
fn frame(mark: u8, octets: usize) -> Vec<u8> {
    vec![mark; octets]
}

/// Runs the machine until `end`, with the same busy ratio each 100 ms. Returns the times in milliseconds at which
/// frames were sent.
fn run(gate: &mut GateKeeper, from: u64, end: u64, busy: f64) -> Vec<u64> {
    let mut sent = Vec::new();
    for millis in from..end {
        if millis % 100 == 0 {
            gate.set_channel_busy_ratio(at(millis), busy);
        }
        gate.handle_timeout(at(millis));
        if gate.poll_transmit(at(millis)).is_some() {
            sent.push(millis);
        }
    }
    sent
}

/// In the pass-through mode no frame waits.
#[test]
fn pass_through_sends_at_once() {
    let mut gate = GateKeeper::new(DccSettings::default());
    for mark in 0..5 {
        gate.push(at(0), frame(mark, 1000), DccProfile::Dp3, LIFETIME);
    }
    let sent: Vec<u8> = std::iter::from_fn(|| gate.poll_transmit(at(0))).map(|frame| frame[0]).collect();
    assert_eq!(sent, [0, 1, 2, 3, 4]);
    assert_eq!((gate.t_gen_cam_dcc(), gate.poll_timeout()), (Duration::ZERO, None));
}

/// TS 102 687: a frame of a higher priority is sent first.
#[test]
fn highest_priority_is_sent_first() {
    let mut gate = GateKeeper::new(DccSettings::default());
    for (mark, profile) in [(3, DccProfile::Dp3), (1, DccProfile::Dp1), (2, DccProfile::Dp2), (0, DccProfile::Dp0)] {
        gate.push(at(0), frame(mark, 100), profile, LIFETIME);
    }
    let sent: Vec<u8> = std::iter::from_fn(|| gate.poll_transmit(at(0))).map(|frame| frame[0]).collect();
    assert_eq!(sent, [0, 1, 2, 3]);
}

/// TS 102 687, annex B: the gate is closed for `T_on / delta` after a frame, at least 25 ms.
#[test]
fn gate_closes_after_a_frame() {
    let mut gate = adaptive();
    for _ in 0..2 {
        gate.push(at(0), frame(7, 300), DccProfile::Dp2, LIFETIME);
    }
    assert!(gate.poll_transmit(at(0)).is_some());
    // 480 us on air divided by delta_max (0.03) are 16 ms, less than the minimum.
    assert_eq!(gate.poll_timeout(), Some(at(25)));
    assert!(gate.poll_transmit(at(24)).is_none());
    assert!(gate.poll_transmit(at(25)).is_some());
}

/// TS 102 687, annex B: `T_on` is the air time of the packet. The Ethernet header is not sent on air.
#[test]
fn ethernet_header_is_not_on_air() {
    let mut gate = adaptive();
    gate.limeric = after_busy();
    (0..2).for_each(|_| gate.push(at(0), frame(7, 100 + HEADER_OCTETS), DccProfile::Dp2, LIFETIME));
    assert!(gate.poll_transmit(at(0)).is_some());
    let closed = air_time(100, 48).div_f64(gate.delta());
    assert!(closed > T_OFF_MIN && closed < T_OFF_MAX, "{closed:?}");
    assert_eq!((gate.poll_timeout(), gate.t_gen_cam_dcc()), (Some(Mono(closed)), closed));
}

/// TS 102 687, annex B: the gate is closed for at most one second.
#[test]
fn gate_opens_after_at_most_one_second() {
    let mut gate = adaptive();
    run(&mut gate, 0, 60_000, 1.0);
    assert_eq!(gate.delta(), limeric::DELTA_MIN);
    gate.push(at(60_000), frame(7, 2000), DccProfile::Dp2, LIFETIME);
    gate.push(at(60_000), frame(7, 2000), DccProfile::Dp2, Duration::from_secs(9));
    assert_eq!(run(&mut gate, 60_000, 62_000, 1.0), [60_000, 61_000]);
    assert_eq!(gate.t_gen_cam_dcc(), T_OFF_MAX);
}

/// TS 102 687, 5.4: a station sends less on a busy channel, and more again when the channel is free.
#[test]
fn rate_follows_the_channel() {
    let mut gate = adaptive();
    let mut rate = |from: u64, busy: f64| {
        let mut sent = 0;
        for second in from..from + 60 {
            (0..20).for_each(|_| gate.push(at(second * 1000), frame(7, 400), DccProfile::Dp2, LIFETIME));
            let times = run(&mut gate, second * 1000, second * 1000 + 1000, busy);
            sent = times.len();
        }
        sent
    };
    let (free, busy, free_again) = (rate(0, 0.1), rate(60, 0.95), rate(120, 0.1));
    assert_eq!((free, free_again), (20, 20));
    assert!(busy <= 2, "{busy}");
}

/// TS 102 687, annex B: a new `delta` moves the opening of a gate that is closed.
#[test]
fn evaluation_step_moves_the_opening() {
    let mut gate = adaptive();
    gate.limeric = after_busy();
    gate.push(at(0), frame(7, 1000), DccProfile::Dp2, LIFETIME);
    gate.push(at(0), frame(7, 1000), DccProfile::Dp2, LIFETIME);
    assert!(gate.poll_transmit(at(0)).is_some());
    let before = gate.gate.unwrap().until;
    assert_eq!(before, at(1000));
    for millis in (0..800).step_by(100) {
        gate.set_channel_busy_ratio(at(millis), 0.0);
        gate.handle_timeout(at(millis));
    }
    assert!(gate.gate.unwrap().until < before);
}

/// TS 102 687, annex B (B.2): a new `delta` rescales the remaining part of the wait. The gate opens 25 ms to 1 s after
/// the frame.
#[test]
fn opening_is_rescaled_by_the_new_delta() {
    let mut gate = adaptive();
    let on_air = Duration::from_micros(1000);
    let delta = after_busy().delta();
    for (until, now, expected_ms) in [(200, 100, 100.0 + 0.5 / delta), (40, 10, 10.0 + 0.75 / delta)] {
        gate.limeric = after_busy();
        gate.gate = Some(ClosedGate { since: at(0), until: at(until), on_air });
        gate.reschedule(at(now));
        let opening = gate.gate.unwrap().until.since(at(0)).as_secs_f64() * 1000.0;
        assert!((opening - f64::clamp(expected_ms, 25.0, 1000.0)).abs() < 0.001, "{opening} {expected_ms}");
    }
    gate.limeric = Limeric::new();
    gate.gate = Some(ClosedGate { since: at(0), until: at(1000), on_air });
    gate.reschedule(at(5));
    assert_eq!(gate.gate.unwrap().until.since(at(0)).as_millis(), 38, "5 ms and 99.5 % of 1 ms / 0.03");
    gate.gate = Some(ClosedGate { since: at(0), until: at(30), on_air: Duration::from_micros(10) });
    gate.reschedule(at(5));
    assert_eq!(gate.gate.unwrap().until, at(25), "not sooner");
}

fn after_busy() -> Limeric {
    let mut limeric = Limeric::new();
    for _ in 0..1000 {
        limeric.measure(1.0);
        limeric.step();
    }
    limeric
}

/// TS 102 687: a frame whose lifetime ends while it waits is dropped, and counted.
#[test]
fn expired_frame_is_dropped() {
    let mut gate = adaptive();
    gate.push(at(0), frame(1, 100), DccProfile::Dp2, LIFETIME);
    gate.push(at(0), frame(2, 100), DccProfile::Dp2, Duration::from_millis(10));
    assert!(gate.poll_transmit(at(0)).is_some());
    gate.handle_timeout(at(10));
    assert_eq!(gate.poll_transmit(at(100)), None);
    assert_eq!(gate.counters(), DccCounters { pushed: 2, sent: 1, expired: 1, ..DccCounters::default() });
}

/// A full queue drops its oldest frame, and the counters add up.
#[test]
fn full_queue_drops_its_oldest() {
    let mut gate = adaptive();
    let pushed = DCC_QUEUE_FRAMES_MAX + 3;
    (0..pushed).for_each(|i| gate.push(at(0), frame(u8::try_from(i).unwrap(), 10), DccProfile::Dp3, LIFETIME));
    gate.push(at(0), frame(0, DCC_QUEUE_OCTETS_MAX + 1), DccProfile::Dp3, LIFETIME);
    assert_eq!(gate.poll_transmit(at(0)).map(|frame| frame[0]), Some(3));
    let counters = gate.counters();
    assert_eq!((counters.overflowed, counters.too_long, counters.sent), (3, 1, 1));
    let waiting = u64::try_from(DCC_QUEUE_FRAMES_MAX - 1).unwrap();
    assert_eq!(counters.pushed, counters.sent + counters.expired + counters.overflowed + counters.too_long + waiting);
}

/// A queue has a limit in octets, too.
#[test]
fn queue_is_bounded_in_octets() {
    let mut gate = adaptive();
    for _ in 0..DCC_QUEUE_FRAMES_MAX {
        gate.push(at(0), frame(7, DCC_QUEUE_OCTETS_MAX / 4), DccProfile::Dp3, LIFETIME);
    }
    assert_eq!(gate.counters().overflowed, u64::try_from(DCC_QUEUE_FRAMES_MAX - 4).unwrap());
}

/// TS 102 687: forwarded packets, beacons and packets of the location service have a lower priority than own messages.
#[test]
fn forwarded_frame_has_the_lowest_profile() {
    let of = |header_type, hops: (u8, u8), traffic_class| {
        let (remaining_hop_limit, maximum_hop_limit) = hops;
        let next_header = BasicNextHeader::CommonHeader;
        let basic =
            BasicHeader { version: 1, next_header, lifetime: Lifetime::from_duration(LIFETIME), remaining_hop_limit };
        let next_header = CommonNextHeader::BtpB;
        let common = CommonHeader {
            next_header,
            header_type,
            traffic_class,
            mobile: true,
            payload_length: 0,
            maximum_hop_limit,
        };
        DccProfile::of_packet(&basic, &common)
    };
    let area = HeaderType::GeoBroadcast(ShapeKind::Circle);
    assert_eq!(of(area, (10, 10), TrafficClass::DP0), DccProfile::Dp0, "an own warning");
    assert_eq!(of(area, (9, 10), TrafficClass::DP0), DccProfile::Dp3, "a forwarded warning");
    assert_eq!(of(HeaderType::SingleHopBroadcast, (1, 1), TrafficClass::DP2), DccProfile::Dp2, "a CAM");
    for header_type in [HeaderType::Beacon, HeaderType::LocationRequest, HeaderType::LocationReply] {
        assert_eq!(of(header_type, (1, 1), ITS_GN_DEFAULT_TRAFFIC_CLASS), DccProfile::Dp3, "{header_type:?}");
    }
}

/// EN 302 636-4-1, 9.7.5: the TC ID selects the profile.
#[test]
fn traffic_class_selects_the_profile() {
    let profiles: Vec<DccProfile> = [0, 1, 2, 3, 63].into_iter().map(DccProfile::of_traffic_class).collect();
    assert_eq!(profiles[..4], DccProfile::ALL);
    assert_eq!(profiles[4], DccProfile::Dp3);
}
