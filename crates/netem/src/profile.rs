//! Named links.

use std::{fmt, str::FromStr, time::Duration};

use crate::{
    LinkSettings, Probability,
    config::{BottleneckConfig, Duplex, LinkConfig, LinkConfigError, LteDrivingConfig, QUEUE_OCTETS, RateConfig},
    link::{
        Bursts, Correlation, Delay, DeliveryTrace, Jitter, Loss, Order, Outages, PeriodicOutages, TraceModel,
        Variation, overhead,
    },
};

/// A named link. The end `a` is the vehicle. [`Profile::description`] has the figures, [`Profile::source`] their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub enum Profile {
    /// Gigabit Ethernet.
    #[cfg_attr(feature = "serde", serde(rename = "ethernet"))]
    Ethernet,
    /// A 5G link near the antenna.
    #[cfg_attr(feature = "serde", serde(rename = "5g"))]
    FiveG,
    /// An LTE link of a driving vehicle.
    #[cfg_attr(feature = "serde", serde(rename = "lte-driving"))]
    LteDriving,
    /// Gigabit Ethernet that loses 0.3 % of the packets.
    #[cfg_attr(feature = "serde", serde(rename = "lossy-0.3"))]
    Lossy03,
    /// Gigabit Ethernet that loses 5 % of the packets.
    #[cfg_attr(feature = "serde", serde(rename = "lossy-5"))]
    Lossy5,
    /// Gigabit Ethernet that loses 5 % of the packets, in bursts.
    #[cfg_attr(feature = "serde", serde(rename = "bursty-5"))]
    Bursty5,
    /// Gigabit Ethernet that is interrupted for 5 % of the time.
    #[cfg_attr(feature = "serde", serde(rename = "outage"))]
    Outage,
}

/// There is no profile of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {0:?}: the profiles are {list}", list = Profile::ALL.map(Profile::name).join(", "))]
pub struct UnknownProfile(pub String);

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 7] =
        [Self::Ethernet, Self::FiveG, Self::LteDriving, Self::Lossy03, Self::Lossy5, Self::Bursty5, Self::Outage];

    /// Returns the name in config files and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::FiveG => "5g",
            Self::LteDriving => "lte-driving",
            Self::Lossy03 => "lossy-0.3",
            Self::Lossy5 => "lossy-5",
            Self::Bursty5 => "bursty-5",
            Self::Outage => "outage",
        }
    }

    /// Returns rate, one-way delay and loss in one line. They hold for both directions if it names none.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Ethernet => "1 Gbit/s, 0.15 ms, no loss, queue 2.5 MB, 38 octets of overhead per packet",
            Self::FiveG => {
                "173.5 Mbit/s, 12.0 ms + exponential jitter of 1.6 ms (correlated over 20 ms), no loss, queue 1 MB"
            }
            Self::LteDriving => {
                "synthetic trace: up 1.90 Mbit/s, down 4.56 Mbit/s on average; 20 ms, no loss, queue 250 kB"
            }
            Self::Lossy03 => "`ethernet` with 0.3 % independent loss",
            Self::Lossy5 => "`ethernet` with 5 % independent loss",
            Self::Bursty5 => "`ethernet` with 5 % loss in bursts of 8 packets on average",
            Self::Outage => "`ethernet` without any packet for 250 ms every 5 s, first after 2 s",
        }
    }

    /// Returns the origin of the figures in one line.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::Ethernet => {
                "Rate and frame of IEEE 802.3. Delay: half a round trip of 0.3 ms between two hosts. Queue: 20 ms, room for four \
                 frames of 374 kB that are sent at once"
            }
            Self::FiveG => {
                "5G NSA at 3.7 GHz, 150 m from the antenna (mqtt_client paper, Table V): 13.6 ms with a deviation of 1.6 ms for empty \
                 messages. Rate: a message of 180 kB takes 8.3 ms longer (its deviation of 2.4 ms is not reproduced: \
                 1.6 ms)"
            }
            Self::LteDriving => {
                "Model fitted to 120 s of a driving AT&T LTE link of 2016 (Mahimahi): mean rate, variation, gaps. Delay and queue \
                 are assumptions: the trace has neither"
            }
            Self::Lossy03 => "Best effort over it loses half of the frames of 374 kB, as in the remote driving paper",
            Self::Lossy5 => "Loss that the remote driving paper names",
            Self::Bursty5 => "Same loss as `lossy-5`; the length of bursts is an assumption",
            Self::Outage => {
                "Same share as the loss of `lossy-5`. Longer than a vehicle holds its course, shorter than the deadline of \
                 500 ms in the remote driving paper"
            }
        }
    }

    /// Returns the settings of each direction as a config.
    #[must_use]
    pub fn config(self) -> Duplex<LinkConfig> {
        match self {
            Self::Ethernet => Duplex::symmetric(ethernet()),
            Self::FiveG => Duplex::symmetric(five_g()),
            Self::LteDriving => {
                Duplex { a_to_b: lte_driving(LteDirection::Up), b_to_a: lte_driving(LteDirection::Down) }
            }
            Self::Lossy03 => Duplex::symmetric(lossy(Loss::Independent(Probability::clamped(0.003)))),
            Self::Lossy5 => Duplex::symmetric(lossy(Loss::Independent(Probability::clamped(0.05)))),
            Self::Bursty5 => {
                Duplex::symmetric(lossy(Loss::Bursts(Bursts { loss: Probability::clamped(0.05), packets: 8.0 })))
            }
            Self::Outage => Duplex::symmetric(interrupted()),
        }
    }

    /// Returns the settings of each direction.
    ///
    /// # Errors
    /// None: the settings of each profile are valid. A test checks that.
    pub fn settings(self) -> Result<Duplex<LinkSettings>, LinkConfigError> {
        self.config().try_map(|link| link.resolve(|_| Err("no profile reads a file".to_owned())))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

fn ethernet() -> LinkConfig {
    LinkConfig {
        bottleneck: rate(1000.0, QUEUE_OCTETS),
        delay: Delay { base: Duration::from_micros(150), ..Delay::default() },
        overhead_octets: overhead::ETHERNET,
        ..LinkConfig::default()
    }
}

/// The exponential distribution has the skew of the measured one: minimum 11.9 ms and median 12.9 ms, here 12.0 and 13.1.
/// The jitter is correlated, so that the packets of one message have nearly the same delay and those of the next message,
/// 100 ms later, an independent one.
fn five_g() -> LinkConfig {
    let delay = Delay {
        base: Duration::from_millis(12),
        jitter: Jitter::Exponential(Duration::from_micros(1600)),
        correlation: Correlation::Time(Duration::from_millis(20)),
        order: Order::Kept,
    };
    LinkConfig { bottleneck: rate(173.5, 1_000_000), delay, ..LinkConfig::default() }
}

fn lte_driving(direction: LteDirection) -> LinkConfig {
    LinkConfig {
        bottleneck: BottleneckConfig::LteDriving(LteDrivingConfig { direction, queue_octets: 250_000 }),
        delay: Delay { base: Duration::from_millis(20), ..Delay::default() },
        ..LinkConfig::default()
    }
}

fn lossy(loss: Loss) -> LinkConfig {
    LinkConfig { loss, ..ethernet() }
}

fn interrupted() -> LinkConfig {
    let outages = Outages::Periodic(PeriodicOutages {
        first: Duration::from_secs(2),
        every: Duration::from_secs(5),
        duration: Duration::from_millis(250),
    });
    LinkConfig { outages, ..ethernet() }
}

fn rate(mbps: f64, queue_octets: usize) -> BottleneckConfig {
    BottleneckConfig::Rate(RateConfig { mbps, queue_octets })
}

/// Direction of an LTE link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum LteDirection {
    /// From the vehicle to the base station.
    Up,
    /// From the base station to the vehicle.
    Down,
}

