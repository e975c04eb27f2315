//! Cyclone DDS: participants, readers and writers of types that are known only by name, and discovery.
//!
//! | file | holds |
//! |---|---|
//! | `entity` | errors, domains, participants, waits |
//! | `endpoint` | readers and writers of CDR octets |
//! | `discovery` | endpoints of all participants |
//! | `qos` | quality of service |
//! | `log` | log lines of Cyclone DDS |
//!
//! An entity is a number that Cyclone DDS looks up, so a call with one that was deleted is an error and no misuse of memory.

#![expect(unsafe_code, reason = "the interface of Cyclone DDS is one of C")]

mod discovery;
mod endpoint;
mod entity;
mod log;
mod qos;

pub(super) use discovery::{DiscoveryReader, Endpoint, EndpointEvent, EndpointKind};
pub(super) use endpoint::{Reader, Statuses, Taken, WriteError, Writer};
pub(super) use entity::{DdsError, Domain, Guard, Participant, Wait, Waitset};
