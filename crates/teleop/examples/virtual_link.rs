//! Frames over emulated links in virtual time: `cargo run --release -p viaduct-teleop --example virtual_link [FRAMES [LINK]]`.
//!
//! `FRAMES` is the number of frames of each camera; `LINK` selects the rows whose name contains it, `adaptive` those with
//! pictures whose size follows the link, and `CPU` the CPU time of a frame.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::clone_on_copy,
    reason = "a program that prints a table"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{
    MS, drive, drive_adaptive, ethernet, flow, flow_over, independent, link, outages_of_30_ms, picture, streams,
    summary,
};
use viaduct_netem::{
    LinkSettings, Probability, Profile,
    config::Duplex,
    link::{Bottleneck, Delay, DeliveryTrace, Loss},
};
use viaduct_teleop::{
    frames::{Receiver, ReceiverSettings, Sender, SenderSettings},
    pacing::PacingSettings,
    wire::StreamId,
};
use viaduct_units::{Mono, Rng};

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let bursts = |loss, length| Loss::bursts(Probability::new(loss).unwrap(), length).unwrap();
    let only = std::env::args().nth(2).unwrap_or_default();
    if "adaptive".contains(&only) {
        adaptive();
    }
    if "CPU".contains(&only) {
        cpu_time(200);
    }
    println!(
        "{:<34} {:>7} {:>5} {:>8} {:>8} {:>8} {:>7} {:>9}",
        "link", "frames", "lost", "mean ms", "p99 ms", "max ms", "octets", "run s"
    );
    for (name, loss) in [
        ("0", Loss::None),
        ("0.3 %", independent(0.003)),
        ("1 %", independent(0.01)),
        ("5 %", independent(0.05)),
        ("25 %", independent(0.25)),
        ("5 % in bursts of 8", bursts(0.05, 8.0)),
    ] {
        row(&format!("1 Gbit/s 0.3 ms {name}"), 4, 374_000, rounds, ethernet(loss.clone()));
        row(&format!("80 Mbit/s 20 ms {name}"), 1, 374_000, rounds, link(80_000_000, 10 * MS, loss));
    }
    let outages = |link| LinkSettings { outages: outages_of_30_ms(), ..link };
    row("1 Gbit/s 0.3 ms 5 % outages", 4, 374_000, rounds, outages(ethernet(Loss::None)));
    row("80 Mbit/s 20 ms 5 % outages", 1, 374_000, rounds, outages(link(80_000_000, 10 * MS, Loss::None)));
}

/// Prints the result of pictures whose size follows a link, over the profiles `lte-driving` and `5g` and, if `VIADUCT_DATA`
/// names a folder with the trace, over a recorded LTE uplink.
fn adaptive() {
    println!(
        "{:<34} {:>7} {:>7} {:>7} {:>5} {:>8} {:>8} {:>8} {:>8}",
        "link, size follows the link", "sent", "skipped", "arrived", "late", "mean ms", "p99 ms", "max ms", "kbit/s"
    );
    let folder = std::env::var("VIADUCT_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let recorded = std::fs::read_to_string(format!("{folder}/traces/att-lte-driving-2016.up")).ok().map(|text| {
        let trace = Arc::new(DeliveryTrace::parse(&text).unwrap());
        let bottleneck = Bottleneck::Trace { trace, queue_octets: 250_000 };
        let delay = Delay { base: 20 * MS, ..Delay::default() };
        Duplex::symmetric(LinkSettings { bottleneck, delay, ..LinkSettings::default() })
    });
    let profile = |profile: Profile| Some((profile.name(), profile.settings().unwrap()));
    let links = [profile(Profile::LteDriving), profile(Profile::FiveG), recorded.map(|links| ("lte recorded", links))];
    for (name, links) in links.into_iter().flatten() {
        for cameras in [1, 2, 4] {
            adaptive_row(name, cameras, links.clone());
        }
    }
}

fn adaptive_row(name: &str, cameras: u8, links: Duplex<LinkSettings>) {
    let pacing = PacingSettings { initial_bits_per_second: 2_000_000, ..PacingSettings::default() };
    let settings = SenderSettings { streams: streams(cameras), pacing, ..SenderSettings::default() };
    let mut flow = flow_over(settings, links, 1);
    let result = drive_adaptive(&mut flow, cameras, 600, 500 * MS);
    let (mean, p99, max) = summary(&result.latencies);
    println!(
        "{:<34} {:>7} {:>7} {:>5.2} % {:>5} {mean:>8.0} {p99:>8.0} {max:>8.0} {:>8.0}",
        format!("{name}, {cameras} cameras"),
        result.sent,
        result.skipped,
        100.0 * result.arrived as f64 / result.sent as f64,
        result.late,
        result.octets as f64 * 8.0 / 60_000.0
    );
}

/// Prints the CPU time that both ends need for a frame of 374 kB at a loss of 5 %.
fn cpu_time(frames: u32) {
    let (mut sender, mut receiver) =
        (Sender::new(SenderSettings::default(), 1).unwrap(), Receiver::new(ReceiverSettings::default(), 2));
    let (mut random, mut now) = (Rng::new(1), Mono(Duration::from_secs(1)));
    let (mut of_sender, mut of_receiver) = (Duration::ZERO, Duration::ZERO);
    for number in 0..frames {
        let frame = picture(number, 374_000);
        let mut start = Instant::now();
        sender.push(now, StreamId(0), frame).unwrap();
        while receiver.counters().frames_arrived + receiver.counters().lost_total() <= u64::from(number) {
            let symbols: Vec<_> = std::iter::from_fn(|| sender.poll_transmit()).collect();
            of_sender += start.elapsed();
            start = Instant::now();
            for symbol in symbols.into_iter().filter(|_| random.fraction() > 0.05) {
                receiver.handle_datagram(now, &symbol);
            }
            receiver.handle_timeout(now);
            let feedbacks: Vec<_> = std::iter::from_fn(|| receiver.poll_transmit()).collect();
            of_receiver += start.elapsed();
            start = Instant::now();
            feedbacks.iter().for_each(|feedback| sender.handle_datagram(now, feedback));
            let due = [sender.poll_timeout(), receiver.poll_timeout()].into_iter().flatten().min();
            now = due.unwrap_or(now).max(now);
            sender.handle_timeout(now);
        }
        now = now.plus(100 * MS);
    }
    let ms = |total: Duration| total.as_secs_f64() * 1e3 / f64::from(frames);
    println!("CPU time for a frame: sender {:.2} ms, receiver {:.2} ms", ms(of_sender), ms(of_receiver));
}

fn row(name: &str, cameras: u8, octets: usize, rounds: u32, link: LinkSettings) {
    if std::env::args().nth(2).is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let start = Instant::now();
    let mut flow = flow(cameras, link, 1);
    let latencies = drive(&mut flow, cameras, octets, rounds);
    let (mean, p99, max) = summary(&latencies);
    let counters = flow.a().sender.counters();
    let ratio = counters.symbol_octets as f64 / counters.frame_octets as f64;
    let lost = counters.frames - latencies.len() as u64;
    let seconds = start.elapsed().max(Duration::ZERO).as_secs_f64();
    println!(
        "{name:<34} {:>7} {lost:>5} {mean:>8.2} {p99:>8.2} {max:>8.2} {ratio:>7.3} {seconds:>9.2}",
        counters.frames
    );
}
