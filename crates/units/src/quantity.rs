//! Physical quantities in SI units; angles in degrees, as in the standards.

/// Defines a quantity: a number with its unit in the type's name.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl $name {
            /// Returns the number in the unit of the type.
            #[must_use]
            pub const fn value(self) -> f64 {
                self.0
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
    };
}

quantity!(
    /// A length or an altitude, in metres.
    Metres
);
quantity!(
    /// A speed, in metres per second.
    MetresPerSecond
);
quantity!(
    /// An acceleration, in metres per second squared.
    MetresPerSecondSquared
);
quantity!(
    /// An angle in degrees. A heading counts clockwise from true north, 0 up to but not including 360.
    Degrees
);
quantity!(
    /// A rate of turn in degrees per second, positive to the left (counter-clockwise), as in TS 102 894-2.
    DegreesPerSecond
);

impl Degrees {
    /// Returns the same direction as an angle from 0 up to but not including 360.
    #[must_use]
    pub fn normalised(self) -> Self {
        let turned = self.0.rem_euclid(360.0);
        // A tiny negative angle rounds up to 360 itself.
        Self(if turned >= 360.0 { 0.0 } else { turned })
    }

    /// Returns the angle in radians.
    #[must_use]
    pub fn radians(self) -> f64 {
        self.0.to_radians()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_normalised_into_one_turn() {
        for (angle, expected) in [(0.0, 0.0), (360.0, 0.0), (-90.0, 270.0), (725.0, 5.0), (-1e-20, 0.0)] {
            assert_eq!(Degrees(angle).normalised().value(), expected, "{angle}");
        }
    }
}
