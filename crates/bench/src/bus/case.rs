//! The cases: one base case, and cases that differ from it in one parameter.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sys::Placement;

/// Real-time priority of a publisher's thread.
const PUBLISHER_PRIORITY: u8 = 50;
/// Real-time priority of a subscriber's thread, above the publisher's, so that it runs at once on the same core.
const SUBSCRIBER_PRIORITY: u8 = 60;

/// One set of parameters. Its fields are the `params` of its row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) measure: Measure,
    pub(super) mode: Mode,
    pub(super) fill: Fill,
    pub(super) cores: Cores,
    pub(super) policy: Policy,
    /// Size of a message in bytes.
    pub(super) size: usize,
    pub(super) subscribers: usize,
    pub(super) rate_hz: u32,
    pub(super) load: Load,
    /// `true` with an observer: an untyped subscriber and a reader of the counters.
    pub(super) observer: bool,
    /// `true` with a second subscriber that is too slow.
    #[serde(skip_serializing_if = "is_no")]
    pub(super) slow_subscriber: bool,
    /// `true` if the publisher fills a loan between tick and stamp, `false` if another thread fills it before the
    /// tick.
    #[serde(skip_serializing_if = "is_no")]
    pub(super) just_filled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reliability: Option<Reliability>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
const fn is_no(value: &bool) -> bool {
    !*value
}

/// Start and end of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    /// From the publisher to the subscriber.
    OneWay,
    /// From the publisher to the subscriber and back on another topic.
    Rtt,
}

/// Executor of the subscriber's callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// The publisher's thread, inside `publish`.
    Inline,
    /// A dedicated thread of the subscriber.
    Thread,
    /// A pool of two threads.
    Pool,
    /// A task of an async runtime with two threads.
    Async,
    /// Another process.
    Process,
}

/// Position of the filling relative to the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fill {
    /// Filled before the stamp; unless `just_filled` is set, before the tick.
    Loan,
    /// Filled after the stamp.
    Copy,
}

impl Fill {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Loan => "loan",
            Self::Copy => "copy",
        }
    }
}

/// Placement of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cores {
    /// All on one core.
    Same,
    /// The publisher on one core, the subscribers on another.
    Cross,
    /// Chosen by the kernel.
    Free,
}

/// Scheduling policy of the publisher's and the subscribers' threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Policy {
    /// The ordinary policy.
    Other,
    /// Real time: the publisher with priority 50, the subscribers with 60.
    Fifo,
}

/// Other load of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Load {
    /// Nothing.
    None,
    /// Two threads that calculate.
    Cpu,
    /// A thread that copies large memory.
    Memory,
}

/// QoS, if it differs from best effort with keep last 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reliability {
    /// Reliable, keep all.
    ReliableKeepAll,
}

impl Case {
    /// Returns the base case: a loan, an executor thread on the publisher's core, real time, one subscriber.
    pub(super) const fn base(size: usize, rate_hz: u32) -> Self {
        Self {
            measure: Measure::OneWay,
            mode: Mode::Thread,
            fill: Fill::Loan,
            cores: Cores::Same,
            policy: Policy::Fifo,
            size,
            subscribers: 1,
            rate_hz,
            load: Load::None,
            observer: false,
            slow_subscriber: false,
            just_filled: false,
            reliability: None,
        }
    }

    pub(super) fn params(&self) -> Value {
        // A struct of numbers and names is always a JSON object.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the time from one message to the next, or zero without a rate.
    pub(super) fn period(&self) -> Duration {
        if self.rate_hz == 0 { Duration::ZERO } else { Duration::from_secs(1) / self.rate_hz }
    }

    pub(super) fn publisher(&self, cores: &[usize]) -> Placement {
        let nth_last = if self.cores == Cores::Cross { 1 } else { 0 };
        self.placement(cores, nth_last, PUBLISHER_PRIORITY)
    }

    /// Returns `true` if a producer thread fills the messages before the tick.
    pub(super) fn has_producer(&self) -> bool {
        self.fill == Fill::Loan && !self.just_filled
    }

    /// Returns the placement of the producer thread: not on the publisher's core, if there is another one.
    pub(super) fn producer(&self, cores: &[usize]) -> Placement {
        let publisher = self.publisher(cores).cores;
        Placement { cores: cores.iter().copied().filter(|core| !publisher.contains(core)).collect(), fifo: None }
    }

    pub(super) fn subscriber(&self, cores: &[usize]) -> Placement {
        self.placement(cores, 0, SUBSCRIBER_PRIORITY)
    }

    /// Chooses the last cores: the first core has the most work for the system.
    fn placement(&self, cores: &[usize], nth_last: usize, priority: u8) -> Placement {
        let core = cores.iter().rev().nth(nth_last.min(cores.len().saturating_sub(1)));
        let cores = if self.cores == Cores::Free { None } else { core };
        Placement {
            cores: cores.copied().into_iter().collect(),
            fifo: (self.policy == Policy::Fifo).then_some(priority),
        }
    }
}

/// Returns the cases of the bus: the base at each size with both fills and as round trip, and variations of the base
/// at one size.
pub(super) fn of_the_bus(sizes: &[usize], base_size: usize, rate_hz: u32, slow_rate_hz: u32) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for measure in [Measure::OneWay, Measure::Rtt] {
        for fill in [Fill::Loan, Fill::Copy] {
            cases.extend(sizes.iter().map(|size| Case { measure, fill, ..Case::base(*size, rate_hz) }));
        }
    }
    cases.extend(variations(&Case::base(base_size, rate_hz), slow_rate_hz));
    let mut once: Vec<Case> = Vec::new();
    for case in cases {
        if !once.contains(&case) {
            once.push(case);
        }
    }
    once
}

