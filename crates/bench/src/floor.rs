//! Floors: the cost of the machine without Viaduct for a hand-off between two threads, a copy, a path through
//! sockets.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use viaduct_its::access::ETHERTYPE_GEONETWORKING;

use crate::error::BenchError;
use crate::sys::{self, Placement};

/// Size of a buffer that is larger than the caches, in bytes.
const COLD_BYTES: usize = 64 << 20;

/// Length of the timestamp at the start of a message, in octets.
const STAMP_OCTETS: usize = 8;

/// Length of addresses and ethertype before a frame's payload, in octets.
const ETHERNET_OCTETS: usize = 14;

/// Time without a message after which a receiver ends.
const SILENCE: Duration = Duration::from_millis(500);

/// Latency of each hand-off between two threads, and the waker's lateness for it, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandOffs {
    pub(crate) latencies: Vec<u64>,
    pub(crate) lateness: Vec<u64>,
}

/// Number of hand-offs and messages before the first that counts. They fill pools and caches.
pub(crate) const WARM_UP: usize = 20;

/// The waker's work between two hand-offs.
pub(crate) trait Pace: Send + 'static {
    /// Waits until `tick` and does the work before a hand-off. Returns the time of the wake-up.
    fn wait(&mut self, tick: Duration) -> Result<Duration, BenchError>;
    /// Releases the remaining resources after the last hand-off.
    fn end(self) -> Result<(), BenchError>;
}

/// A pace that only sleeps.
pub(crate) struct SleepOnly;

impl Pace for SleepOnly {
    fn wait(&mut self, tick: Duration) -> Result<Duration, BenchError> {
        sys::sleep_until(tick);
        Ok(sys::monotonic())
    }

