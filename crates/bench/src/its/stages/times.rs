//! Stages of a packet's path, as in the paper's Table 2.

use viaduct_units::Tai;

/// A stage of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// JSON to UPER, and the request to the station.
    FacilityOut,
    /// BTP and GeoNetworking up to the frame.
    NetworkOut,
    /// Socket and kernel, up to the interface.
    AccessOut,
    /// From one interface to the other.
    Physical,
    /// Kernel, wake-up and socket.
    AccessIn,
    /// Ethernet, GeoNetworking, BTP and decoding of the message.
    NetworkIn,
    /// Bus message and its JSON.
    FacilityIn,
    /// MQTT client, broker and subscriber.
    Mqtt,
}

/// Number of stages.
pub(super) const STAGES: usize = 8;

impl Stage {
    /// All stages in path order.
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

    /// Returns the paper's name of the stage.
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

/// Times of one packet, by the clock of the kernel's packet timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTimes {
    /// Start (the application has its JSON), then the end of each stage.
    pub(super) times: [Tai; STAGES + 1],
}

impl PacketTimes {
    /// Returns the duration of each stage in nanoseconds; their sum is [`Self::total_ns`]. Returns `None` if a stage
    /// ends before it begins because the clock was set.
    pub(super) fn stages_ns(&self) -> Option<[i64; STAGES]> {
        let mut stages = [0; STAGES];
        let borders = self.times.iter().zip(self.times.iter().skip(1));
        for (stage, (from, to)) in stages.iter_mut().zip(borders) {
            *stage = to.nanos().checked_sub(from.nanos()).filter(|time| *time >= 0)?;
        }
        (stages.iter().sum::<i64>() == self.total_ns()).then_some(stages)
    }

    /// Returns the time from the first to the last timestamp in nanoseconds.
    pub(super) fn total_ns(&self) -> i64 {
        let [first, .., last] = self.times;
        last.nanos().saturating_sub(first.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(times: [i64; STAGES + 1]) -> PacketTimes {
        PacketTimes { times: times.map(Tai::from_nanos) }
    }

    #[test]
    fn stages_add_up_to_the_total() {
        let packet = times([5, 6, 8, 11, 11, 20, 21, 30, 105]);
        assert_eq!(packet.stages_ns(), Some([1, 2, 3, 0, 9, 1, 9, 75]));
        assert_eq!(packet.total_ns(), 100);
    }

    #[test]
    fn has_no_stages_if_the_clock_was_set() {
        assert_eq!(times([5, 6, 8, 7, 11, 20, 21, 30, 105]).stages_ns(), None);
    }
}
