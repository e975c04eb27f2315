//! Limits of one bus.

/// Maximum number of topics of one bus.
pub(crate) const TOPICS_MAX: usize = 4096;

/// Maximum number of observers attached to a bus at a time. Each may hold a sample, and pools reserve buffers for that.
pub const OBSERVERS_MAX: usize = 4;
