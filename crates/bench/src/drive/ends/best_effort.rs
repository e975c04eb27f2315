//! Best effort: fragments of 1472 octets by UDP, without recovery.
//!
//! | octets | field |
//! |---|---|
//! | 4 | camera, little-endian as all numbers |
//! | 4 | number of the frame |
//! | 2 | index of the fragment |
//! | 2 | number of fragments |
//! | 1 to 1460 | part of the frame |

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;

use super::arrivals::Arrivals;
use super::paced::{InOrder, Write};
use super::{Receiver, Sender};
use crate::drive::frame::{HEADER_OCTETS, Header};
use crate::drive::job::{Arrived, Job};
use crate::error::BenchError;
use crate::floor;

/// Octets of a datagram: the largest one without fragmentation by IP over Ethernet.
const DATAGRAM_OCTETS: usize = 1472;
const FRAGMENT_HEADER: usize = 12;
const PART_OCTETS: usize = DATAGRAM_OCTETS - FRAGMENT_HEADER;
/// Size of the kernel's buffers in octets; the kernel grants less.
const BUFFER_OCTETS: usize = 16 << 20;
/// Frames of a camera that are incomplete at the same time. The oldest one is dropped.
const OPEN_FRAMES_MAX: usize = 8;
/// Time after which the receiver looks for its end.
const POLL_PERIOD: Duration = Duration::from_millis(50);

struct Fragments {
    socket: UdpSocket,
    datagram: Vec<u8>,
}

pub(super) fn open_sender(job: &Job) -> Result<impl Sender + use<>, BenchError> {
    let refused = BenchError::system("cannot open a UDP socket");
    let socket = UdpSocket::bind((job.sender, 0)).map_err(&refused)?;
    socket.connect(job.address()).map_err(&refused)?;
    SockRef::from(&socket).set_send_buffer_size(BUFFER_OCTETS).map_err(&refused)?;
    Ok(InOrder(Fragments { socket, datagram: Vec::with_capacity(DATAGRAM_OCTETS) }))
}

impl Write for Fragments {
    fn write(&mut self, frame: &[u8]) -> std::io::Result<()> {
        let count = frame.len().div_ceil(PART_OCTETS) as u16;
        for (index, part) in (0_u16..).zip(frame.chunks(PART_OCTETS)) {
            self.datagram.clear();
            // Camera and number are at the start of the frame.
            self.datagram.extend_from_slice(&frame[..8]);
            self.datagram.extend_from_slice(&index.to_le_bytes());
            self.datagram.extend_from_slice(&count.to_le_bytes());
            self.datagram.extend_from_slice(part);
            self.socket.send(&self.datagram)?;
        }
        Ok(())
    }
}

