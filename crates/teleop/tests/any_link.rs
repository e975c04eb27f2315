//! Frames over links with arbitrary properties, in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod common;

use std::{collections::BTreeSet, num::NonZeroU64, time::Duration};

use common::{Flow, MS, flow_with, independent, link, picture};
use proptest::prelude::*;
use viaduct_netem::{
    LinkSettings, Probability,
    link::{Bottleneck, Delay, Jitter, Order, Outages, RandomOutages},
};
use viaduct_teleop::{
    frames::{Outcome, SenderSettings, StreamSettings},
    wire::StreamId,
};

/// Returns links from 0.5 to 200 Mbit/s with loss, outages, jitter, overtaking and duplicates.
fn links() -> impl Strategy<Value = LinkSettings> {
    let numbers = (500_000_u64..200_000_000, 0.0..0.5, 0_u64..80, 0_u64..10, any::<bool>(), 0.0..0.1, 0_u64..200);
    numbers.prop_map(|(rate, loss, delay_ms, jitter_ms, free, duplicate, outage_ms)| LinkSettings {
        bottleneck: Bottleneck::Rate { bits_per_second: NonZeroU64::new(rate).unwrap(), queue_octets: 300_000 },
        loss: independent(loss),
        duplicate: Probability::new(duplicate).unwrap(),
        delay: Delay {
            base: Duration::from_millis(delay_ms),
            jitter: if jitter_ms == 0 { Jitter::None } else { Jitter::Normal(Duration::from_millis(jitter_ms)) },
            order: if free { Order::Free } else { Order::Kept },
            ..Delay::default()
        },
        outages: match outage_ms {
            0..20 => Outages::None,
            _ => Outages::Random(RandomOutages { duration: Duration::from_millis(outage_ms), between: 1000 * MS }),
        },
        ..LinkSettings::default()
    })
}

/// Sends 20 frames of each stream, one every 50 ms, and waits for the last ones.
fn drive(flow: &mut Flow, streams: u8, octets: usize) {
    for number in 0..20_u32 {
        let start = flow.now();
        for id in 0..streams {
            let frame = picture(number, octets.max(4));
            flow.with_a(|end, now| end.sender.push(now, StreamId(id), frame).unwrap());
        }
        flow.run_until(start.plus(50 * MS));
    }
    flow.run_for(Duration::from_secs(3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_frame_arrives_late_twice_or_changed_and_both_ends_agree(
        link in links(),
        streams in 1_u8..4,
        octets in 1_usize..60_000,
        lifespan_ms in 20_u64..800,
        seed in any::<u64>(),
    ) {
        let lifespan = Duration::from_millis(lifespan_ms);
        let stream = |id| StreamSettings { id: StreamId(id), priority: id, lifespan, ..StreamSettings::default() };
        let settings = SenderSettings { streams: (0..streams).map(stream).collect(), ..SenderSettings::default() };
        let mut flow = flow_with(settings, link, seed);
        drive(&mut flow, streams, octets);

        let pushed = |number: u32| Duration::from_secs(12_345) + 50 * MS * number;
        let mut arrived = BTreeSet::new();
        for (time, frame) in &flow.b().arrived {
            prop_assert!(time.0 - pushed(frame.number) <= lifespan, "{:?}", frame);
            prop_assert!(arrived.insert((frame.stream, frame.number)), "twice: {:?}", frame);
        }
        prop_assert_eq!(flow.a().finished.len(), 20 * usize::from(streams), "each frame has one result");
        for frame in &flow.a().finished {
            let confirmed = frame.outcome == Outcome::Arrived;
            prop_assert!(!confirmed || arrived.contains(&(frame.stream, frame.number)), "{:?}", frame);
        }
        prop_assert_eq!(flow.b().receiver.buffered_octets(), 0);
        prop_assert_eq!(flow.a().sender.unfinished_frames(), 0);
    }

    #[test]
    fn each_frame_arrives_if_the_link_has_time_for_repairs(
        rate in 20_000_000_u64..1_000_000_000,
        loss in 0.0..0.3,
        delay_ms in 0_u64..30,
        octets in 1_usize..20_000,
        seed in any::<u64>(),
    ) {
        let stream = StreamSettings { lifespan: 800 * MS, keep_last: 16, ..StreamSettings::default() };
        let settings = SenderSettings { streams: vec![stream], ..SenderSettings::default() };
        let link = link(rate, Duration::from_millis(delay_ms), independent(loss));
        let mut flow = flow_with(settings, link, seed);
        drive(&mut flow, 1, octets);
        prop_assert_eq!((flow.b().arrived.len(), flow.b().lost.len()), (20, 0));
        prop_assert!(flow.a().finished.iter().all(|frame| frame.outcome == Outcome::Arrived));
    }
}
