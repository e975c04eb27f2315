//! A node: components on a bus, listed by one config file.
//!
//! A config file passes three steps:
//!
//! 1. [`config::NodeFile`]: the text is parsed, with the place of each key.
//! 2. [`Graph`]: the nodes are checked. Every input has a publisher, types and quality of service match, and no socket
//!    is used twice.
//! 3. [`Node`]: the components run.
//!
//! This crate contains no kind of component and no protocol. The crates above it list their kinds in explicit
//! tables and pass them in ([`Kind`]). No kind registers itself.

pub mod config;
pub mod files;
pub mod listen;

mod component;
mod context;
mod graph;
mod http;
mod kind;
mod metrics;
mod pools;
mod qos;
mod running;
mod stop;
mod supervisor;

pub use component::{Component, Edge, Edges, Loans, QUEUE_DEPTH_MIN, Resource, SettingError, StartError};
pub use context::{CallbackContext, Context};
pub use graph::Graph;
pub use kind::{Checks, Kind, find_kind};
pub use metrics::set_build;
pub use qos::{DurabilitySetting, HistorySetting, LivelinessSetting, QosPreset, QosSettings, ReliabilitySetting};
pub use running::{Failure, FailureCause};
pub use stop::Stop;
pub use supervisor::{Node, NodeError, STOP_TIME_MAX, Stopped};
