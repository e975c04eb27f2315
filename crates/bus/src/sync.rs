//! Atomics, fences and the place to sleep, by one name: model tests put those of a model checker in their place. A file
//! with a protocol that is model-tested takes nothing else that threads share.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

pub(crate) use crate::futex::Futex;
