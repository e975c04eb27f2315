//! A remote drive from end to end: a simulated vehicle with cameras, a link, a desk, and the pages of its people. Vehicle and desk are
//! nodes; the datagrams are real ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod attacks;
mod drive;
mod driving;
mod logins;
mod page;
mod relay;

use std::time::Duration;

/// Time after which a test fails that waits for something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
