//! The target `signed_data` of `viaduct_fuzz`, driven by coverage.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| viaduct_fuzz::targets::signed_data(octets));
