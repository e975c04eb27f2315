//! Frames over a lossy link: an erasure code, requests for further symbols until the deadline, and pacing.
//!
//! [`Sender`] divides each frame into symbols and sends the source symbols once. [`Receiver`] reports how many further
//! symbols each frame needs, and names source symbols that are missing. Any symbol of a frame that has not arrived is as
//! good as any other. The sender prefers the missing source symbols, since a frame of source symbols needs no decoding,
//! which takes 2 ms for 374 kB. If the feedback was lost or names too few of them, recovery symbols are sent.
//!
//! Each datagram of the sender has its own transmission number. Feedback contains the number up to which the fate of
//! all datagrams is settled. The sender subtracts what it has sent since from what a frame needs, so a lost
//! symbol is replaced after one round trip, and no symbol is requested twice.

mod arrivals;
mod code;
mod delivery;
mod flight;
mod incoming;
mod outgoing;
mod receiver;
mod redundancy;
mod report;
mod sender;
mod settings;
mod shape;

pub use code::build_code_tables;
pub use receiver::{Receiver, ReceiverCounters, ReceiverDropReason, ReceiverEvent, ReceiverSettings};
pub use report::{ArrivedFrame, FrameLoss, LostFrame, Outcome, SentFrame};
pub use sender::{PushError, Sender, SenderCounters, SenderDropReason, SenderEvent};
pub use settings::{SenderSettings, SettingsError, StreamSettings};
pub use shape::Shape;
