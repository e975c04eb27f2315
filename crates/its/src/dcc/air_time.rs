//! Air time of frames (IEEE 802.11, OFDM in 10 MHz, as used by EN 302 663).

use std::time::Duration;

/// Duration of preamble and signal field, in microseconds.
const PREAMBLE_US: u64 = 40;
/// Duration of one symbol, in microseconds.
const SYMBOL_US: u64 = 8;
/// Service field and tail, in bits.
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;
/// Octets of the 802.11 header, frame check sequence, LLC and SNAP, which replace the Ethernet header on air.
const LINK_OCTETS: u64 = 26 + 4 + 8;

/// Returns the air time of a frame whose GeoNetworking packet has `packet_octets` octets, with `bits_per_symbol` data
/// bits per symbol (48 at 6 Mbit/s).
#[must_use]
pub fn air_time(packet_octets: usize, bits_per_symbol: u32) -> Duration {
    let octets = u64::try_from(packet_octets).unwrap_or(u64::MAX / 16).min(u64::MAX / 16) + LINK_OCTETS;
    let symbols = (octets * 8 + SERVICE_AND_TAIL_BITS).div_ceil(u64::from(bits_per_symbol.max(1)));
    Duration::from_micros(symbols.saturating_mul(SYMBOL_US).saturating_add(PREAMBLE_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_takes_its_preamble_and_whole_symbols() {
        // 85 + 38 octets: 984 bits and 22 more are 21 symbols of 48.
        assert_eq!(air_time(85, 48), Duration::from_micros(40 + 21 * 8));
        assert_eq!(air_time(0, 48), Duration::from_micros(40 + 7 * 8));
        assert!(air_time(usize::MAX, 0) > Duration::from_secs(1));
    }
}
