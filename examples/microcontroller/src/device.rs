//! The device: buffers of fixed size, and a link that returns the answers of an edge.
//!
//! A real device has a driver of its radio in place of the link.

use core::hint::black_box;

use crate::{ANSWERS, Robot};

/// Octets of the buffer for each direction.
pub const BUFFER_OCTETS: usize = 256;
/// A reading.
const READING: &[u8] = br#"{"charge_percent":57}"#;

/// Runs a robot until the link has no more answers. Returns the number of readings that were acknowledged.
fn exchange(robot: &mut impl Robot) -> u32 {
    let mut sent = [0; BUFFER_OCTETS];
    let mut received = [0; BUFFER_OCTETS];
    let mut acknowledged = 0;
    // The compiler must not compute the messages in advance: on a device, it knows neither readings nor answers.
    for answer in black_box(ANSWERS) {
        let octets = robot.transmit(black_box(READING), &mut sent);
        black_box(sent.get(..octets));
        if let Some(datagram) = received.get_mut(..answer.len()) {
            datagram.copy_from_slice(answer);
            acknowledged += u32::from(robot.handle(black_box(datagram)));
        }
    }
    acknowledged
}

/// Runs a robot, and reports the figures if the feature `stack` is on.
pub fn run(mut robot: impl Robot) -> ! {
    report(black_box(exchange(&mut robot)));
    loop {
        core::hint::spin_loop();
    }
}

/// Prints the figures to the debugger, and ends the program.
#[cfg(feature = "stack")]
fn report(acknowledged: u32) {
    use core::fmt::Write as _;
    use cortex_m_semihosting::{debug, hio};

    let stack_bytes = sys::stack_bytes_max();
    let written =
        hio::hstdout().map(|mut output| writeln!(output, "acknowledged {acknowledged} stack_bytes {stack_bytes}"));
    debug::exit(if matches!(written, Ok(Ok(()))) { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
}

#[cfg(not(feature = "stack"))]
const fn report(_acknowledged: u32) {}

#[cfg(feature = "stack")]
mod sys {
    #![allow(unsafe_code)]

    use cortex_m_rt::STACK_PAINT_VALUE;

    unsafe extern "C" {
        static _stack_start: u32;
        static _stack_end: u32;
    }

    /// Returns the largest number of bytes that the stack has had since the start: those from its beginning down to the
    /// last word whose initial pattern was overwritten.
    pub(super) fn stack_bytes_max() -> usize {
        let (start, end) = (&raw const _stack_start, &raw const _stack_end);
        let mut word = end;
        // SAFETY: the linker script places the symbols at both ends of one area of RAM that the runtime has filled
        // with the pattern before `main`. Only words between them are read, and reads are volatile.
        while word < start && unsafe { word.read_volatile() } == STACK_PAINT_VALUE {
            word = word.wrapping_add(1);
        }
        start as usize - word as usize
    }
}
