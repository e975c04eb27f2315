//! A table of the parameters of a link: what is set, and what is measured.
//!
//! ```sh
//! cargo test -p viaduct-netem --test parameters -- --nocapture
//! ```

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Link, LinkSettings, Probability,
    link::{
        Bottleneck, Correlation, Delay, GilbertElliott, Jitter, Loss, Order, Outage, Outages, PeriodicOutages,
        RandomOutages, Reorder, overhead,
    },
    profile::LteDirection,
};
use viaduct_units::Mono;

const MS: Duration = Duration::from_millis(1);
/// Largest difference between a setting and its measured value. The numbers of packets are chosen so that it is about
/// three standard deviations.
const TOLERANCE: f64 = 0.02;

/// A parameter, its setting and its measured value.
struct Row {
    parameter: String,
    set: f64,
    measured: f64,
}

fn row(parameter: impl Into<String>, set: f64, measured: f64) -> Row {
    Row { parameter: parameter.into(), set, measured }
}

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn link(settings: LinkSettings) -> Link {
    Link::new(settings, 1).unwrap()
}

/// Prints the rows, and fails if one of them is not within the tolerance.
#[expect(clippy::print_stdout, reason = "the table is the output")]
fn assert_reproduced(rows: &[Row]) {
    for Row { parameter, set, measured } in rows {
        println!("| {parameter:<44} | {set:>12.4} | {measured:>12.4} | {:>+6.2} % |", (measured / set - 1.0) * 100.0);
    }
    for Row { parameter, set, measured } in rows {
        assert!((measured / set - 1.0).abs() <= TOLERANCE, "{parameter}: set {set}, measured {measured}");
    }
}

/// Returns for each of `n` packets at an interval `true` if it arrives.
fn arrivals(settings: LinkSettings, n: u32, interval: Duration) -> Vec<bool> {
    let mut link = link(settings);
    let arrives = |number| {
        let now = Mono(interval * number);
        link.handle_packet(now, Bytes::from_static(b"packet"));
        link.poll_deliver(now).is_some()
    };
    (0..n).map(arrives).collect()
}

fn share_lost(arrivals: &[bool]) -> f64 {
    arrivals.iter().filter(|arrives| !**arrives).count() as f64 / arrivals.len() as f64
}

/// Returns the mean number of consecutive lost packets.
fn mean_burst(arrivals: &[bool]) -> f64 {
    let bursts = arrivals.windows(2).filter(|pair| pair[0] && !pair[1]).count();
    arrivals.iter().filter(|arrives| !**arrives).count() as f64 / bursts as f64
}

fn lossy(loss: Loss, n: u32) -> Vec<bool> {
    arrivals(LinkSettings { loss, ..LinkSettings::default() }, n, MS)
}

#[test]
fn loss_and_bursts() {
    let mut rows = Vec::new();
    for (share, n) in [(0.003, 8_000_000), (0.05, 1_000_000), (0.25, 500_000)] {
        let lost = share_lost(&lossy(Loss::Independent(probability(share)), n));
        rows.push(row("loss, independent", share, lost));
    }
    for (share, packets) in [(0.05, 8.0), (0.1, 3.0)] {
        let arrivals = lossy(Loss::bursts(probability(share), packets).unwrap(), 5_000_000);
        rows.push(row("loss, in bursts", share, share_lost(&arrivals)));
        rows.push(row("packets of a burst", packets, mean_burst(&arrivals)));
    }
    let two_states = Loss::GilbertElliott(GilbertElliott {
        good_to_bad: probability(0.01),
        bad_to_good: probability(0.04),
        loss_in_good: probability(0.1),
        loss_in_bad: probability(0.6),
    });
    rows.push(row("loss, two states", 0.8 * 0.1 + 0.2 * 0.6, share_lost(&lossy(two_states, 1_000_000))));
    assert_reproduced(&rows);
}

fn interrupted(outages: Outages, n: u32, interval: Duration) -> Vec<bool> {
    arrivals(LinkSettings { outages, ..LinkSettings::default() }, n, interval)
}

