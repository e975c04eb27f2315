//! Frames over emulated links, in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod common;

use std::time::Duration;

use common::{
    MS, drive, drive_adaptive, ethernet, flow, flow_over, independent, link, outages_of_30_ms, picture, streams,
    summary,
};
use viaduct_netem::{
    LinkSettings, Probability, Profile,
    link::{Delay, Jitter, Loss, Order, Outage, Outages},
};
use viaduct_teleop::{
    frames::{ReceiverDropReason, SenderSettings},
    pacing::PacingSettings,
    wire::StreamId,
};

/// Drives four cameras of 374 kB at 10 Hz over the link. Returns mean and 99th percentile of the latencies in milliseconds,
/// octets sent over octets needed, and the number of decoded frames.
///
/// # Panics
/// If a frame is lost.
fn four_cameras(link: LinkSettings, rounds: u32) -> (f64, f64, f64, u64) {
    let mut flow = flow(4, link, 7);
    let latencies = drive(&mut flow, 4, 374_000, rounds);
    assert_eq!((flow.b().arrived.len(), flow.b().lost.len()), (4 * rounds as usize, 0));
    let sent = flow.sent_by_a();
    let (mean, p99, _) = summary(&latencies);
    let octets = sent.payload_octets as f64 / f64::from(4 * rounds * 374_000);
    (mean, p99, octets, flow.b().receiver.counters().frames_decoded)
}

#[test]
fn four_cameras_lose_nothing_at_random_loss_of_0_3_percent() {
    let (mean, p99, octets, decoded) = four_cameras(ethernet(independent(0.003)), 30);
    assert!(mean <= 12.0 && p99 <= 25.0, "{mean} {p99}");
    assert!(octets <= 1.05, "{octets}");
    assert_eq!(decoded, 0, "lost source symbols are sent again");
}

#[test]
fn four_cameras_lose_nothing_at_random_loss_of_5_percent() {
    let (mean, p99, octets, decoded) = four_cameras(ethernet(independent(0.05)), 30);
    assert!(mean <= 12.0 && p99 <= 25.0, "{mean} {p99}");
    assert!(octets <= 1.12, "{octets}");
    assert_eq!(decoded, 0, "lost source symbols are sent again");
}

#[test]
fn four_cameras_lose_nothing_in_bursts_and_outages() {
    let bursts = Loss::bursts(Probability::new(0.05).unwrap(), 8.0).unwrap();
    four_cameras(ethernet(bursts), 15);
    four_cameras(LinkSettings { outages: outages_of_30_ms(), ..ethernet(Loss::None) }, 15);
}

#[test]
fn an_idle_flow_sends_nothing() {
    let mut flow = flow(1, ethernet(Loss::None), 1);
    flow.with_a(|end, now| end.sender.push(now, StreamId(0), picture(0, 10_000)).unwrap());
    flow.run_for(Duration::from_secs(1));
    let (a, b) = (*flow.sent_by_a(), *flow.sent_by_b());
    flow.run_for(Duration::from_secs(3600));
    assert_eq!((flow.sent_by_a(), flow.sent_by_b(), flow.poll_timeout()), (&a, &b, None));
    assert_eq!(flow.a().finished.len(), 1);
}

#[test]
fn pictures_that_follow_a_driving_link_arrive_in_time() {
    for (cameras, seed) in [(1, 1), (4, 2)] {
        let pacing = PacingSettings { initial_bits_per_second: 2_000_000, ..PacingSettings::default() };
        let settings = SenderSettings { streams: streams(cameras), pacing, ..SenderSettings::default() };
        let mut flow = flow_over(settings, Profile::LteDriving.settings().unwrap(), seed);
        let result = drive_adaptive(&mut flow, cameras, 600, 500 * MS);
        assert_eq!(result.late, 0);
        assert!(result.arrived as f64 >= 0.95 * result.sent as f64, "{result:?}");
        assert!(result.sent > 400 * u64::from(cameras) / 2, "{result:?}");
    }
}

#[test]
fn four_cameras_lose_nothing_over_5g() {
    let settings = SenderSettings { streams: streams(4), ..SenderSettings::default() };
    let mut flow = flow_over(settings, Profile::FiveG.settings().unwrap(), 1);
    let latencies = drive(&mut flow, 4, 374_000, 30);
    assert_eq!((flow.b().arrived.len(), flow.b().lost.len()), (120, 0));
    // Four frames take 74 ms at 173.5 Mbit/s. At the start the rate has to be found.
    let (mean, ..) = summary(&latencies[40..]);
    assert!(mean < 70.0, "{mean}");
    let rate = flow.a().sender.rate_bits_per_second();
    assert!((140_000_000..240_000_000).contains(&rate), "{rate}");
}