    fn end(self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Measures one-way latencies of a futex between two threads. The waker stamps, wakes, and sleeps until its next
/// absolute deadline; the waiter reads the clock when it runs.
pub(crate) fn futex(
    samples: usize,
    period: Duration,
    waker: &Placement,
    waiter: &Placement,
    mut pace: impl Pace,
) -> Result<HandOffs, BenchError> {
    let shared = Arc::new((AtomicU32::new(0), AtomicU64::new(0)));
    let theirs = Arc::clone(&shared);
    let all = u32::try_from(WARM_UP + samples).unwrap_or(u32::MAX);
    let waiting = move || {
        let (word, stamp) = &*theirs;
        let mut latencies = room(all);
        for seen in 0..all {
            while word.load(Ordering::Acquire) <= seen {
                sys::futex_wait(word, seen);
            }
            latencies.push(nanos(sys::monotonic()).saturating_sub(stamp.load(Ordering::Acquire)));
        }
        latencies.split_off(WARM_UP)
    };
    let waking = move || {
        let (word, stamp) = &*shared;
        sys::exact_timers();
        let mut lateness = room(all);
        let mut failed = None;
        let start = sys::monotonic() + period;
        for number in 0..all {
            let tick = start + period * number;
            // A waker that fails still wakes the waiter, which would wait forever.
            match pace.wait(tick) {
                Ok(woke) => lateness.push(nanos(woke.saturating_sub(tick))),
                Err(error) => failed = failed.or(Some(error)),
            }
            stamp.store(nanos(sys::monotonic()), Ordering::Release);
            word.store(number + 1, Ordering::Release);
            sys::futex_wake(word);
        }
        match failed {
            Some(error) => Err(error),
            None => pace.end().map(|()| lateness.split_off(WARM_UP)),
        }
    };
    let waiting = spawn_placed("floor-waiter", waiter, waiting)?;
    let waking = spawn_placed("floor-waker", waker, waking)?;
    let lateness = join("floor-waker", waking)??;
    Ok(HandOffs { latencies: join("floor-waiter", waiting)??, lateness: lateness? })
}

/// Returns an empty list whose memory was written once.
fn room(length: u32) -> Vec<u64> {
    let mut room = black_box(vec![1; length as usize]);
    room.clear();
    room
}

/// Measures copies between the same two buffers, in microseconds. The buffers stay in the caches if the caches can hold
/// both.
pub(crate) fn memcpy_hot(size: usize, samples: usize) -> Vec<f64> {
    let (from, mut to) = (vec![1_u8; size], vec![2_u8; size]);
    let copy = |_| timed(|| black_box(&mut to[..]).copy_from_slice(black_box(&from)));
    // The first copies fetch the memory.
    (0..samples + 2).map(copy).skip(2).collect()
}

/// Measures copies between buffers that are in no cache, in microseconds.
pub(crate) fn memcpy_cold(size: usize, samples: usize) -> Vec<f64> {
    let places = (COLD_BYTES / size.max(1)).max(2);
    let (from, mut to) = (vec![1_u8; places * size], vec![2_u8; places * size]);
    let copy = |number: usize| {
        let place = number % places * size..(number % places + 1) * size;
        timed(|| black_box(&mut to[place.clone()]).copy_from_slice(black_box(&from[place.clone()])))
    };
    (0..samples).map(copy).collect()
}

/// Messages that arrived through a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) lost: u64,
}

/// Measures the rate at which messages of these lengths, each written by itself, pass through a TCP connection on
/// loopback.
pub(crate) fn tcp(lengths: &[usize], time: Duration) -> Result<Received, BenchError> {
    let refused = BenchError::system("cannot connect by TCP on loopback");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(&refused)?;
    let mut sender = TcpStream::connect(listener.local_addr().map_err(&refused)?).map_err(&refused)?;
    sender.set_nodelay(true).map_err(&refused)?;
    let (mut receiver, _) = listener.accept().map_err(&refused)?;
    let reading = spawn("floor-reader", move || {
        let mut buffer = vec![0_u8; 64 << 10];
        while matches!(receiver.read(black_box(&mut buffer)), Ok(1..)) {}
    })?;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let message = vec![7_u8; longest];
    let mut messages = 0_u64;
    let start = Instant::now();
    for length in lengths.iter().cycle() {
        if start.elapsed() >= time {
            break;
        }
        sender.write_all(&message[..*length]).map_err(&refused)?;
        messages += 1;
    }
    drop(sender);
    join("floor-reader", reading)?;
    Ok(Received { messages, seconds: start.elapsed().as_secs_f64(), lost: 0 })
}

/// Measures one-way latencies of datagrams on loopback, in microseconds: from before the sending until the receiver,
/// which blocks in the kernel, has the datagram.
pub(crate) fn udp_one_way(octets: usize, samples: usize, period: Duration) -> Result<Vec<f64>, BenchError> {
    let refused = BenchError::system("cannot open a UDP socket on loopback");
    let receiver = UdpSocket::bind("127.0.0.1:0").map_err(&refused)?;
    let address = receiver.local_addr().map_err(&refused)?;
    receiver.set_read_timeout(Some(SILENCE)).map_err(&refused)?;
    let sender = UdpSocket::bind("127.0.0.1:0").map_err(&refused)?;
    sender.connect(address).map_err(&refused)?;
    one_way(
        octets,
        samples,
        period,
        move |frame| sender.send(frame).map(drop),
        move |frame| receiver.recv(frame).map(drop),
    )
}

/// Measures one-way latencies of messages through a TCP connection on loopback, in microseconds.
pub(crate) fn tcp_one_way(octets: usize, samples: usize, period: Duration) -> Result<Vec<f64>, BenchError> {
    let refused = BenchError::system("cannot connect by TCP on loopback");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(&refused)?;
    let mut sender = TcpStream::connect(listener.local_addr().map_err(&refused)?).map_err(&refused)?;
    sender.set_nodelay(true).map_err(&refused)?;
    let (mut receiver, _) = listener.accept().map_err(&refused)?;
    receiver.set_read_timeout(Some(SILENCE)).map_err(&refused)?;
    one_way(octets, samples, period, move |text| sender.write_all(text), move |text| receiver.read_exact(text))
}

/// Opens two packet sockets (packet(7)) for GeoNetworking frames: one to send on the interface `from`, one to receive
/// on `to`.
pub(crate) fn packet_sockets(from: &str, to: &str) -> Result<(Socket, Socket), BenchError> {
    let refused = BenchError::system("cannot open a packet socket");
    let sender = packet_socket(from, None).map_err(&refused)?;
    Ok((sender, packet_socket(to, Some(ETHERTYPE_GEONETWORKING)).map_err(&refused)?))
}

/// Opens a socket on the interface. It receives frames of the ethertype, or none.
fn packet_socket(interface: &str, ethertype: Option<u16>) -> std::io::Result<Socket> {
    let protocol = ethertype.map(|ethertype| Protocol::from(i32::from(ethertype.to_be())));
    let socket = Socket::new(Domain::PACKET, Type::RAW.cloexec(), protocol)?;
    let mut found = nix::ifaddrs::getifaddrs()?.filter(|entry| entry.interface_name == interface);
    let address = found.find_map(|entry| entry.address?.as_link_addr().copied());
    let address = address.ok_or(std::io::ErrorKind::NotFound)?;
    nix::sys::socket::bind(socket.as_raw_fd(), &address)?;
    Ok(socket)
}

/// Measures one-way latencies of broadcast frames through packet sockets, from one interface to the other, in
/// microseconds.
pub(crate) fn packet_one_way(
    (sender, mut receiver): (Socket, Socket),
    octets: usize,
    samples: usize,
    period: Duration,
) -> Result<Vec<f64>, BenchError> {
    let refused = BenchError::system("cannot use a packet socket");
    receiver.set_read_timeout(Some(SILENCE)).map_err(refused)?;
    let payload = octets.saturating_sub(ETHERNET_OCTETS).max(STAMP_OCTETS);
    let header = [[0xFF; 6], [2, 0, 0, 0, 0, 3]].concat();
    let mut out = [header.as_slice(), &ETHERTYPE_GEONETWORKING.to_be_bytes(), &vec![0; payload]].concat();
    let mut back = out.clone();
    one_way(
        payload,
        samples,
        period,
        move |message| {
            out[ETHERNET_OCTETS..].copy_from_slice(message);
            sender.send(&out).map(drop)
        },
        move |message| {
            receiver.read_exact(&mut back)?;
            message.copy_from_slice(&back[ETHERNET_OCTETS..]);
            Ok(())
        },
    )
}

/// Sends messages that carry their timestamp, one per period. A lost message adds no sample.
fn one_way(
    octets: usize,
    samples: usize,
    period: Duration,
    mut send: impl FnMut(&[u8]) -> std::io::Result<()> + Send + 'static,
    mut receive: impl FnMut(&mut [u8]) -> std::io::Result<()> + Send + 'static,
) -> Result<Vec<f64>, BenchError> {
    let octets = octets.max(STAMP_OCTETS);
    let receiving = spawn("floor-receiver", move || {
        let mut buffer = vec![0_u8; octets];
        let mut latencies = Vec::with_capacity(samples);
        while latencies.len() < samples && receive(black_box(&mut buffer)).is_ok() {
            let now = sys::monotonic();
            let stamp = buffer.first_chunk().copied().map_or(0, u64::from_le_bytes);
            latencies.push(micros(now.saturating_sub(Duration::from_nanos(stamp))));
        }
        latencies
    })?;
    let sending = spawn("floor-sender", move || {
        sys::exact_timers();
        let mut message = vec![7_u8; octets];
        let start = sys::monotonic() + period;
        for number in 0..u32::try_from(samples).unwrap_or(u32::MAX) {
            sys::sleep_until(start + period * number);
            message[..STAMP_OCTETS].copy_from_slice(&nanos(sys::monotonic()).to_le_bytes());
            // A message that is not sent adds no sample.
            let _ = send(&message);
        }
    })?;
    join("floor-sender", sending)?;
    join("floor-receiver", receiving)
}

/// Measures the duration of `work`, in microseconds.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(work());
    micros(start.elapsed())
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the duration in nanoseconds. 64 bits suffice for 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<std::thread::JoinHandle<R>, BenchError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(BenchError::system("cannot start a thread"))
}

