//! Settings of the sender of frames.

use std::time::Duration;

use crate::{
    limits::{
        DATAGRAM_OCTETS_DEFAULT, DATAGRAM_OCTETS_MAX, DATAGRAM_OCTETS_MIN, FRAMES_PER_STREAM_MAX, LIFESPAN_MAX,
        STREAMS_MAX,
    },
    pacing::{PacingSettings, PacingSettingsError},
    wire::StreamId,
};

/// Settings of a sender of frames.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderSettings {
    /// Octets of a datagram, 1200 to 8900. The default is 1400.
    pub datagram_octets: usize,
    /// Streams, at most 16, each with its own identifier.
    pub streams: Vec<StreamSettings>,
    /// Rate limit and reaction to queues.
    pub pacing: PacingSettings,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            datagram_octets: DATAGRAM_OCTETS_DEFAULT,
            streams: vec![StreamSettings::default()],
            pacing: PacingSettings::default(),
        }
    }
}

/// Settings of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// Identifier.
    pub id: StreamId,
    /// Rank of the stream, 0 first. Frames with the same deadline are sent in this order.
    pub priority: u8,
    /// Time after which a frame is worthless, 1 ms to 6.5 s. The default is 500 ms.
    pub lifespan: Duration,
    /// Number of unfinished frames, 1 to 16. A further frame replaces the oldest one. The default is 8.
    pub keep_last: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self { id: StreamId(0), priority: 0, lifespan: Duration::from_millis(500), keep_last: 8 }
    }
}

/// An invalid setting of a sender of frames.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The octets of a datagram are outside the limits.
    #[error("a datagram has {DATAGRAM_OCTETS_MIN} to {DATAGRAM_OCTETS_MAX} octets, not {0}")]
    DatagramOctets(usize),
    /// There are too many streams.
    #[error("a sender has at most {STREAMS_MAX} streams, not {0}")]
    Streams(usize),
    /// Two streams have the same identifier.
    #[error("stream {0} exists twice")]
    StreamTwice(StreamId),
    /// The lifespan of a stream is outside the limits.
    #[error("the lifespan of stream {0} must be 1 ms to {LIFESPAN_MAX:?}")]
    Lifespan(StreamId),
    /// The number of frames of a stream is outside the limits.
    #[error("`keep_last` of stream {0} must be 1 to {FRAMES_PER_STREAM_MAX}")]
    KeepLast(StreamId),
    /// A setting of the pacing is invalid.
    #[error(transparent)]
    Pacing(#[from] PacingSettingsError),
}

impl SenderSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if !(DATAGRAM_OCTETS_MIN..=DATAGRAM_OCTETS_MAX).contains(&self.datagram_octets) {
            return Err(SettingsError::DatagramOctets(self.datagram_octets));
        }
        if self.streams.len() > STREAMS_MAX {
            return Err(SettingsError::Streams(self.streams.len()));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            stream.check()?;
            if self.streams.iter().take(index).any(|other| other.id == stream.id) {
                return Err(SettingsError::StreamTwice(stream.id));
            }
        }
        Ok(self.pacing.check()?)
    }
}

impl StreamSettings {
    fn check(&self) -> Result<(), SettingsError> {
        if !(Duration::from_millis(1)..=LIFESPAN_MAX).contains(&self.lifespan) {
            return Err(SettingsError::Lifespan(self.id));
        }
        if !(1..=FRAMES_PER_STREAM_MAX).contains(&self.keep_last) {
            return Err(SettingsError::KeepLast(self.id));
        }
        Ok(())
    }
}
