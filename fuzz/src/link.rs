//! The emulated link: recorded traces, settings in config files, and arbitrary settings with arbitrary packets.

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Link, LinkSettings, LinksConfig, Probability, Profile,
    limits::LINK_OCTETS_MAX,
    link::{
        Bottleneck, Correlation, Delay, DeliveryTrace, GilbertElliott, Jitter, Loss, Order, Outage, Outages,
        PeriodicOutages, RandomOutages, Reorder,
    },
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

/// Checks a link with arbitrary settings, packets and changes of the settings: all packets are delivered or counted, in
/// time and, if configured, in order, and the content of the link is bounded.
pub fn link(octets: &[u8]) {
    let mut octets = octets.iter().copied();
    let Some(settings) = settings(&mut octets) else { return };
    let mut kept = keeps_order(&settings);
    let Ok(mut link) = Link::new(settings, 1) else { return };
    let (mut now, mut delivered) = (Mono::default(), Vec::new());
    while let (Some(after), Some(size)) = (octets.next(), octets.next()) {
        now = now.plus(Duration::from_micros(u64::from(after).pow(2)));
        take(&mut link, now, &mut delivered);
        if size == SETTINGS_CHANGE {
            kept &= change(&mut link, now, &mut octets);
        } else {
            let number = u32::try_from(link.counters().received).expect("an input is short");
            let mut packet = number.to_be_bytes().to_vec();
            packet.resize(4 + usize::from(size).pow(2), 0);
            link.handle_payload(now, Bytes::from(packet), after.into());
        }
        assert_all_counted(&link);
        assert!(link.queued_octets(now) <= LINK_OCTETS_MAX);
    }
    take(&mut link, Mono(Duration::MAX), &mut delivered);
    assert_all_counted(&link);
    assert_eq!(link.packets(), 0);
    assert!(!kept || delivered.is_sorted_by(|a, b| a < b), "{delivered:?}");
}

/// Size in an input that stands for a change of the settings.
const SETTINGS_CHANGE: u8 = 255;

/// Changes the settings. Returns `true` if the order of the packets is still kept.
fn change(link: &mut Link, now: Mono, octets: &mut impl Iterator<Item = u8>) -> bool {
    let Some(settings) = settings(octets) else { return true };
    let (before, keeps) = (link.packets(), keeps_order(&settings));
    let valid = link.set_settings(now, settings).is_ok();
    assert!(valid || link.packets() == before);
    !valid || keeps
}

fn keeps_order(settings: &LinkSettings) -> bool {
    settings.delay.order == Order::Kept
        && settings.duplicate == Probability::ZERO
        && settings.reorder.share == Probability::ZERO
}

fn assert_all_counted(link: &Link) {
    let counters = link.counters();
    let accounted = counters.delivered + counters.dropped_total() + link.packets() as u64;
    assert_eq!(counters.received + counters.duplicated, accounted);
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
        outages: outages(&mut next)?,
        duplicate: Probability::clamped((f64::from(next()?) - 128.0) / 127.0),
        delay: delay(&mut next)?,
        reorder: Reorder { share: Probability::clamped((f64::from(next()?) - 128.0) / 127.0), by: micros(next()?) },
        overhead_octets: next()?.into(),
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
    let kind = next()? % 4;
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
        _ => Loss::bursts(part()?, 8.0 * part()?.value()).ok()?,
    })
}

fn outages(next: &mut impl FnMut() -> Option<u8>) -> Option<Outages> {
    Some(match next()? % 4 {
        0 => Outages::None,
        1 => Outages::Periodic(PeriodicOutages {
            first: micros(next()?),
            every: micros(next()?),
            duration: micros(next()?),
        }),
        2 => {
            let mut outage = || Some(Outage { start: micros(next()?), duration: micros(next()?) });
            Outages::List(vec![outage()?, outage()?])
        }
        _ => Outages::Random(RandomOutages { duration: micros(next()?), between: micros(next()?) }),
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
    let correlation = match next()? % 3 {
        0 => Correlation::None,
        1 => Correlation::Packets(Probability::clamped(f64::from(next()?) / 255.0)),
        _ => Correlation::Time(micros(next()?)),
    };
    Some(Delay { base, jitter, correlation, order: if next()? & 1 == 0 { Order::Kept } else { Order::Free } })
}

/// Returns a duration from 0 to beyond the maximum of a link.
fn micros(octet: u8) -> Duration {
    Duration::from_micros(u64::from(octet).pow(4))
}

/// Checks settings in a config file: valid ones are the same after writing and reading, and make a link that counts all
/// packets; invalid ones result in an error of one line that names the setting.
pub fn link_settings(octets: &[u8]) {
    let Ok(config) = serde_json::from_slice::<LinksConfig>(octets) else { return };
    let written = serde_json::to_vec(&config).expect("a config can be written");
    let read: LinksConfig = serde_json::from_slice(&written).expect("a written config can be read");
    assert_eq!(read, config);
    let links = config.links();
    match links.try_map(|link| link.resolve(|_| DeliveryTrace::parse("1\n7\n").map_err(|error| error.to_string()))) {
        Ok(links) => exchange(links.a_to_b, &links.b_to_a),
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 1024 && !said.contains('\n') && !error.key().is_empty(), "{said}");
        }
    }
}