/// Length of the recorded and of the synthetic traces.
const LTE_DURATION: Duration = Duration::from_secs(120);

impl LteDirection {
    /// Returns the synthetic trace of a driving vehicle: 120 s with the statistics of `ATT-LTE-driving-2016`, a recording
    /// that is part of Mahimahi.
    ///
    /// | | recorded up | synthetic up | recorded down | synthetic down |
    /// |---|---|---|---|---|
    /// | mean rate in Mbit/s | 1.91 | 1.90 | 4.56 | 4.56 |
    /// | deviation / mean of the rate over 100 ms | 1.22 | 1.24 | 1.04 | 1.07 |
    /// | deviation / mean of the rate over 1 s | 0.88 | 0.89 | 0.85 | 0.83 |
    /// | share of 100 ms without opportunity | 13.8 % | 14.4 % | 7.2 % | 7.2 % |
    /// | share of time in gaps of at least 1 s | 10.7 % | 10.7 % | 0.9 % | 0 % |
    #[must_use]
    pub fn trace(self) -> DeliveryTrace {
        // The seeds are those whose 120 s come closest to the recording.
        match self {
            Self::Up => UPLINK.trace(LTE_DURATION, 4402),
            Self::Down => DOWNLINK.trace(LTE_DURATION, 675),
        }
    }
}

const UPLINK: TraceModel = TraceModel {
    mean_bits_per_second: 1.910_068e6,
    outage: Duration::from_millis(700),
    between: Duration::from_millis(3500),
    slow: Variation { deviation: 0.8, time_constant: Duration::from_millis(1200) },
    fast: Variation { deviation: 0.6, time_constant: Duration::from_millis(90) },
};

const DOWNLINK: TraceModel = TraceModel {
    mean_bits_per_second: 4.560_324e6,
    outage: Duration::from_millis(200),
    between: Duration::from_millis(1500),
    slow: Variation { deviation: 0.9, time_constant: Duration::from_millis(3600) },
    fast: Variation { deviation: 0.45, time_constant: Duration::from_millis(50) },
};
