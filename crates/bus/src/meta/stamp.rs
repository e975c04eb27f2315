//! One stamp on the path of a message.

use std::time::Duration;

use viaduct_units::Tai;

use super::name::HopName;

/// What happened to a message at the time of a stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopKind {
    /// The component published it on the bus.
    #[default]
    Published,
    /// The component took it from its queue.
    Taken,
    /// The component sent it to another node.
    Sent,
    /// The component received it from another node.
    Received,
}

impl HopKind {
    /// All kinds, in the order of their codes.
    const ALL: [Self; 4] = [Self::Published, Self::Taken, Self::Sent, Self::Received];

    /// Returns `true` if the message came to the component: the hop before the stamp is transport, and the one after it
    /// is the work of the component.
    #[must_use]
    pub const fn is_arrival(self) -> bool {
        matches!(self, Self::Taken | Self::Received)
    }

    /// Returns the name in documents: `published`, `taken`, `sent` or `received`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Taken => "taken",
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// Knowledge about the clock with which a stamp was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockState {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The clock is that of the stamp before: both nodes run on one machine.
    Shared,
    /// The clock is synchronised, and differs from the true time by at most this.
    Within(Duration),
    /// The clock is not synchronised.
    Unsynchronised,
}

impl ClockState {
    /// Returns the state of the difference between two clocks.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unsynchronised, _) | (_, Self::Unsynchronised) => Self::Unsynchronised,
            (Self::Within(one), Self::Within(other)) => Self::Within(one.saturating_add(other)),
            _ => Self::Unknown,
        }
    }

    /// Returns the name in documents: `unknown`, `shared`, `synchronised` or `unsynchronised`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Shared => "shared",
            Self::Within(_) => "synchronised",
            Self::Unsynchronised => "unsynchronised",
        }
    }

    /// Returns the bound of the error: zero for one clock, and `None` if there is no bound.
    #[must_use]
    pub const fn error(self) -> Option<Duration> {
        match self {
            Self::Shared => Some(Duration::ZERO),
            Self::Within(error) => Some(error),
            Self::Unknown | Self::Unsynchronised => None,
        }
    }
}

/// Codes of the states without a number.
const UNKNOWN: u8 = 0;
const SHARED: u8 = 1;
const UNSYNCHRONISED: u8 = 2;
/// Code of the smallest bound.
const SMALLEST: u8 = 3;
/// Binary logarithm of the smallest bound in nanoseconds, times two; the largest bound is 2^34 ns (17 s).
const HALF_OCTAVES_MIN: u8 = 8;
const HALF_OCTAVES_MAX: u8 = 68;
/// Bits of the kind in a mark. The others are the state of the clock.
const KIND_BITS: u8 = 2;

/// One stamp: a component, what happened to the message there, and when. It has 24 bytes, so that sixteen of them are
/// six cache lines.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct HopStamp {
    /// The component.
    pub hop: HopName,
    /// Kind and state of the clock.
    mark: u8,
    /// The time.
    pub at: Tai,
}

impl HopStamp {
    /// Creates a stamp whose clock is not known.
    #[must_use]
    #[inline]
    pub const fn new(hop: HopName, kind: HopKind, at: Tai) -> Self {
        Self { hop, mark: kind as u8, at }
    }

    /// Sets the state of the clock. A bound is rounded up to a power of the square root of two; a bound above 17 s is
    /// that of a clock that is not synchronised.
    #[must_use]
    pub fn with_clock(self, clock: ClockState) -> Self {
        Self { mark: self.kind() as u8 | code(clock) << KIND_BITS, ..self }
    }

