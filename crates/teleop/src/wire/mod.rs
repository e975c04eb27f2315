//! Datagrams on the wire, version 1. All numbers are in network byte order.
//!
//! Each datagram begins with the same five octets:
//!
//! | octets | field |
//! |---|---|
//! | 1 | version (high four bits, 1) and kind of datagram (low four bits) |
//! | 4 | epoch of the sender, which changes when the sender restarts |
//!
//! | kind | datagram | direction |
//! |---|---|---|
//! | 1 | [`Symbol`]: one symbol of a frame | vehicle to desk |
//! | 2 | [`Probe`]: a request for feedback | vehicle to desk |
//! | 3 | [`Feedback`]: the state of all frames at the receiver | desk to vehicle |
//! | 4 | [`DeskHeartbeat`]: times, claims of operators | desk to vehicle |
//! | 5 | [`VehicleHeartbeat`]: times, state of driving | vehicle to desk |
//! | 6 | [`Commands`]: the latest commands of the driver | desk to vehicle |
//! | 7 | [`Telemetry`]: other values of the vehicle | vehicle to desk |
//!
//! Times of a clock are in microseconds modulo 2^32 of the monotonic clock of the machine that writes them. Transmission
//! and sequence numbers count modulo 2^32.

mod command;
mod feedback;
mod heartbeat;
mod reader;
mod symbol;
mod telemetry;

use bytes::{BufMut, Bytes, BytesMut};

pub use command::{Commands, NumberedCommand};
pub use feedback::{Feedback, MissingSymbol, OpenFrame, StreamReport};
pub use heartbeat::{DeskHeartbeat, Echo, Timing, VehicleHeartbeat};
pub use symbol::{Probe, SYMBOL_HEADER_OCTETS, Symbol};
pub(crate) use symbol::{SymbolHeader, write_symbol};
pub use telemetry::{TELEMETRY_HEADER_OCTETS, Telemetry};

use reader::Reader;

/// Version of the formats.
pub const VERSION: u8 = 1;
/// Octets of the common header.
pub const HEADER_OCTETS: usize = 5;

const SYMBOL: u8 = 1;
const PROBE: u8 = 2;
const FEEDBACK: u8 = 3;
const DESK_HEARTBEAT: u8 = 4;
const VEHICLE_HEARTBEAT: u8 = 5;
const COMMANDS: u8 = 6;
const TELEMETRY: u8 = 7;

/// Identifier of a stream of frames, for example of one camera.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u8);

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A parsed datagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Epoch of the machine that sent the datagram.
    pub epoch: u32,
    /// Content.
    pub body: Body,
}

/// The content of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One symbol of a frame.
    Symbol(Symbol),
    /// A request for feedback.
    Probe(Probe),
    /// The state of all frames at the receiver.
    Feedback(Feedback),
    /// A heartbeat of the desk.
    DeskHeartbeat(DeskHeartbeat),
    /// A heartbeat of the vehicle.
    VehicleHeartbeat(VehicleHeartbeat),
    /// The latest commands of the driver.
    Commands(Commands),
    /// Other values of the vehicle.
    Telemetry(Telemetry),
}

/// The reason why octets are not a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends within a field.
    #[error("the datagram is too short")]
    TooShort,
    /// Octets follow the last field.
    #[error("the datagram is too long")]
    TooLong,
    /// The version is not [`VERSION`].
    #[error("version {0} is unknown")]
    Version(u8),
    /// The kind of datagram is unknown.
    #[error("kind of datagram {0} is unknown")]
    Kind(u8),
    /// A field has an invalid value, or two fields contradict each other.
    #[error("the field `{0}` is invalid")]
    Field(&'static str),
}

impl Datagram {
    /// Parses a datagram. The payload of a symbol shares the memory of the datagram.
    ///
    /// # Errors
    /// The first problem of the datagram.
    pub fn parse(octets: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(octets);
        let first = reader.u8()?;
        if first >> 4 != VERSION {
            return Err(ParseError::Version(first >> 4));
        }
        let epoch = reader.u32()?;
        let body = match first & 0x0F {
            SYMBOL => Body::Symbol(Symbol::read(&mut reader)?),
            PROBE => Body::Probe(Probe::read(&mut reader)?),
            FEEDBACK => Body::Feedback(Feedback::read(&mut reader)?),
            DESK_HEARTBEAT => Body::DeskHeartbeat(DeskHeartbeat::read(&mut reader)?),
            VEHICLE_HEARTBEAT => Body::VehicleHeartbeat(VehicleHeartbeat::read(&mut reader)?),
            COMMANDS => Body::Commands(Commands::read(&mut reader)?),
            TELEMETRY => Body::Telemetry(Telemetry::read(&mut reader)?),
            other => return Err(ParseError::Kind(other)),
        };
        reader.end()?;
        Ok(Self { epoch, body })
    }

    /// Returns the octets of the datagram.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match &self.body {
            Body::Symbol(symbol) => symbol.write(self.epoch),
            Body::Probe(probe) => probe.write(self.epoch),
            Body::Feedback(feedback) => feedback.write(self.epoch),
            Body::DeskHeartbeat(heartbeat) => heartbeat.write(self.epoch),
            Body::VehicleHeartbeat(heartbeat) => heartbeat.write(self.epoch),
            Body::Commands(commands) => commands.write(self.epoch),
            Body::Telemetry(telemetry) => telemetry.write(self.epoch),
        }
    }
}

/// Returns a buffer of the given capacity that begins with the common header.
fn begin(kind: u8, epoch: u32, capacity: usize) -> BytesMut {
    let mut octets = BytesMut::with_capacity(capacity);
    octets.put_u8(VERSION << 4 | kind);
    octets.put_u32(epoch);
    octets
}