#[test]
fn outages() {
    let mut rows = Vec::new();
    let periodic = PeriodicOutages { first: 2000 * MS, every: 5000 * MS, duration: 250 * MS };
    let found = interrupted(Outages::Periodic(periodic), 1_000_000, MS);
    rows.push(row("outages, periodic: share of time", 0.05, share_lost(&found)));
    rows.push(row("outages, periodic: ms", 250.0, mean_burst(&found)));
    let list = [(100, 40), (1000, 300), (5000, 7)].map(|(start, ms)| Outage { start: MS * start, duration: MS * ms });
    let found = interrupted(Outages::List(list.to_vec()), 100_000, MS / 10);
    rows.push(row("outages, list: ms together", 347.0, share_lost(&found) * 10_000.0));
    rows.push(row("outages, list: start of the first, ms", 100.0, first_lost(&found) as f64 / 10.0));
    let random = RandomOutages { duration: 30 * MS, between: 570 * MS };
    let interval = 5 * MS;
    let found = interrupted(Outages::Random(random), 4_000_000, interval);
    rows.push(row("outages, random: share of time", 0.05, share_lost(&found)));
    rows.push(row("outages, random: mean ms", 30.0, mean_outage(&found, interval).as_secs_f64() * 1e3));
    assert_reproduced(&rows);
}

fn first_lost(arrivals: &[bool]) -> usize {
    arrivals.iter().position(|arrives| !arrives).unwrap()
}

/// Returns the mean length of exponentially distributed outages that are observed at an interval, which does not show the
/// shortest of them.
fn mean_outage(arrivals: &[bool], interval: Duration) -> Duration {
    let (out, ends) = arrivals.windows(2).fold((0.0, 0.0), |(out, ends), pair| {
        (out + f64::from(u8::from(!pair[0])), ends + f64::from(u8::from(!pair[0] && pair[1])))
    });
    // Both rates decide whether an outage at one observation is over at the next.
    let share = share_lost(arrivals);
    let rates = -(1.0 - ends / out / (1.0 - share)).ln() / interval.as_secs_f64();
    Duration::from_secs_f64(1.0 / (rates * (1.0 - share)))
}

/// Sends packets of 1500 octets into a full queue. Returns the rate of their bits, `overhead` included, in Mbit/s.
fn measured_mbps(settings: LinkSettings, packets: u32) -> f64 {
    let octets = 1500 + u32::from(settings.overhead_octets);
    let mut link = link(settings);
    let packet = Bytes::from(vec![0; 1500]);
    let (mut delivered, mut now) = (0, Mono::default());
    while delivered < packets {
        while link.queued_octets(now) < 3000 {
            link.handle_packet(now, packet.clone());
        }
        now = link.poll_timeout().unwrap();
        while link.poll_deliver(now).is_some() {
            delivered += 1;
        }
    }
    f64::from(delivered) * f64::from(octets) * 8.0 / now.0.as_secs_f64() / 1e6
}

#[test]
fn rates() {
    let rate = |mbps: u64, overhead_octets| {
        let bits_per_second = NonZeroU64::new(mbps * 1_000_000).unwrap();
        let bottleneck = Bottleneck::Rate { bits_per_second, queue_octets: 1 << 20 };
        LinkSettings { bottleneck, overhead_octets, ..LinkSettings::default() }
    };
    let mut rows: Vec<Row> = [(1, 0), (173, 0), (1000, overhead::ETHERNET)]
        .map(|(mbps, overhead)| row("rate, Mbit/s", mbps as f64, measured_mbps(rate(mbps, overhead), 20_000)))
        .into();
    for direction in [LteDirection::Up, LteDirection::Down] {
        let trace = Arc::new(direction.trace());
        let mbps = trace.mean_bits_per_second() / 1e6;
        // Two repetitions of the trace.
        let packets = 2 * u32::try_from(trace.opportunities_ms().len()).unwrap();
        let bottleneck = Bottleneck::Trace { trace, queue_octets: 1 << 20 };
        let measured = measured_mbps(LinkSettings { bottleneck, ..LinkSettings::default() }, packets);
        rows.push(row(format!("rate of a trace, {direction:?}, Mbit/s"), mbps, measured));
    }
    assert_reproduced(&rows);
}