/// The receiver's thread.
pub(super) struct Listener {
    arrivals: Arrivals,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

pub(super) fn open_receiver(job: &Job) -> Result<Listener, BenchError> {
    let refused = BenchError::system("cannot open a UDP socket");
    let socket = UdpSocket::bind(job.address()).map_err(&refused)?;
    SockRef::from(&socket).set_recv_buffer_size(BUFFER_OCTETS).map_err(&refused)?;
    socket.set_read_timeout(Some(POLL_PERIOD)).map_err(&refused)?;
    let (arrivals, stop) = (Arrivals::new(job), Arc::new(AtomicBool::new(false)));
    let (theirs, ends) = (arrivals.clone(), Arc::clone(&stop));
    let thread = floor::spawn("bench-receiver", move || {
        let mut assembly = Assembly::default();
        let mut datagram = [0; DATAGRAM_OCTETS];
        while !ends.load(Ordering::Relaxed) {
            // A time-out is no datagram.
            let Ok(octets) = socket.recv(&mut datagram) else { continue };
            if let Some(header) = assembly.add(&datagram[..octets]) {
                theirs.add(&header);
            }
        }
    })?;
    Ok(Listener { arrivals, stop, thread })
}

impl Receiver for Listener {
    fn finish(self: Box<Self>, job: &Job) -> Result<Arrived, BenchError> {
        self.arrivals.drain(job);
        self.stop.store(true, Ordering::Relaxed);
        floor::join("bench-receiver", self.thread)?;
        Ok(self.arrivals.take())
    }
}

/// Frames of which fragments are missing, by camera and number.
#[derive(Default)]
struct Assembly(BTreeMap<u32, BTreeMap<u32, Open>>);

/// An incomplete frame.
struct Open {
    /// Header of the frame, once its first fragment has arrived.
    header: Option<Header>,
    seen: Vec<bool>,
    missing: usize,
    octets: Vec<u8>,
}

impl Assembly {
    /// Adds a fragment. Returns the header of the frame that it completes.
    fn add(&mut self, datagram: &[u8]) -> Option<Header> {
        let (camera, rest) = datagram.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let (count, part) = rest.split_first_chunk()?;
        let (camera, number) = (u32::from_le_bytes(*camera), u32::from_le_bytes(*number));
        let (index, count) = (usize::from(u16::from_le_bytes(*index)), usize::from(u16::from_le_bytes(*count)));
        if camera > u32::from(u8::MAX) || index >= count {
            return None;
        }
        let frames = self.0.entry(camera).or_default();
        if !frames.contains_key(&number) && frames.len() >= OPEN_FRAMES_MAX {
            frames.pop_first();
        }
        let open = frames.entry(number).or_insert_with(|| Open::new(count));
        let complete = open.add(index, part)?;
        frames.remove(&number);
        Some(complete)
    }
}

impl Open {
    fn new(count: usize) -> Self {
        Self { header: None, seen: vec![false; count], missing: count, octets: vec![0; count * PART_OCTETS] }
    }

    /// Adds a part, as a receiver that needs the frame in one piece does. Returns the header of a complete frame.
    fn add(&mut self, index: usize, part: &[u8]) -> Option<Header> {
        let seen = self.seen.get_mut(index).filter(|seen| !**seen)?;
        let place = self.octets.get_mut(index * PART_OCTETS..)?.get_mut(..part.len())?;
        place.copy_from_slice(part);
        *seen = true;
        self.missing -= 1;
        if index == 0 {
            self.header = part.get(..HEADER_OCTETS).and_then(Header::read);
        }
        if self.missing == 0 { self.header } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::frame::payload;

    fn fragments(header: &Header, octets: usize) -> Vec<Vec<u8>> {
        let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let mut frame = payload(octets);
        header.write(&mut frame);
        Fragments { socket: sender, datagram: Vec::new() }.write(&frame).unwrap();
        let mut datagram = [0; DATAGRAM_OCTETS];
        (0..octets.div_ceil(PART_OCTETS))
            .map(|_| {
                let length = receiver.recv(&mut datagram).unwrap();
                datagram[..length].to_vec()
            })
            .collect()
    }

    #[test]
    fn a_frame_is_complete_only_with_all_its_fragments() {
        let header = Header { camera: 1, number: 9, taken: Duration::from_secs(5) };
        let fragments = fragments(&header, 10_000);
        assert_eq!(fragments.len(), 7);
        for order in [[0, 1, 2, 3, 4, 5, 6], [6, 2, 5, 0, 1, 4, 3]] {
            let mut assembly = Assembly::default();
            let mut completed = order.iter().map(|index| assembly.add(&fragments[*index])).collect::<Vec<_>>();
            assert_eq!(completed.pop().unwrap(), Some(header));
            assert!(completed.iter().all(Option::is_none));
        }
        let mut assembly = Assembly::default();
        for fragment in fragments.iter().take(6).chain(fragments.iter().take(6)) {
            assert_eq!(assembly.add(fragment), None, "a repeated fragment replaces no other one");
        }
    }

    #[test]
    fn wrong_datagrams_are_ignored() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(&[0; 11]), None);
        let mut wrong = [0; 40];
        wrong[8] = 1;
        wrong[10] = 1;
        assert_eq!(assembly.add(&wrong), None, "index 1 of 1");
    }
}
