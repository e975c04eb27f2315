//! TCP: one connection per camera, without Nagle's algorithm, with the kernel's default congestion control. Each frame
//! follows its length in four octets.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::arrivals::Arrivals;
use super::paced::{Parallel, Write};
use super::{Receiver, Sender};
use crate::drive::frame::Header;
use crate::drive::job::{Arrived, Job};
use crate::error::BenchError;
use crate::floor;

/// Longest frame that is received.
const FRAME_OCTETS_MAX: usize = 16 << 20;
/// Octets of one read.
const READ_OCTETS: usize = 64 << 10;
/// Pause between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Number of attempts.
const TRIES: u32 = 100;

struct Connection(TcpStream);

pub(super) fn open_sender(job: &Job) -> Result<impl Sender + use<>, BenchError> {
    let connections = (0..job.cameras).map(|_| connect(job)).collect::<io::Result<Vec<_>>>();
    Parallel::start(job, connections.map_err(BenchError::system("cannot connect by TCP"))?)
}

fn connect(job: &Job) -> io::Result<Connection> {
    let mut tries = 0;
    let stream = loop {
        match TcpStream::connect(job.address()) {
            Ok(stream) => break stream,
            Err(error) if tries >= TRIES => return Err(error),
            Err(_) => std::thread::sleep(RETRY_PAUSE),
        }
        tries += 1;
    };
    stream.set_nodelay(true)?;
    Ok(Connection(stream))
}

impl Write for Connection {
    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        self.0.write_all(&length.to_le_bytes())?;
        self.0.write_all(frame)
    }
}

/// A listener with its connections.
pub(super) struct Listener(Arrivals);

pub(super) fn open_receiver(job: &Job) -> Result<Listener, BenchError> {
    let refused = BenchError::system("cannot listen for TCP");
    let listener = TcpListener::bind(job.address()).map_err(&refused)?;
    let arrivals = Arrivals::new(job);
    let (theirs, cameras) = (arrivals.clone(), job.cameras);
    // The threads end with their connections, or with the process.
    floor::spawn("bench-listener", move || {
        for stream in listener.incoming().take(usize::from(cameras)).flatten() {
            let arrivals = theirs.clone();
            let reading = move || {
                // The end of the connection.
                let _ = read_frames(stream, &arrivals);
            };
            // Without its thread, the frames of a camera are lost.
            let _ = floor::spawn("bench-receiver", reading);
        }
    })?;
    Ok(Listener(arrivals))
}

fn read_frames(mut stream: TcpStream, arrivals: &Arrivals) -> io::Result<()> {
    let mut frame = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_OCTETS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        frame.resize(length, 0);
        for part in frame.chunks_mut(READ_OCTETS) {
            stream.read_exact(part)?;
            arrivals.touch();
        }
        if let Some(header) = Header::read(&frame) {
            arrivals.add(&header);
        }
    }
}

impl Receiver for Listener {
    fn finish(self: Box<Self>, job: &Job) -> Result<Arrived, BenchError> {
        self.0.drain(job);
        Ok(self.0.take())
    }
}
