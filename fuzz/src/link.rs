//! The emulated link: recorded traces, and arbitrary settings with arbitrary packets.

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Link, LinkSettings, Probability,
    limits::LINK_OCTETS_MAX,
    link::{Bottleneck, Delay, DeliveryTrace, GilbertElliott, Jitter, Loss, Order},
};
use viaduct_units::Mono;

/// Checks a recorded trace: a valid one delivers all packets in order and in time, an invalid one results in an error
/// of one line.
pub fn trace(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    match DeliveryTrace::parse(text) {
        Ok(trace) => follow(trace),
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 256 && !said.contains('\n'), "{said}");
        }
    }
}

fn follow(trace: DeliveryTrace) {
    assert!(trace.mean_bits_per_second() > 0.0);
    let bottleneck = Bottleneck::Trace { trace: Arc::new(trace), queue_octets: 100_000 };
    let settings = LinkSettings { bottleneck, ..LinkSettings::default() };
    let mut link = Link::new(settings, 1).expect("a trace is a bottleneck");
    for number in 0..20_usize {
        link.handle_packet(Mono(Duration::from_millis(number as u64)), Bytes::from(vec![0; number * 150]));
    }
    let mut before = Mono::default();
    while let Some(due) = link.poll_timeout() {
        assert!(due >= before && link.poll_deliver(due).is_some());
        before = due;
    }
    assert_eq!(link.counters().delivered, 20);
}

/// Checks a link with arbitrary settings and packets: all packets are delivered or counted, in time and, if
/// configured, in order, and the content of the link is bounded.
pub fn link(octets: &[u8]) {
    let mut octets = octets.iter().copied();
    let Some(settings) = settings(&mut octets) else { return };
    let kept = settings.delay.order == Order::Kept && settings.duplicate == Probability::ZERO;
    let Ok(mut link) = Link::new(settings, 1) else { return };
    let (mut now, mut delivered) = (Mono::default(), Vec::new());
    while let (Some(after), Some(size)) = (octets.next(), octets.next()) {
        now = now.plus(Duration::from_micros(u64::from(after).pow(2)));
        take(&mut link, now, &mut delivered);
        let number = u32::try_from(link.counters().received).expect("an input is short");
        let mut packet = number.to_be_bytes().to_vec();
        packet.resize(4 + usize::from(size).pow(2), 0);
        link.handle_packet(now, Bytes::from(packet));
        assert!(link.queued_octets(now) <= LINK_OCTETS_MAX);
    }
    take(&mut link, Mono(Duration::MAX), &mut delivered);
    let counters = link.counters();
    assert_eq!(counters.received + counters.duplicated, counters.delivered + counters.dropped_total());
    assert!(!kept || delivered.is_sorted_by(|a, b| a < b), "{delivered:?}");
}

/// Takes the numbers of the packets that have arrived by that time.
fn take(link: &mut Link, now: Mono, delivered: &mut Vec<[u8; 4]>) {
    while let Some(packet) = link.poll_deliver(now) {
        delivered.extend(packet.first_chunk());
    }
    assert!(link.poll_timeout().is_none_or(|due| due > now));
}

/// Reads the settings from the first octets.
fn settings(octets: &mut impl Iterator<Item = u8>) -> Option<LinkSettings> {
    let mut next = || octets.next();
    Some(LinkSettings {
        bottleneck: bottleneck(&mut next)?,
        loss: loss(&mut next)?,
        duplicate: Probability::clamped((f64::from(next()?) - 128.0) / 127.0),
        delay: delay(&mut next)?,
    })
}

fn bottleneck(next: &mut impl FnMut() -> Option<u8>) -> Option<Bottleneck> {
    let rate = NonZeroU64::new(1 << (next()? % 64))?;
    let queue_octets = usize::from(next()?).pow(3);
    Some(match next()? % 3 {
        0 => Bottleneck::None,
        1 => Bottleneck::Rate { bits_per_second: rate, queue_octets },
        _ => {
            let text = format!("{}\n{}\n", next()?, 256 + u32::from(next()?));
            Bottleneck::Trace { trace: Arc::new(DeliveryTrace::parse(&text).ok()?), queue_octets }
        }
    })
}

fn loss(next: &mut impl FnMut() -> Option<u8>) -> Option<Loss> {
    let kind = next()? % 5;
    let mut part = || Some(Probability::clamped(f64::from(next()?) / 255.0));
    Some(match kind {
        0 => Loss::None,
        1 => Loss::Independent(part()?),
        2 => Loss::GilbertElliott(GilbertElliott {
            good_to_bad: part()?,
            bad_to_good: part()?,
            loss_in_good: part()?,
            loss_in_bad: part()?,
        }),
        3 => Loss::bursts(part()?, 8.0 * part()?.value()).ok()?,
        _ => Loss::Outages { outage: micros(next()?), between: micros(next()?) },
    })
}

fn delay(next: &mut impl FnMut() -> Option<u8>) -> Option<Delay> {
    let (base, spread) = (micros(next()?), micros(next()?));
    let jitter = match next()? % 4 {
        0 => Jitter::None,
        1 => Jitter::Uniform(spread),
        2 => Jitter::Normal(spread),
        _ => Jitter::Exponential(spread),
    };
    Some(Delay { base, jitter, order: if next()? & 1 == 0 { Order::Kept } else { Order::Free } })
}

/// Returns a duration from 0 to beyond the maximum of a link.
fn micros(octet: u8) -> Duration {
    Duration::from_micros(u64::from(octet).pow(4))
}

pub(crate) fn traces() -> Vec<Vec<u8>> {
    vec![b"1\n2\n2\n5\n\n9\n".to_vec(), b"0\n0\n0\n4294967295\n".to_vec(), b" 7 \r\n1000\r\n".to_vec()]
}

/// Returns the seeds: each kind of bottleneck, loss and delay, followed by packets.
pub(crate) fn links() -> Vec<Vec<u8>> {
    let packets: Vec<u8> = (0..60_u8).flat_map(|number| [number % 50, number % 40]).collect();
    let settings: [&[u8]; 5] = [
        &[20, 30, 0, 0, 128, 0, 0, 0, 0],
        &[23, 30, 1, 1, 50, 140, 10, 5, 1, 1],
        &[23, 40, 2, 5, 9, 2, 20, 80, 2, 200, 128, 10, 5, 2, 0],
        &[10, 20, 1, 3, 20, 200, 200, 20, 20, 3, 0],
        &[30, 50, 1, 4, 30, 40, 128, 5, 5, 2, 1],
    ];
    settings.map(|settings| [settings, &packets].concat()).to_vec()
}
