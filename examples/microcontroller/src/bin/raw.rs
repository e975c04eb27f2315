//! The robot without a protocol.

#![no_std]
#![no_main]

use panic_halt as _;
use viaduct_microcontroller::{device, raw};

#[cortex_m_rt::entry]
fn main() -> ! {
    device::run(raw::Robot)
}
