//! Settings of links as config files and command lines express them.
//!
//! A [`LinkConfig`] holds the same settings as [`LinkSettings`]; only its bottleneck differs, which names a trace instead
//! of containing one. A [`LinkPatch`] changes some settings of a link. A [`LinksConfig`] is a profile with changes for
//! each direction. With the feature `serde` all of them can be read and written:
//!
//! ```yaml
//! profile: lossy-5
//! both:
//!   delay: { base_ms: 10, jitter: { normal_ms: 2 }, correlation: { time_ms: 20 } }
//! a_to_b:
//!   bottleneck: { rate: { mbps: 20, queue_octets: 100000 } }
//!   outages: { periodic: { first_ms: 2000, every_ms: 10000, duration_ms: 300 } }
//! ```

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    LinkSettings, Probability, Profile,
    link::{Bottleneck, Delay, DeliveryTrace, LinkSettingsError, Loss, Outages, Reorder},
    profile::LteDirection,
};

/// Highest rate in Mbit/s.
const MBPS_MAX: f64 = 1e6;
/// Capacity of a queue in octets if the config does not set it: 20 ms of 1 Gbit/s.
pub(crate) const QUEUE_OCTETS: usize = 2_500_000;

/// A value for each direction of a link between the ends `a` and `b`. In a profile, `a` is the vehicle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Duplex<T> {
    /// The value for packets from `a` to `b`.
    pub a_to_b: T,
    /// The value for packets from `b` to `a`.
    pub b_to_a: T,
}

/// Settings of one direction of a link. The default is perfect: no delay and no loss.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct LinkConfig {
    /// Rate limit and queue. Default: `none`.
    pub bottleneck: BottleneckConfig,
    /// Loss model. Default: `none`.
    pub loss: Loss,
    /// Times during which every packet is lost. Default: `none`.
    pub outages: Outages,
    /// Probability that a packet that is not lost arrives twice, 0 to 1. Default: 0.
    pub duplicate: Probability,
    /// Delay after the bottleneck. Default: 0.
    pub delay: Delay,
    /// Packets that later ones overtake. Default: none.
    pub reorder: Reorder,
    /// Octets that the real link adds to each packet, 0 to 65535. They count for the rate and the queue. Default: 0.
    /// Ethernet adds 38 to an IP packet.
    pub overhead_octets: u16,
}

/// Rate limit of a link.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BottleneckConfig {
    /// No limit.
    #[default]
    None,
    /// A constant rate.
    Rate(RateConfig),
    /// A recorded trace of delivery opportunities.
    Trace(TraceConfig),
    /// The synthetic trace of a driving vehicle's LTE link.
    LteDriving(LteDrivingConfig),
}

/// A constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RateConfig {
    /// Rate in Mbit/s, 0.000001 to 1000000.
    #[cfg_attr(feature = "serde", schemars(range(min = 0.000_001, max = 1_000_000.0)))]
    pub mbps: f64,
    /// Capacity of the queue in octets, the packet in transmission included. One packet always has room. Default: 2500000.
    #[cfg_attr(feature = "serde", serde(default = "default_queue_octets"))]
    pub queue_octets: usize,
}

/// A recorded trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct TraceConfig {
    /// File in the format of Mahimahi: one line per opportunity to deliver 1500 octets, in milliseconds since the start. A
    /// relative path starts at the working directory of the program.
    pub file: PathBuf,
    /// Capacity of the queue in octets. One packet always has room. Default: 2500000.
    #[cfg_attr(feature = "serde", serde(default = "default_queue_octets"))]
    pub queue_octets: usize,
}

/// The synthetic trace of a driving vehicle's LTE link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LteDrivingConfig {
    /// Direction of the trace.
    pub direction: LteDirection,
    /// Capacity of the queue in octets. One packet always has room. Default: 2500000.
    #[cfg_attr(feature = "serde", serde(default = "default_queue_octets"))]
    pub queue_octets: usize,
}

#[cfg(feature = "serde")]
const fn default_queue_octets() -> usize {
    QUEUE_OCTETS
}

/// Changes of a link's settings. Each setting that is present replaces the whole setting of that name.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct LinkPatch {
    /// Rate limit and queue. Absent: unchanged.
    pub bottleneck: Option<BottleneckConfig>,
    /// Loss model. Absent: unchanged.
    pub loss: Option<Loss>,
    /// Times during which every packet is lost. Absent: unchanged.
    pub outages: Option<Outages>,
    /// Probability that a packet that is not lost arrives twice, 0 to 1. Absent: unchanged.
    pub duplicate: Option<Probability>,
    /// Delay after the bottleneck. Absent: unchanged.
    pub delay: Option<Delay>,
    /// Packets that later ones overtake. Absent: unchanged.
    pub reorder: Option<Reorder>,
    /// Octets that the real link adds to each packet, 0 to 65535. Absent: unchanged.
    pub overhead_octets: Option<u16>,
}

/// Settings of both directions of a link: a profile, and changes of it.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct LinksConfig {
    /// Profile to start from. Absent: a perfect link.
    pub profile: Option<Profile>,
    /// Changes for both directions.
    pub both: LinkPatch,
    /// Changes for packets from `a` to `b`, after those for both directions.
    pub a_to_b: LinkPatch,
    /// Changes for packets from `b` to `a`, after those for both directions.
    pub b_to_a: LinkPatch,
}

