//! Gate of congestion control, with frames of every profile and arbitrary measurements at any time.

use std::time::Duration;

use viaduct_its::dcc::{DccMode, DccProfile, DccSettings, GateKeeper, T_OFF_MAX};
use viaduct_units::Mono;

/// Time after which every frame of an input has expired.
const ALL_EXPIRED: Duration = Duration::from_secs(600);

/// Checks that every frame is sent or counted, higher priorities are sent first, the gate never closes longer than
/// permitted, and no deadline is missed. The first octet selects the mode; then each step has three octets: its kind
/// and two values.
pub fn dcc(octets: &[u8]) {
    let Some((mode, steps)) = octets.split_first() else { return };
    let mode = if mode & 1 == 0 { DccMode::Adaptive } else { DccMode::PassThrough };
    let mut gate = GateKeeper::new(DccSettings { mode, ..DccSettings::default() });
    let mut now = Mono::default();
    for step in steps.chunks_exact(3) {
        let &[which, a, b] = step else { return };
        match which % 4 {
            0 => push(&mut gate, now, a, b),
            1 => gate.set_channel_busy_ratio(now, ratio(a, b)),
            2 => now = wait(&mut gate, now, Duration::from_millis(u64::from(a))),
            _ => drop(gate.poll_transmit(now)),
        }
        check(&gate);
    }
    drain(&mut gate, now.plus(ALL_EXPIRED));
}

fn push(gate: &mut GateKeeper, now: Mono, profile: u8, size: u8) {
    let profile = DccProfile::of_traffic_class(profile % 5);
    // The frame contains its priority. At the end of the range it is longer than a queue.
    let octets = vec![profile as u8; usize::from(size).pow(2) + 1024 * usize::from(size == u8::MAX)];
    gate.push(now, octets, profile, Duration::from_millis(20 * u64::from(size)));
}

/// Returns a value from -0.5 to 1.5, or NaN.
fn ratio(a: u8, b: u8) -> f64 {
    if a == u8::MAX { f64::NAN } else { f64::from(u16::from_be_bytes([a, b])) / 32_768.0 - 0.5 }
}

/// Advances the time from deadline to deadline and takes the frames that may be sent at each.
fn wait(gate: &mut GateKeeper, from: Mono, time: Duration) -> Mono {
    let end = from.plus(time);
    let mut now = from;
    while let Some(due) = gate.poll_timeout().filter(|due| *due <= end) {
        now = now.max(due);
        gate.handle_timeout(now);
        transmit(gate, now);
        assert!(
            gate.poll_timeout().is_none_or(|next| next > now && next <= now.plus(T_OFF_MAX)),
            "a deadline is in the past"
        );
    }
    end
}

/// Takes the frames that may be sent now and checks their order by priority.
fn transmit(gate: &mut GateKeeper, now: Mono) {
    let mut before = 0;
    while let Some(frame) = gate.poll_transmit(now) {
        let profile = frame.first().copied().unwrap_or(before);
        assert!(profile >= before, "a lower priority was sent first");
        before = profile;
    }
}

fn check(gate: &GateKeeper) {
    assert!((0.0..=1.0).contains(&gate.delta()) && gate.delta() > 0.0, "{}", gate.delta());
    assert!((0.0..=1.0).contains(&gate.channel_busy_ratio()), "{}", gate.channel_busy_ratio());
    assert!(gate.t_gen_cam_dcc() <= T_OFF_MAX);
}

fn drain(gate: &mut GateKeeper, now: Mono) {
    gate.handle_timeout(now);
    transmit(gate, now);
    let counters = gate.counters();
    let gone = counters.sent + counters.expired + counters.overflowed + counters.too_long;
    assert_eq!(counters.pushed, gone, "{counters:?}");
}

/// Returns the seeds: a busy channel with frames of every priority, a full queue, and a gate that is never polled.
pub(crate) fn sequences() -> Vec<Vec<u8>> {
    let busy: Vec<u8> = (0..40).flat_map(|number| [0, number % 5, 20 + number, 1, 80, 0, 2, 100, 0, 3, 0, 0]).collect();
    let full: Vec<u8> = (0..40).flat_map(|number| [0, 3, 200 + number]).chain([2, 250, 0]).collect();
    let longest = [0, 2, 255, 1, 255, 255, 2, 255, 0];
    vec![
        [&[0][..], &busy].concat(),
        [&[1][..], &busy].concat(),
        [&[0][..], &full].concat(),
        [&[0][..], &longest].concat(),
    ]
}
