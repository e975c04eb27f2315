//! The goodput of a TCP connection, as the kernel measures it.

use std::os::fd::{AsFd as _, OwnedFd};

use tokio::net::TcpStream;

/// Octets that the peer must have acknowledged before the goodput is known.
const ACKNOWLEDGED_MIN: u64 = 64 * 1024;

/// Measures the goodput of a TCP connection, below TLS and WebSocket. The connection stays open as long as this value exists.
#[derive(Debug)]
pub struct Monitor(OwnedFd);

impl Monitor {
    /// Creates the monitor of a connection.
    ///
    /// # Errors
    /// Returns an error if the process has too many open files.
    pub(super) fn of(stream: &TcpStream) -> std::io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(Self)
    }

    /// Returns the rate at which the peer has acknowledged octets recently, in octets per second. Returns `None` if too few were sent, or
    /// if the system does not measure it. Times in which there was nothing to send do not reduce the rate.
    #[must_use]
    pub fn goodput(&self) -> Option<f64> {
        let info = sys::tcp_info(self.0.as_fd())?;
        (info.octets_acknowledged >= ACKNOWLEDGED_MIN && info.delivery_rate > 0).then_some(info.delivery_rate as f64)
    }
}

/// The part of `tcp_info` (`linux/tcp.h`) that is used.
#[derive(Clone, Copy, Debug)]
struct TcpInfo {
    octets_acknowledged: u64,
    /// Octets per second.
    delivery_rate: u64,
}

#[cfg(target_os = "linux")]
mod sys {
    //! `getsockopt` with `TCP_INFO`.

    #![expect(unsafe_code, reason = "a system call")]

    use std::os::fd::{AsRawFd as _, BorrowedFd};

    use super::TcpInfo;

    /// Offsets in `tcp_info`, which grows only at its end.
    const OCTETS_ACKNOWLEDGED: usize = 120;
    const DELIVERY_RATE: usize = 160;

    pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
        let mut info = [0_u8; 256];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `info`, and the new length into `length`. Both live until the call returns.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let written = info.get(..usize::try_from(length).ok()?).filter(|_| result == 0)?;
        let number = |offset: usize| written.get(offset..)?.first_chunk().map(|octets| u64::from_ne_bytes(*octets));
        Some(TcpInfo { octets_acknowledged: number(OCTETS_ACKNOWLEDGED)?, delivery_rate: number(DELIVERY_RATE)? })
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use std::os::fd::BorrowedFd;

    use super::TcpInfo;

    pub(super) const fn tcp_info(_: BorrowedFd<'_>) -> Option<TcpInfo> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn the_goodput_is_known_after_the_first_octets() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut receiver = listener.accept().await.unwrap().0;
        let monitor = Monitor::of(&sender).unwrap();
        assert_eq!(monitor.goodput(), None);
        let octets = vec![0; 1 << 20];
        let mut received = vec![0; octets.len()];
        let (sent, read) = tokio::join!(sender.write_all(&octets), receiver.read_exact(&mut received));
        assert!(sent.is_ok() && read.is_ok());
        while monitor.goodput().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(monitor.goodput().unwrap() > 1e5);
    }
}
