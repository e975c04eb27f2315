//! The floor: UDP datagrams between two threads, without a protocol.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// Time without an answer after which a thread ends.
const SILENCE: Duration = Duration::from_secs(2);

/// Measures round trips of datagrams of a size over the loopback interface, in microseconds. Both threads wait in the kernel.
pub(super) fn ping_pong(octets: usize, count: usize) -> Result<Vec<f64>, BenchError> {
    let failed = BenchError::system("cannot exchange UDP datagrams");
    let open = || -> std::io::Result<(UdpSocket, UdpSocket)> {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        one.set_read_timeout(Some(SILENCE))?;
        other.set_read_timeout(Some(SILENCE))?;
        Ok((one, other))
    };
    let (ping, pong) = open().map_err(&failed)?;
    let echo = crate::floor::spawn("floor-pong", move || {
        let mut buffer = [0; 65_536];
        while let Ok(length) = pong.recv(&mut buffer) {
            // The other thread notices a datagram that is missing.
            if length == 0 || pong.send(&buffer[..length]).is_err() {
                break;
            }
        }
    })?;
    let payload = vec![7; octets.max(1)];
    let mut buffer = vec![0; 65_536];
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        ping.send(&payload).map_err(&failed)?;
        ping.recv(&mut buffer).map_err(&failed)?;
        samples.push(start.elapsed().as_secs_f64() * 1e6);
    }
    // An empty datagram ends the other thread.
    ping.send(&[]).map_err(&failed)?;
    crate::floor::join("floor-pong", echo)?;
    Ok(samples)
}
