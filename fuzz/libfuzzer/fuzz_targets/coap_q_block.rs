//! Target `coap_q_block` of `viaduct_fuzz` with coverage feedback.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| viaduct_fuzz::coap::q_block(octets));