/// Starts a thread that applies its placement before its work.
pub(crate) fn spawn_placed<R: Send + 'static>(
    name: &str,
    placement: &Placement,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<std::thread::JoinHandle<Result<R, BenchError>>, BenchError> {
    let placement = placement.clone();
    spawn(name, move || {
        placement.apply().map_err(BenchError::system("cannot schedule a thread"))?;
        Ok(work())
    })
}

pub(crate) fn join<R>(name: &str, thread: std::thread::JoinHandle<R>) -> Result<R, BenchError> {
    thread.join().map_err(|_| BenchError::broken(name, "the thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_floor_has_its_samples() {
        let anywhere = Placement::default();
        let hand_offs = futex(5, Duration::from_millis(1), &anywhere, &anywhere, SleepOnly).unwrap();
        assert_eq!((hand_offs.latencies.len(), hand_offs.lateness.len()), (5, 5));
        assert_eq!(memcpy_hot(1024, 3).len(), 3);
        assert_eq!(memcpy_cold(32 << 20, 3).len(), 3);
        assert_eq!(udp_one_way(300, 5, Duration::from_millis(1)).unwrap().len(), 5);
        assert_eq!(tcp_one_way(3000, 5, Duration::from_millis(1)).unwrap().len(), 5);
        let time = Duration::from_millis(20);
        assert!(tcp(&[40, 300], time).unwrap().messages > 0);
    }
}