/// Returns the delays of packets that are sent at an interval, in milliseconds.
fn delays(delay: Delay, n: u32, interval: Duration) -> Vec<f64> {
    let mut link = link(LinkSettings { delay, ..LinkSettings::default() });
    let mut delays = vec![0.0; n as usize];
    for number in 0..n {
        let now = Mono(interval * number);
        take_delays(&mut link, now, interval, &mut delays);
        link.handle_packet(now, Bytes::copy_from_slice(&number.to_be_bytes()));
    }
    take_delays(&mut link, Mono(Duration::MAX), interval, &mut delays);
    delays
}

/// Takes the packets that arrive by a time, and stores the delay of each at its number.
fn take_delays(link: &mut Link, end: Mono, interval: Duration, delays: &mut [f64]) {
    while let Some(due) = link.poll_timeout().filter(|due| *due <= end) {
        while let Some(packet) = link.poll_deliver(due) {
            let number = u32::from_be_bytes(*packet.first_chunk().unwrap());
            delays[number as usize] = due.since(Mono(interval * number)).as_secs_f64() * 1e3;
        }
    }
}

/// Mean, standard deviation and correlation of successive values.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / n;
    let covariance = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt(), covariance / variance)
}

#[test]
fn delays_and_correlations() {
    let jitters = [
        ("uniform", Jitter::Uniform(6 * MS), 50.0, 6.0 / 3.0_f64.sqrt()),
        ("normal", Jitter::Normal(5 * MS), 50.0, 5.0),
        ("exponential", Jitter::Exponential(4 * MS), 54.0, 4.0),
    ];
    let correlations = [
        (Correlation::None, 0.0),
        (Correlation::Packets(probability(0.5)), 0.5),
        (Correlation::Packets(probability(0.9)), 0.9),
        (Correlation::Time(20 * MS), (-0.25_f64).exp()),
    ];
    let mut rows = Vec::new();
    for (name, jitter, mean, deviation) in jitters {
        for (correlation, coefficient) in correlations {
            let delay = Delay { base: 50 * MS, jitter, correlation, order: Order::Free };
            let found = moments(&delays(delay, 200_000, 5 * MS));
            rows.push(row(format!("delay, {name} jitter: mean ms"), mean, found.0));
            rows.push(row(format!("delay, {name} jitter: deviation ms"), deviation, found.1));
            if coefficient > 0.0 {
                rows.push(row(format!("delay, {name} jitter: correlation"), coefficient, found.2));
            }
        }
    }
    assert_reproduced(&rows);
}

#[test]
fn duplication_and_reordering() {
    let n = 1_000_000;
    let mut doubled = link(LinkSettings { duplicate: probability(0.05), ..LinkSettings::default() });
    let mut delivered = 0_u32;
    for number in 0..n {
        doubled.handle_packet(Mono(MS * number), Bytes::new());
        while doubled.poll_deliver(Mono(MS * number)).is_some() {
            delivered += 1;
        }
    }
    let duplicated = f64::from(delivered) / f64::from(n) - 1.0;

    let reorder = Reorder { share: probability(0.05), by: 3 * MS / 2 };
    let mut reordering = link(LinkSettings { reorder, ..LinkSettings::default() });
    let (mut late, mut late_by) = (0_u32, Duration::ZERO);
    for number in 0..n {
        reordering.handle_packet(Mono(MS * number), Bytes::new());
        if reordering.poll_deliver(Mono(MS * number)).is_none() {
            late += 1;
            late_by += reordering.poll_timeout().unwrap().since(Mono(MS * number));
        }
        while let Some(due) = reordering.poll_timeout() {
            reordering.poll_deliver(due);
        }
    }
    let rows = [
        row("duplication", 0.05, duplicated),
        row("reordering: share", 0.05, f64::from(late) / f64::from(n)),
        row("reordering: ms", 1.5, late_by.as_secs_f64() * 1e3 / f64::from(late)),
    ];
    assert_reproduced(&rows);
}
