//! Burst loss compared with another emulator with the same parameters.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m_netem::{GilbertElliot, Input, LossModel, Netem, NetemConfig, Output, Probability as TheirProbability};
use viaduct_netem::{
    Link, LinkSettings, Probability,
    link::{GilbertElliott, Loss},
};
use viaduct_units::Mono;

const PACKETS: u32 = 200_000;

/// Returns the loss rate, and the mean number of consecutive lost packets.
fn rate_and_burst(arrived: &[bool]) -> (f64, f64) {
    let lost = arrived.iter().filter(|arrived| !**arrived).count() as f64;
    let bursts = arrived.windows(2).filter(|pair| pair[0] && !pair[1]).count() as f64;
    (lost / f64::from(PACKETS), lost / bursts)
}

fn ours(loss: Loss) -> (f64, f64) {
    let mut link = Link::new(LinkSettings { loss, ..LinkSettings::default() }, 17).unwrap();
    let mut arrives = |number: u32| {
        let now = Mono(Duration::from_millis(number.into()));
        link.handle_packet(now, Bytes::from_static(b"packet"));
        link.poll_deliver(now).is_some()
    };
    rate_and_burst(&(0..PACKETS).map(&mut arrives).collect::<Vec<_>>())
}

#[expect(clippy::disallowed_methods, reason = "their time is an `Instant`, which only a clock makes")]
fn theirs(loss: GilbertElliot) -> (f64, f64) {
    let mut netem: Netem<&[u8]> = Netem::new(NetemConfig::new().loss(LossModel::GilbertElliot(loss)).seed(23));
    let now = Instant::now();
    let mut arrives = |_| {
        netem.handle_input(Input::Packet(now, b"packet"));
        matches!(netem.poll_output(), Some(Output::Packet(_)))
    };
    rate_and_burst(&(0..PACKETS).map(&mut arrives).collect::<Vec<_>>())
}

#[test]
fn both_emulators_have_the_same_loss_and_burst_length() {
    for (good, bad, in_good, in_bad) in
        [(190.0_f32, 10.0_f32, 0.0_f32, 1.0_f32), (40.0, 2.0, 0.0, 1.0), (50.0, 25.0, 0.02, 0.7)]
    {
        let probability = |value: f32| Probability::new(f64::from(value)).unwrap();
        let model = GilbertElliott {
            good_to_bad: probability(1.0 / good),
            bad_to_good: probability(1.0 / bad),
            loss_in_good: probability(in_good),
            loss_in_bad: probability(in_bad),
        };
        let their_model = GilbertElliot::new()
            .good_duration(good)
            .bad_duration(bad)
            .loss_in_good(TheirProbability::new(in_good))
            .loss_in_bad(TheirProbability::new(in_bad));
        let (ours, theirs) = (ours(Loss::GilbertElliott(model)), theirs(their_model));
        assert!((ours.0 / theirs.0 - 1.0).abs() < 0.1, "loss {ours:?}, {theirs:?}");
        assert!((ours.1 / theirs.1 - 1.0).abs() < 0.1, "bursts {ours:?}, {theirs:?}");
    }
}
