//! Log lines of Cyclone DDS, as log lines of this program.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::{Mutex, Once, PoisonError};

use cyclors as dds;
use viaduct_bus::clock;

use viaduct_units::RateLimiter;

/// Largest number of lines per second. Peers can cause lines.
const LINES_PER_SECOND: u32 = 5;

static LIMITER: Mutex<RateLimiter> = Mutex::new(RateLimiter::new(LINES_PER_SECOND));

/// Redirects log lines, once per process.
pub(super) fn redirect() {
    static ONCE: Once = Once::new();
    // SAFETY: the function exists for the whole run of the program and does not use its first argument.
    ONCE.call_once(|| unsafe { dds::dds_set_log_sink(Some(write), ptr::null_mut()) });
}

/// Logs one line. Called by Cyclone DDS on any thread.
unsafe extern "C" fn write(_: *mut c_void, line: *const dds::dds_log_data_t) {
    // SAFETY: the library passes a valid line, whose message ends with NUL.
    let (text, severity) = unsafe {
        let Some(line) = line.as_ref() else { return };
        if line.message.is_null() {
            return;
        }
        (CStr::from_ptr(line.message).to_string_lossy(), line.priority)
    };
    let admitted = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).admit(clock::mono());
    let (Some(lines), text) = (admitted, text.trim_end()) else { return };
    if severity & (dds::DDS_LC_FATAL | dds::DDS_LC_ERROR | dds::DDS_LC_WARNING) == 0 {
        tracing::debug!(lines, text, "Cyclone DDS");
    } else {
        tracing::warn!(lines, text, "Cyclone DDS");
    }
}
