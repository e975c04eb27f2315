//! Conversions of BIT STRING types from and to octets and bits, so that users do not need the codec's types.

/// Conversions of a type with a fixed size of up to eight bits.
macro_rules! small_bit_string {
    ($name:ident, $bits:literal) => {
        impl $name {
            /// Creates the string from an octet whose most significant bit is the first bit of the string. Bits
            /// beyond the size are ignored.
            #[must_use]
            pub fn from_octet(octet: u8) -> Self {
                // rasn stores N octets for N bits and uses only the first N bits, which are all in the first octet.
                let mut octets = [0_u8; $bits];
                if let Some(first) = octets.first_mut() {
                    *first = octet & (0xFF << (8 - $bits));
                }
                Self(FixedBitString::new(octets))
            }

            /// Returns the bits as an octet, the first one most significant.
            #[must_use]
            pub fn octet(self) -> u8 {
                self.0.into_inner().first().copied().unwrap_or(0)
            }
        }
    };
}

/// Conversions of a type with a fixed size of more than eight bits.
macro_rules! large_bit_string {
    ($name:ident, $bits:literal) => {
        impl $name {
            /// Creates the string from the bits in their order.
            #[must_use]
            pub fn from_bits(bits: [bool; $bits]) -> Self {
                let mut string = FixedBitString::ZERO;
                for (at, bit) in bits.into_iter().enumerate() {
                    string.set(at, bit);
                }
                Self(string)
            }

            /// Returns the bits in their order.
            pub fn bits(&self) -> impl Iterator<Item = bool> + '_ {
                self.0.iter().by_vals().take($bits)
            }
        }
    };
}

/// Conversions of a type with a variable size.
macro_rules! variable_bit_string {
    ($name:ident) => {
        impl $name {
            /// Creates the string from the bits in their order.
            #[must_use]
            pub fn from_bits(bits: impl IntoIterator<Item = bool>) -> Self {
                Self(bits.into_iter().collect())
            }

            /// Returns the bits in their order.
            pub fn bits(&self) -> impl Iterator<Item = bool> + '_ {
                self.0.iter().by_vals()
            }
        }
    };
}

pub(super) use {large_bit_string, small_bit_string, variable_bit_string};
