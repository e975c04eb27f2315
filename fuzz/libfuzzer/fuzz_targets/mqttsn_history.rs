//! Target `mqttsn_history` of `viaduct_fuzz` with coverage feedback.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| viaduct_fuzz::mqttsn::history(octets));
