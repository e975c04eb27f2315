//! Traffic class, EN 302 636-4-1, clause 9.7.5.

/// `TC`: store-carry-forward (1 bit), channel offload (1 bit), TC ID (6 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// DCC profile DP0, for the first packet of a DENM (TS 103 175).
    pub const DP0: Self = Self(0);
    /// DCC profile DP1, for a DENM that is repeated.
    pub const DP1: Self = Self(1);
    /// DCC profile DP2, for CAM (TS 103 175).
    pub const DP2: Self = Self(2);
    /// DCC profile DP3, for messages below CAM in priority.
    pub const DP3: Self = Self(3);

    /// Returns `true` if the packet is to be stored while there is no neighbour (SCF).
    #[must_use]
    pub const fn store_carry_forward(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// Returns the TC ID, 0 to 63.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.0 & 0x3F
    }
}