/// Sends packets over a link, the second half of them with other settings.
fn exchange(first: LinkSettings, second: &LinkSettings) {
    let mut link = Link::new(first, 1).expect("resolved settings are valid");
    for number in 0..40_u16 {
        let now = Mono(Duration::from_millis(number.into()));
        if number == 20 {
            link.set_settings(now, second.clone()).expect("resolved settings are valid");
        }
        link.handle_payload(now, Bytes::from(vec![0; usize::from(number) * 100]), number);
        while link.poll_deliver(now).is_some() {}
        assert_all_counted(&link);
    }
    while link.poll_deliver(Mono(Duration::MAX)).is_some() {}
    assert_all_counted(&link);
    assert_eq!(link.packets(), 0);
}

/// Returns configs with each setting.
pub(crate) fn settings_texts() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"profile":"outage","both":{"delay":{"base_ms":10,"jitter":{"normal_ms":2},"correlation":{"time_ms":20}}}}"#,
        r#"{"a_to_b":{"bottleneck":{"rate":{"mbps":20,"queue_octets":9000}},"loss":{"independent":0.1}},"b_to_a":{"duplicate":1}}"#,
        r#"{"a_to_b":{"bottleneck":{"trace":{"file":"a.up"}},"loss":{"bursts":{"loss":0.05,"packets":8}}}}"#,
        r#"{"both":{"loss":{"gilbert_elliott":{"good_to_bad":0.1,"bad_to_good":0.2,"loss_in_good":0,"loss_in_bad":1}}}}"#,
        r#"{"b_to_a":{"outages":{"list":[{"start_ms":0.5,"duration_ms":20},{"start_ms":30,"duration_ms":1}]}}}"#,
        r#"{"both":{"outages":{"random":{"duration_ms":3,"between_ms":57}},"reorder":{"share":0.1,"by_ms":2.5}}}"#,
        r#"{"both":{"outages":{"periodic":{"first_ms":5,"every_ms":10,"duration_ms":2}},"overhead_octets":38}}"#,
        r#"{"both":{"delay":{"base_ms":3,"jitter":{"uniform_ms":5},"correlation":{"packets":0.25},"order":"free"}}}"#,
    ];
    let profiles = Profile::ALL.map(|profile| format!(r#"{{"profile":"{profile}"}}"#));
    texts.map(str::to_owned).into_iter().chain(profiles).map(String::into_bytes).collect()
}

pub(crate) fn traces() -> Vec<Vec<u8>> {
    vec![b"1\n2\n2\n5\n\n9\n".to_vec(), b"0\n0\n0\n4294967295\n".to_vec(), b" 7 \r\n1000\r\n".to_vec()]
}

/// Returns the seeds: each kind of bottleneck, loss, outages and delay, followed by packets and a change of the settings.
pub(crate) fn links() -> Vec<Vec<u8>> {
    let packets: Vec<u8> = (0..60_u8).flat_map(|number| [number % 50, number % 40]).collect();
    let settings: [&[u8]; 5] = [
        &[20, 30, 0, 0, 0, 128, 0, 0, 0, 0, 0, 128, 0, 0],
        &[23, 30, 1, 1, 50, 1, 20, 40, 10, 140, 10, 5, 1, 1, 200, 1, 128, 0, 28],
        &[23, 40, 2, 5, 9, 2, 20, 80, 2, 200, 2, 5, 5, 9, 9, 128, 10, 5, 2, 2, 12, 0, 140, 20, 66],
        &[10, 20, 1, 3, 20, 200, 3, 20, 20, 200, 20, 20, 3, 1, 128, 0, 128, 0, 0],
        &[30, 50, 1, 0, 3, 30, 40, 128, 5, 5, 2, 0, 1, 128, 0, 38],
    ];
    let change = [5, SETTINGS_CHANGE];
    let pairs = settings.iter().zip(settings.iter().cycle().skip(1));
    pairs.map(|(first, second)| [first, &packets[..], &change, second, &packets].concat()).collect()
}
