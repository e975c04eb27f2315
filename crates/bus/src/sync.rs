//! The atomics of what is model-tested: a model test puts its own in this module's place.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
