//! The choice of `compression: auto`.
//!
//! A message of `s` bytes arrives after the time `encode + s / ratio / goodput + decode`. Goodput is the rate at which the peer
//! acknowledges octets, as the kernel measures it. Times and ratio are those of earlier messages of the topic, as means whose weight
//! decreases. The codec with the shortest time is used, or none if that is shorter still.
//!
//! Once in [`PROBE_PERIOD`], a message is compressed with each codec and decompressed, to measure those that are not in use as well.

use std::time::Duration;

use viaduct_units::Mono;

use super::{Codec, Measured};

/// Time between two probes.
pub const PROBE_PERIOD: Duration = Duration::from_secs(5);
/// Weight of the newest measurement.
const WEIGHT: f64 = 0.2;
/// Messages below this size are never compressed, in bytes.
const BYTES_MIN: usize = 4096;

/// The codecs with which a message is to be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The message is sent as it is.
    Plain,
    /// One codec.
    One(Codec),
    /// Planes, or Zstandard if the message has no points.
    PlanesOrZstd,
    /// All codecs are measured, and the smallest result is sent.
    Probe,
}

impl Plan {
    /// Returns the codecs that are tried. The shortest result is used.
    #[must_use]
    pub const fn tried(&self) -> &'static [Codec] {
        match self {
            Self::Plain => &[],
            Self::One(Codec::Zstd) => &[Codec::Zstd],
            Self::One(Codec::Planes) => &[Codec::Planes],
            Self::PlanesOrZstd | Self::Probe => &[Codec::Planes, Codec::Zstd],
        }
    }

    /// Returns `true` if the time of the decompression is measured.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self, Self::Probe)
    }
}

/// Means of one codec.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    ratio: f64,
    encode_s_per_byte: f64,
    decode_s_per_byte: f64,
}

/// The choice for one topic.
#[derive(Debug, Default)]
pub struct Choice {
    estimates: [Option<Estimate>; Codec::ALL.len()],
    probed: Option<Mono>,
}

impl Choice {
    /// Returns the plan for a message of that size. `goodput` is in bytes per second, or `None` if it is not known yet.
    pub fn plan(&mut self, bytes: usize, goodput: Option<f64>, now: Mono) -> Plan {
        if bytes < BYTES_MIN {
            return Plan::Plain;
        }
        let Some(goodput) = goodput else { return Plan::Plain };
        if self.probed.is_none_or(|probed| now.since(probed) >= PROBE_PERIOD) {
            self.probed = Some(now);
            return Plan::Probe;
        }
        let bytes = bytes as f64;
        let time = |estimate: &Estimate| {
            let coding = estimate.encode_s_per_byte + estimate.decode_s_per_byte;
            bytes * (coding + 1.0 / estimate.ratio / goodput)
        };
        let known =
            Codec::ALL.into_iter().filter_map(|codec| Some((codec, time(self.estimates[codec as usize].as_ref()?))));
        match known.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
            Some((codec, time)) if time < bytes / goodput => Plan::One(codec),
            _ => Plan::Plain,
        }
    }

    /// Takes the measurements of a message of that size.
    pub fn observe(&mut self, bytes: usize, measured: &[(Codec, Measured)]) {
        for (codec, measured) in measured {
            let per_byte = |time: Duration| time.as_secs_f64() / bytes.max(1) as f64;
            let known = &mut self.estimates[*codec as usize];
            let encode = per_byte(measured.encode);
            let decode = measured.decode.map(per_byte);
            *known = Some(match known {
                None => Estimate {
                    ratio: measured.ratio,
                    encode_s_per_byte: encode,
                    // Without a measurement, it takes as long as the other way.
                    decode_s_per_byte: decode.unwrap_or(encode),
                },
                Some(before) => Estimate {
                    ratio: mean(before.ratio, measured.ratio),
                    encode_s_per_byte: mean(before.encode_s_per_byte, encode),
                    decode_s_per_byte: decode
                        .map_or(before.decode_s_per_byte, |new| mean(before.decode_s_per_byte, new)),
                },
            });
        }
    }
}

fn mean(before: f64, new: f64) -> f64 {
    before + WEIGHT * (new - before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::clock;

    const CLOUD: usize = 1_000_000;

    fn measured(ratio: f64, encode_ms: u64, decode_ms: u64) -> Measured {
        let time = Duration::from_millis;
        Measured { ratio, encode: time(encode_ms), decode: Some(time(decode_ms)) }
    }

    /// Returns a choice that knows both codecs, and a time shortly after its probe.
    fn informed() -> (Choice, Mono) {
        let (mut choice, now) = (Choice::default(), clock::mono());
        assert_eq!(choice.plan(CLOUD, Some(1e7), now), Plan::Probe);
        choice.observe(CLOUD, &[(Codec::Zstd, measured(1.25, 3, 1)), (Codec::Planes, measured(2.5, 2, 1))]);
        (choice, now.plus(Duration::from_millis(100)))
    }

    #[test]
    fn a_slow_link_is_worth_the_time_of_compression_and_a_fast_one_is_not() {
        let (mut choice, now) = informed();
        // Planes save 60 % of the size and take 3 ms: worth it below 200 MB/s.
        for (goodput, expected) in
            [(1e6, Plan::One(Codec::Planes)), (1e8, Plan::One(Codec::Planes)), (3e8, Plan::Plain)]
        {
            assert_eq!(choice.plan(CLOUD, Some(goodput), now), expected, "{goodput}");
        }
        assert_eq!(choice.plan(CLOUD, None, now), Plan::Plain);
        assert_eq!(choice.plan(1000, Some(1e3), now), Plan::Plain);
    }

    #[test]
    fn a_codec_that_became_useless_is_not_used() {
        let (mut choice, now) = informed();
        for _ in 0..30 {
            choice.observe(CLOUD, &[(Codec::Planes, measured(1.0, 2, 1))]);
        }
        assert_eq!(choice.plan(CLOUD, Some(1e6), now), Plan::One(Codec::Zstd));
    }

    #[test]
    fn a_probe_follows_once_a_period() {
        let (mut choice, now) = informed();
        let later = now.plus(PROBE_PERIOD);
        assert_eq!(choice.plan(CLOUD, Some(3e8), later), Plan::Probe);
        assert_eq!(choice.plan(CLOUD, Some(3e8), later), Plan::Plain);
    }
}
