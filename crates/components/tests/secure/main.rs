//! Encrypted datagrams: handshakes, keys that change under traffic, restarts, and attacks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod attacks;
mod common;
mod floods;
mod links;
