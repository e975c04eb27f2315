//! Atomics, fences and the futex under one path, so that model tests can replace them with those of a model checker. A
//! file whose protocol is model-tested shares nothing else between threads.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

pub(crate) use crate::futex::Futex;
