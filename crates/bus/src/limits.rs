//! Limits of one bus.

/// Topics that one bus holds at most.
pub(crate) const TOPICS_MAX: usize = 4096;

/// Observers that a bus has at most at a time: each may hold a sample, and pools keep buffers ready for that.
pub const OBSERVERS_MAX: usize = 4;
