//! Target `secure_responder` of `viaduct_fuzz` with coverage feedback.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| viaduct_fuzz::secure::responder(octets));
