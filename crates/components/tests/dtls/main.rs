//! DTLS with pre-shared keys: two ends over lossy links in virtual time, attacks, and OpenSSL as the other end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod attacks;
mod common;
mod limits;
mod links;
mod openssl;
