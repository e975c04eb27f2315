//! Benchmarks. Each repeats the measurement of one paper on this machine and returns a [`Report`].
//! A report has Viaduct's rows, floor rows of the same run (the cost of kernel or memory without Viaduct) and the
//! paper's published figures. No sample is removed from a row.
//!
//! ```no_run
//! let report = viaduct_bench::bus::run(&viaduct_bench::bus::Options::default())?;
//! report.print_table()?;
//! report.write_json("bus.json".as_ref())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod abuse;
pub mod bridge;
pub mod bus;
pub mod constrained;
pub mod drive;
pub mod its;

mod error;
mod floor;
mod keep_awake;
mod machine;
mod nodes;
mod paper;
mod process;
mod progress;
mod report;
mod state;
mod statistics;
mod sys;
mod threads;

pub use error::BenchError;
pub use machine::Machine;
pub use report::{Cost, Report, Row, Section};
pub use statistics::Summary;
pub use sys::CountingAllocator;

/// Returns the lock of tests that measure with real-time threads, load or time-outs: two such tests would disturb each
/// other.
#[cfg(test)]
fn measurement_lock() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
