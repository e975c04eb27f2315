//! The lines between the bench and the programs at the two ends of the link.
//!
//! ```text
//! -> to an end      a job; then `"start"` to the sender; after its answer `"stop"` to the receiver
//! <- from an end    {"ready":{..}}; then {"sent":{..}} from the sender, {"arrived":{..}} from the receiver;
//!                   or {"error":"why"} at any time
//! ```

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keys::Keys;

/// Port of the receiver. Further connections use the ports after it.
const PORT: u16 = 4700;

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// The vehicle, which sends frames.
    Sender,
    /// The desk, which receives them.
    Receiver,
}

/// The system that carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transport {
    /// Nodes with the kinds `camera`, `teleop_vehicle` and `teleop_desk`.
    Viaduct,
    /// Fragments of UDP without recovery.
    BestEffort,
    /// One TCP connection per camera.
    Tcp,
    /// The embedded MQTT broker at the receiver's end.
    Mqtt,
    /// Cyclone DDS, a program below the folder of rivals.
    Cyclonedds,
}

/// The frames of one cell of the tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) role: Role,
    pub(super) transport: Transport,
    /// Quality of service of MQTT (`0`, `1`), or the case of the paper (`1` to `4`, `tuned`).
    pub(super) variant: Option<String>,
    /// Address of the sender's end.
    pub(super) sender: Ipv4Addr,
    /// Address of the receiver's end.
    pub(super) receiver: Ipv4Addr,
    pub(super) port: u16,
    pub(super) cameras: u8,
    /// Frames per camera before the first one that counts.
    pub(super) warm_up: u32,
    /// Frames per camera that count.
    pub(super) frames: u32,
    /// Octets of a frame.
    pub(super) size: usize,
    pub(super) period_ns: u64,
    /// Time without an arrival after which the receiver ends, once it is asked to stop.
    pub(super) silence_ms: u64,
    /// Longest time for which the receiver then waits.
    pub(super) drain_ms: u64,
    /// `true` if the cameras send pictures with a mark in place of frames of a fixed size.
    pub(super) pictures: bool,
    /// Keys of the nodes; `None` if both ends are on one machine.
    pub(super) keys: Option<Keys>,
}

impl Job {
    /// Returns a job of a sender on the loopback interface, with the paper's frames and a warm-up of one second.
    pub(super) fn new(transport: Transport, cameras: u8, frames: u32) -> Self {
        Self {
            role: Role::Sender,
            transport,
            variant: None,
            sender: Ipv4Addr::LOCALHOST,
            receiver: Ipv4Addr::LOCALHOST,
            port: PORT,
            cameras,
            warm_up: 10,
            frames,
            size: super::FRAME_OCTETS,
            period_ns: 1_000_000_000 / u64::from(super::RATE_HZ),
            silence_ms: 700,
            drain_ms: 5000,
            pictures: false,
            keys: None,
        }
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Returns the number of frames of each camera, with those before the first one that counts.
    pub(super) fn all_frames(&self) -> u32 {
        self.warm_up.saturating_add(self.frames)
    }

    /// Returns the receiver's address for a connection of a camera.
    pub(super) fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.receiver, self.port)
    }

    pub(super) fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms)
    }

    pub(super) fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}

/// An instruction after the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Instruction {
    /// Sends the frames.
    Start,
    /// Waits for frames that are under way, then reports.
    Stop,
}

/// An answer of an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The end is connected, or listens.
    Ready(Ready),
    /// The frames of the sender.
    Sent(Sent),
    /// The frames of the receiver.
    Arrived(Arrived),
    /// The end has failed.
    Error(String),
}

/// The program of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Its version, if it is not this program.
    #[serde(default)]
    pub(super) version: String,
    /// Its configuration in words.
    #[serde(default)]
    pub(super) mode: String,
}

/// The frames that were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sent {
    /// Number of the first frame that counts, for each camera.
    pub(super) first: Vec<u32>,
    /// Octets that the sender needed and that it sent, of the datagrams with frames, if it counts them.
    #[serde(default)]
    pub(super) octets: Option<(u64, u64)>,
    /// First and last time of the frames that count, in nanoseconds of the monotonic clock, if commands are measured.
    #[serde(default)]
    pub(super) window: Option<(u64, u64)>,
    /// State of the rate control after the last frame, if the sender has one.
    #[serde(default)]
    pub(super) pacing: Option<Pacing>,
    /// Frames that the sender's end has lost in this time, by reason.
    #[serde(default)]
    pub(super) losses: BTreeMap<String, u64>,
    /// Ticks of the slowest camera without a frame.
    #[serde(default)]
    pub(super) ticks_skipped: u64,
}

/// State of the rate control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pacing {
    /// Rate in Mbit/s.
    pub(super) rate_mbps: f64,
    /// Queueing delay in milliseconds.
    pub(super) queueing_ms: f64,
    /// Number of times that a long queue stopped the sender, since its start.
    pub(super) stops: u64,
}

/// The frames that arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Arrived {
    /// Camera, number, and time since its stamp in nanoseconds, of each frame in the order of arrival.
    pub(super) frames: Vec<(u8, u32, u64)>,
    /// Commands that the vehicle has accepted: time of its report at the page, and age of the command when it was accepted, in
    /// nanoseconds.
    #[serde(default)]
    pub(super) command_ages: Vec<(u64, u64)>,
    /// Camera, number, and time from the mark in the picture until it was decoded at the page's end of the WebSocket, in
    /// nanoseconds.
    #[serde(default)]
    pub(super) glass: Vec<(u8, u32, u64)>,
    /// Pictures whose mark was not readable.
    #[serde(default)]
    pub(super) marks_failed: u64,
    /// Time at which each camera took its latest frame, in microseconds, if the cameras have their own ticks.
    #[serde(default)]
    pub(super) captures_us: BTreeMap<u8, u64>,
}
