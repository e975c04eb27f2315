//! The floor: the packets of one frame at the rate of the link.

use serde_json::json;
use viaduct_netem::Profile;
use viaduct_netem::config::{BottleneckConfig, LinkConfig};
use viaduct_netem::link::Loss;

use super::FRAME_OCTETS;
use crate::report::Row;

/// Octets of a frame in a full packet: an Ethernet payload of 1500 octets without the headers of IP and UDP.
const PART_OCTETS: usize = 1472;
/// Octets of the headers of IP and UDP.
const HEADER_OCTETS: usize = 28;

/// Returns the floor of one frame in milliseconds: `K packets / rate / (1 - p)` and the delay of the link. `None` if the
/// link has no rate.
pub(super) fn frame_ms(link: Profile) -> Option<f64> {
    let LinkConfig { bottleneck, loss, delay, overhead_octets, .. } = link.config().a_to_b;
    let BottleneckConfig::Rate(rate) = bottleneck else { return None };
    let packets = FRAME_OCTETS.div_ceil(PART_OCTETS);
    let octets = FRAME_OCTETS + packets * (HEADER_OCTETS + usize::from(overhead_octets));
    let transmission_ms = octets as f64 * 8.0 / (rate.mbps * 1000.0);
    Some(transmission_ms / (1.0 - loss_share(&loss)) + delay.base.as_secs_f64() * 1e3)
}

/// Returns the floor of the mean over the cameras, all of which send a frame at the same time: the frames of a tick arrive one
/// after the other.
pub(super) fn cameras_ms(link: Profile, cameras: u8) -> Option<f64> {
    let LinkConfig { delay, .. } = link.config().a_to_b;
    let delay_ms = delay.base.as_secs_f64() * 1e3;
    Some((frame_ms(link)? - delay_ms) * (f64::from(cameras) + 1.0) / 2.0 + delay_ms)
}

/// Returns the share of packets that a link loses outside its outages.
fn loss_share(loss: &Loss) -> f64 {
    match loss {
        Loss::Independent(share) => share.value(),
        Loss::Bursts(bursts) => bursts.loss.value(),
        _ => 0.0,
    }
}

pub(super) fn row(link: Profile) -> Option<Row> {
    let floor = frame_ms(link)?;
    let row = Row::empty("floor.frame", &json!({ "link": link.name() }), "ms");
    Some(Row { n: 1, min: Some(floor), p50: Some(floor), mean: Some(floor), ..row })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_three_milliseconds_at_one_gigabit() {
        let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 0.01;
        // 255 packets: (374,000 + 255 * (28 + 38)) octets * 8 / 1 Gbit/s + 0.15 ms.
        assert!(near(frame_ms(Profile::Ethernet), 3.127 + 0.15));
        assert!(near(frame_ms(Profile::Lossy5), 3.127 / 0.95 + 0.15));
        assert!(near(frame_ms(Profile::Bursty5), 3.127 / 0.95 + 0.15));
        assert!(near(cameras_ms(Profile::Ethernet, 1), 3.127 + 0.15));
        assert!(near(cameras_ms(Profile::Ethernet, 4), 3.127 * 2.5 + 0.15));
        assert_eq!(frame_ms(Profile::LteDriving), None);
    }
}
