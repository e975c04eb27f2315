//! The robot with MQTT-SN.

#![no_std]
#![no_main]

use core::hint::black_box;

use panic_halt as _;
use viaduct_microcontroller::{device, mqttsn};

#[cortex_m_rt::entry]
fn main() -> ! {
    device::run(mqttsn::Robot::new(black_box("r1"), black_box("robots/sn/battery")))
}