/// The reason why a config is not a link.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinkConfigError {
    /// The rate is out of range.
    #[error("the rate is {0} Mbit/s, but must be 0.000001 to {MBPS_MAX}")]
    Rate(f64),
    /// The trace cannot be read.
    #[error("{}: {problem}", file.display())]
    Trace {
        /// The file.
        file: PathBuf,
        /// The problem of the file.
        problem: String,
    },
    /// The settings are not those of a link.
    #[error(transparent)]
    Settings(#[from] LinkSettingsError),
}

impl LinkConfigError {
    /// Returns the setting at fault, as a path of keys in [`LinkConfig`].
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Rate(_) => "bottleneck.rate.mbps",
            Self::Trace { .. } => "bottleneck.trace.file",
            Self::Settings(error) => error.key(),
        }
    }
}

impl<T> Duplex<T> {
    /// Returns the same value for both directions.
    #[must_use]
    pub fn symmetric(value: T) -> Self
    where
        T: Clone,
    {
        Self { a_to_b: value.clone(), b_to_a: value }
    }

    /// Returns the results of a function of each value.
    ///
    /// # Errors
    /// The first error of the function.
    pub fn try_map<U, E>(self, mut function: impl FnMut(T) -> Result<U, E>) -> Result<Duplex<U>, E> {
        Ok(Duplex { a_to_b: function(self.a_to_b)?, b_to_a: function(self.b_to_a)? })
    }
}

impl LinkConfig {
    /// Returns the settings of the link. `read_trace` reads the file of a recorded trace.
    ///
    /// # Errors
    /// The first invalid setting, or the problem with the trace.
    pub fn resolve(
        &self,
        read_trace: impl FnOnce(&Path) -> Result<DeliveryTrace, String>,
    ) -> Result<LinkSettings, LinkConfigError> {
        let settings = LinkSettings {
            bottleneck: self.bottleneck.resolve(read_trace)?,
            loss: self.loss,
            outages: self.outages.clone(),
            duplicate: self.duplicate,
            delay: self.delay,
            reorder: self.reorder,
            overhead_octets: self.overhead_octets,
        };
        settings.check()?;
        Ok(settings)
    }
}

impl BottleneckConfig {
    fn resolve(
        &self,
        read_trace: impl FnOnce(&Path) -> Result<DeliveryTrace, String>,
    ) -> Result<Bottleneck, LinkConfigError> {
        Ok(match self {
            Self::None => Bottleneck::None,
            Self::Rate(RateConfig { mbps, queue_octets }) => {
                Bottleneck::Rate { bits_per_second: bits_per_second(*mbps)?, queue_octets: *queue_octets }
            }
            Self::Trace(TraceConfig { file, queue_octets }) => {
                let trace =
                    read_trace(file).map_err(|problem| LinkConfigError::Trace { file: file.clone(), problem })?;
                Bottleneck::Trace { trace: Arc::new(trace), queue_octets: *queue_octets }
            }
            Self::LteDriving(LteDrivingConfig { direction, queue_octets }) => {
                Bottleneck::Trace { trace: Arc::new(direction.trace()), queue_octets: *queue_octets }
            }
        })
    }
}

fn bits_per_second(mbps: f64) -> Result<NonZeroU64, LinkConfigError> {
    let bits = (mbps * 1e6).round();
    if !(1.0..=MBPS_MAX * 1e6).contains(&bits) {
        return Err(LinkConfigError::Rate(mbps));
    }
    NonZeroU64::new(bits as u64).ok_or(LinkConfigError::Rate(mbps))
}

impl LinkPatch {
    /// Changes the settings of a link.
    pub fn apply(&self, link: &mut LinkConfig) {
        replace(&mut link.bottleneck, self.bottleneck.as_ref());
        replace(&mut link.loss, self.loss.as_ref());
        replace(&mut link.outages, self.outages.as_ref());
        replace(&mut link.duplicate, self.duplicate.as_ref());
        replace(&mut link.delay, self.delay.as_ref());
        replace(&mut link.reorder, self.reorder.as_ref());
        replace(&mut link.overhead_octets, self.overhead_octets.as_ref());
    }
}

impl From<LinkConfig> for LinkPatch {
    /// Returns the change that replaces each setting.
    fn from(link: LinkConfig) -> Self {
        let LinkConfig { bottleneck, loss, outages, duplicate, delay, reorder, overhead_octets } = link;
        Self {
            bottleneck: Some(bottleneck),
            loss: Some(loss),
            outages: Some(outages),
            duplicate: Some(duplicate),
            delay: Some(delay),
            reorder: Some(reorder),
            overhead_octets: Some(overhead_octets),
        }
    }
}

fn replace<T: Clone>(value: &mut T, new: Option<&T>) {
    if let Some(new) = new {
        *value = new.clone();
    }
}

impl LinksConfig {
    /// Returns the settings of each direction: those of the profile with the changes.
    #[must_use]
    pub fn links(&self) -> Duplex<LinkConfig> {
        let mut links = self.profile.map(Profile::config).unwrap_or_default();
        for (link, patch) in [(&mut links.a_to_b, &self.a_to_b), (&mut links.b_to_a, &self.b_to_a)] {
            self.both.apply(link);
            patch.apply(link);
        }
        links
    }
}
