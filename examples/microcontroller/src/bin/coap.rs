//! The robot with CoAP.

#![no_std]
#![no_main]

use core::hint::black_box;

use panic_halt as _;
use viaduct_microcontroller::{coap, device};

#[cortex_m_rt::entry]
fn main() -> ! {
    device::run(coap::Robot::new(black_box("battery"), 1))
}
