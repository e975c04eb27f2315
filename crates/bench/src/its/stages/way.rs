//! The stages of one packet's way, as the paper's Table 2 has them.

use viaduct_units::Tai;

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// JSON to UPER, and the request for the station.
    FacilityOut,
    /// BTP and GeoNetworking: the frame.
    NetworkOut,
    /// The socket and the kernel, up to the interface.
    AccessOut,
    /// From one interface to the other.
    Physical,
    /// The kernel, the wake-up, the socket.
    AccessIn,
    /// Ethernet, GeoNetworking, BTP, and the decoding of the message.
    NetworkIn,
    /// The bus message and its JSON.
    FacilityIn,
    /// The client, the broker, the subscriber.
    Mqtt,
}

/// Stages of a way.
pub(super) const STAGES: usize = 8;

impl Stage {
    /// In the order of the way.
    pub(super) const ALL: [Self; STAGES] = [
        Self::FacilityOut,
        Self::NetworkOut,
        Self::AccessOut,
        Self::Physical,
        Self::AccessIn,
        Self::NetworkIn,
        Self::FacilityIn,
        Self::Mqtt,
    ];

    /// The paper's name of it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::FacilityOut => "facility_out",
            Self::NetworkOut => "network_out",
            Self::AccessOut => "access_out",
            Self::Physical => "physical",
            Self::AccessIn => "access_in",
            Self::NetworkIn => "network_in",
            Self::FacilityIn => "facility_in",
            Self::Mqtt => "mqtt",
        }
    }
}

/// The way of one packet. All moments are of the clock that the kernel stamps packets with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The application has its JSON; then the end of each stage.
    pub(super) moments: [Tai; STAGES + 1],
}

impl Way {
    /// The time of each stage in nanoseconds, which add up to [`Self::total_ns`]; `None` where a stage ended before it
    /// began, because the clock was set meanwhile.
    pub(super) fn stages_ns(&self) -> Option<[i64; STAGES]> {
        let mut stages = [0; STAGES];
        let borders = self.moments.iter().zip(self.moments.iter().skip(1));
        for (stage, (from, to)) in stages.iter_mut().zip(borders) {
            *stage = to.nanos().checked_sub(from.nanos()).filter(|time| *time >= 0)?;
        }
        (stages.iter().sum::<i64>() == self.total_ns()).then_some(stages)
    }

    /// From the first moment to the last, in nanoseconds.
    pub(super) fn total_ns(&self) -> i64 {
        let [first, .., last] = self.moments;
        last.nanos().saturating_sub(first.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(moments: [i64; STAGES + 1]) -> Way {
        Way { moments: moments.map(Tai::from_nanos) }
    }

    #[test]
    fn the_stages_add_up_to_the_total() {
        let way = way([5, 6, 8, 11, 11, 20, 21, 30, 105]);
        assert_eq!(way.stages_ns(), Some([1, 2, 3, 0, 9, 1, 9, 75]));
        assert_eq!(way.total_ns(), 100);
    }

    #[test]
    fn a_way_on_which_the_clock_was_set_has_no_stages() {
        assert_eq!(way([5, 6, 8, 7, 11, 20, 21, 30, 105]).stages_ns(), None);
    }
}
