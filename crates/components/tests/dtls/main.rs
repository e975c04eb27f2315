//! DTLS with pre-shared keys: two ends over lossy links in virtual time, attacks, and OpenSSL as the other end.

mod common;
mod openssl;