fn variations(base: &Case, slow_rate_hz: u32) -> Vec<Case> {
    let mut cases = vec![base.clone()];
    cases.extend([Mode::Inline, Mode::Pool, Mode::Async].map(|mode| Case { mode, ..base.clone() }));
    cases.extend([Cores::Cross, Cores::Free].map(|cores| Case { cores, ..base.clone() }));
    let other = Case { policy: Policy::Other, ..base.clone() };
    let free = Case { cores: Cores::Free, ..other.clone() };
    cases.extend([other, Case { fill: Fill::Copy, ..free.clone() }, free]);
    cases.extend([2, 4, 8].map(|subscribers| Case { subscribers, ..base.clone() }));
    cases.extend([Load::Cpu, Load::Memory].map(|load| Case { load, ..base.clone() }));
    cases.push(Case { observer: true, ..base.clone() });
    cases.push(Case { rate_hz: slow_rate_hz, ..base.clone() });
    cases.push(Case { slow_subscriber: true, ..base.clone() });
    cases.push(Case { just_filled: true, ..base.clone() });
    cases.push(Case { reliability: Some(Reliability::ReliableKeepAll), ..base.clone() });
    cases
}

/// Returns the cases of the empty hand-off, each with a producer (for loans) and alone (for copies). The cases have
/// every placement and policy of the bus and its competitors, and the base placement at each size.
pub(super) fn of_the_futex(sizes: &[usize], base_size: usize, rate_hz: u32) -> Vec<Case> {
    let places = [
        (Cores::Same, Policy::Fifo),
        (Cores::Cross, Policy::Fifo),
        (Cores::Free, Policy::Fifo),
        (Cores::Same, Policy::Other),
        (Cores::Free, Policy::Other),
    ];
    let placed = places.map(|(cores, policy)| Case { cores, policy, ..Case::base(base_size, rate_hz) });
    let others = sizes.iter().filter(|size| **size != base_size).map(|size| Case::base(*size, rate_hz));
    let both = |case: Case| [Fill::Loan, Fill::Copy].map(|fill| Case { fill, ..case.clone() });
    placed.into_iter().chain(others).flat_map(both).collect()
}

/// Returns the cases of memcpy: each size, on the publisher's core.
pub(super) fn of_memcpy(sizes: &[usize]) -> Vec<Case> {
    sizes.iter().map(|size| Case { mode: Mode::Inline, fill: Fill::Copy, ..Case::base(*size, 0) }).collect()
}

/// Returns the cases of a competitor: loans of these sizes as in the base case, and the base size as a copy and with
/// the kernel's placement.
pub(super) fn of_a_rival(measure: Measure, mode: Mode, sizes: &[usize], base_size: usize, rate_hz: u32) -> Vec<Case> {
    let of_size = |size: &usize| Case { measure, mode, ..Case::base(*size, rate_hz) };
    let base = of_size(&base_size);
    let free = Case { cores: Cores::Free, policy: Policy::Other, ..base.clone() };
    sizes.iter().map(of_size).chain([Case { fill: Fill::Copy, ..base }, free]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 2] = [32 << 10, 1 << 20];

    #[test]
    fn row_has_the_documented_parameters() {
        let keys = |case: &Case| {
            let params = case.params();
            let mut keys: Vec<String> = params.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys.join(" ")
        };
        let base = Case::base(1 << 20, 1000);
        assert_eq!(keys(&base), "cores fill load measure mode observer policy rate_hz size subscribers");
        assert!(keys(&Case { slow_subscriber: true, ..base.clone() }).contains("size slow_subscriber"));
        assert_eq!(base.params()["measure"], "one_way");
        assert_eq!(Case { mode: Mode::Async, ..base }.params()["mode"], "async");
    }

    #[test]
    fn variations_are_unique_and_close_to_the_base() {
        let cases = of_the_bus(&SIZES, 1 << 20, 1000, 10);
        let base = Case::base(1 << 20, 1000).params();
        for case in &cases {
            let params = case.params();
            let differ =
                params.as_object().unwrap().iter().filter(|(key, value)| base.get(*key) != Some(value)).count();
            assert!(differ <= 3, "{case:?}");
            assert_eq!(cases.iter().filter(|other| *other == case).count(), 1, "{case:?}");
        }
        assert_eq!(cases.len(), 4 * 2 + 3 + 2 + 3 + 3 + 2 + 5);
    }

    #[test]
    fn uses_the_last_cores() {
        let cores = [0, 1, 5, 9];
        let base = Case::base(64, 1000);
        assert_eq!(base.publisher(&cores), Placement { cores: vec![9], fifo: Some(50) });
        assert_eq!(base.subscriber(&cores), Placement { cores: vec![9], fifo: Some(60) });
        let cross = Case { cores: Cores::Cross, policy: Policy::Other, ..base.clone() };
        assert_eq!(cross.publisher(&cores), Placement { cores: vec![5], fifo: None });
        assert_eq!((base.producer(&cores).cores, cross.producer(&cores).cores), (vec![0, 1, 5], vec![0, 1, 9]));
        assert_eq!(cross.publisher(&[3]), Placement { cores: vec![3], fifo: None });
        assert_eq!(Case { cores: Cores::Free, ..base }.subscriber(&cores).cores, Vec::<usize>::new());
    }
}