    /// Returns what happened to the message.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> HopKind {
        HopKind::ALL[(self.mark & 3) as usize]
    }

    /// Returns the state of the clock.
    #[must_use]
    pub fn clock(&self) -> ClockState {
        match self.mark >> KIND_BITS {
            UNKNOWN => ClockState::Unknown,
            SHARED => ClockState::Shared,
            UNSYNCHRONISED => ClockState::Unsynchronised,
            code => ClockState::Within(bound(code - SMALLEST + HALF_OCTAVES_MIN)),
        }
    }

    /// Returns the binary logarithm of the bound of the clock's error in nanoseconds, times two: 8 to 68.
    #[must_use]
    pub const fn half_octaves(&self) -> Option<u8> {
        match self.mark >> KIND_BITS {
            UNKNOWN | SHARED | UNSYNCHRONISED => None,
            code => Some(code - SMALLEST + HALF_OCTAVES_MIN),
        }
    }

    /// Returns the state of the clock with that bound, or `None` if `half_octaves` is not 8 to 68.
    #[must_use]
    pub fn clock_within(half_octaves: u8) -> Option<ClockState> {
        let is_valid = (HALF_OCTAVES_MIN..=HALF_OCTAVES_MAX).contains(&half_octaves);
        is_valid.then(|| ClockState::Within(bound(half_octaves)))
    }

    /// Returns the state of the two clocks of the hop from this stamp to `next`, or `None` if the hop is not between
    /// two nodes.
    #[must_use]
    pub fn clocks_until(&self, next: &Self) -> Option<ClockState> {
        if (self.kind(), next.kind()) != (HopKind::Sent, HopKind::Received) {
            return None;
        }
        Some(if next.clock() == ClockState::Shared { ClockState::Shared } else { self.clock().plus(next.clock()) })
    }
}

impl std::fmt::Debug for HopStamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?}", self.hop, self.kind().label(), self.at)?;
        if self.clock() == ClockState::Unknown { Ok(()) } else { write!(f, " {:?}", self.clock()) }
    }
}

fn code(clock: ClockState) -> u8 {
    match clock {
        ClockState::Unknown => UNKNOWN,
        ClockState::Shared => SHARED,
        ClockState::Unsynchronised => UNSYNCHRONISED,
        ClockState::Within(error) => {
            let octaves = u8::try_from(error.as_nanos().max(1).ilog2()).unwrap_or(u8::MAX / 2);
            let first = (2 * octaves.min(HALF_OCTAVES_MAX)).max(HALF_OCTAVES_MIN);
            let fits = |half_octaves: &u8| bound(*half_octaves) >= error;
            match (first..=HALF_OCTAVES_MAX).take(3).find(fits) {
                Some(half_octaves) => half_octaves - HALF_OCTAVES_MIN + SMALLEST,
                None => UNSYNCHRONISED,
            }
        }
    }
}

/// Returns 2^(n/2) ns, rounded up.
fn bound(half_octaves: u8) -> Duration {
    let octave = 1_u64 << (half_octaves / 2);
    let nanos = if half_octaves.is_multiple_of(2) { octave } else { (octave * 1_414_213_563).div_ceil(1_000_000_000) };
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_24_bytes() {
        assert_eq!(size_of::<HopStamp>(), 24);
    }

    #[test]
    fn a_bound_is_rounded_up_by_at_most_the_square_root_of_two() {
        let stamp = HopStamp::new(HopName::new("a"), HopKind::Sent, Tai::from_nanos(1));
        for nanos in [16_u64, 17, 22, 23, 999, 250_000, 262_144, 300_000, 1_000_000, 16_000_000_000] {
            let stamp = stamp.with_clock(ClockState::Within(Duration::from_nanos(nanos)));
            let found = stamp.clock().error().unwrap().as_nanos() as f64;
            assert!(found >= nanos as f64 && found <= nanos as f64 * 1.415 + 1.0, "{found} for {nanos}");
            assert_eq!(
                (stamp.kind(), stamp.half_octaves().and_then(HopStamp::clock_within)),
                (HopKind::Sent, Some(stamp.clock()))
            );
        }
        let clock = |error| stamp.with_clock(ClockState::Within(error)).clock();
        assert_eq!(clock(Duration::ZERO), ClockState::Within(Duration::from_nanos(16)));
        assert_eq!(clock(Duration::from_secs(18)), ClockState::Unsynchronised);
        assert_eq!(clock(Duration::MAX), ClockState::Unsynchronised);
        assert_eq!((HopStamp::clock_within(7), HopStamp::clock_within(69)), (None, None));
    }

    #[test]
    fn every_kind_and_state_is_kept() {
        for kind in HopKind::ALL {
            for clock in [ClockState::Unknown, ClockState::Shared, ClockState::Unsynchronised] {
                let stamp = HopStamp::new(HopName::new("a"), kind, Tai::from_nanos(1)).with_clock(clock);
                assert_eq!((stamp.kind(), stamp.clock()), (kind, clock));
            }
        }
    }
}