#[test]
fn the_rate_reaches_one_gigabit_within_two_frames() {
    let mut flow = flow(4, ethernet(Loss::None), 1);
    drive(&mut flow, 4, 374_000, 2);
    assert!(flow.a().sender.rate_bits_per_second() > 900_000_000, "{}", flow.a().sender.rate_bits_per_second());
}

#[test]
fn a_slower_link_is_found_without_a_long_queue() {
    // 40 Mbit/s carry one camera of 374 kB at 10 Hz, which takes 30 Mbit/s.
    let mut flow = flow(1, link(40_000_000, 5 * MS, Loss::None), 1);
    let mut longest = 0;
    for number in 0..50 {
        let start = flow.now();
        flow.with_a(|end, now| end.sender.push(now, StreamId(0), picture(number, 374_000)).unwrap());
        for part in 1..=20_u32 {
            flow.run_until(start.plus(5 * MS * part));
            longest = longest.max(if number < 5 { 0 } else { flow.queued_a_to_b() });
        }
    }
    // 25 ms are 125 kB.
    assert!(longest < 125_000, "{longest}");
    assert_eq!(flow.b().arrived.len(), 50);
}

#[test]
fn a_path_that_becomes_longer_is_not_a_queue() {
    for longer in [60, 250] {
        // 80 Mbit/s carry two cameras of 374 kB at 10 Hz.
        let mut flow = flow(2, link(80_000_000, 10 * MS, Loss::None), 1);
        drive(&mut flow, 2, 374_000, 30);
        let before = flow.a().sender.rate_bits_per_second();
        flow.set_a_to_b(link(80_000_000, (10 + longer) * MS, Loss::None)).unwrap();
        drive(&mut flow, 2, 374_000, 30);
        let arrived = flow.b().arrived.len();
        drive(&mut flow, 2, 374_000, 20);
        assert_eq!(flow.b().arrived.len(), arrived + 40, "{longer} ms");
        let rate = flow.a().sender.rate_bits_per_second();
        assert!(rate > before * 3 / 5, "{longer} ms: {rate} of {before}");
    }
}

#[test]
fn every_frame_whose_deadline_is_after_the_outage_arrives() {
    for (start, duration) in [(1003, 50), (1003, 400), (1050, 450)] {
        let outage = |link| {
            let (start, duration) = (Duration::from_millis(start), Duration::from_millis(duration));
            LinkSettings { outages: Outages::List(vec![Outage { start, duration }]), ..link }
        };
        let mut flow = flow(4, outage(ethernet(independent(0.003))), 3);
        drive(&mut flow, 4, 374_000, 20);
        // The frames of 1000 ms have 97 to 100 ms after the longest outage, those of 1100 ms have more.
        assert_eq!((flow.b().arrived.len(), flow.b().lost.len()), (80, 0), "{start} {duration}");
    }
}

#[test]
fn a_link_that_is_too_slow_for_all_cameras_carries_the_first() {
    // Four cameras take 128 Mbit/s with headers, the link has 80.
    let mut flow = flow(4, link(80_000_000, 5 * MS, independent(0.003)), 2);
    let rounds = 60;
    drive(&mut flow, 4, 374_000, rounds);
    let clock_b = Duration::from_secs(12_345);
    let of_camera = |camera| flow.b().arrived.iter().filter(move |(_, frame)| frame.stream == StreamId(camera));
    let counts: Vec<usize> = (0..4).map(|camera| of_camera(camera).count()).collect();
    assert!(counts[0] >= 57 && counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    // Two thirds of the capacity at least are used.
    assert!(counts.iter().sum::<usize>() >= 108, "{counts:?}");
    let latencies = of_camera(0).skip(5).map(|(time, frame)| time.0 - clock_b - 100 * MS * frame.number);
    let slowest = latencies.max().unwrap();
    assert!(slowest < 300 * MS, "{slowest:?}");
}

#[test]
fn overtaking_and_duplicated_datagrams_cost_few_octets() {
    let delay = Delay { base: 10 * MS, jitter: Jitter::Normal(2 * MS), order: Order::Free, ..Delay::default() };
    let link =
        LinkSettings { delay, duplicate: Probability::new(0.02).unwrap(), ..link(80_000_000, 10 * MS, Loss::None) };
    let mut flow = flow(1, link, 5);
    drive(&mut flow, 1, 374_000, 50);
    assert_eq!((flow.b().arrived.len(), flow.b().lost.len()), (50, 0));
    let octets = flow.sent_by_a().payload_octets as f64 / (50.0 * 374_000.0);
    assert!(octets < 1.1, "{octets}");
    assert!(flow.b().receiver.counters().dropped(ReceiverDropReason::DuplicateDatagram) > 100);
}
