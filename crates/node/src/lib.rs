//! A node: components on a bus, listed by one config file.
//!
//! The way of a file: text -> [`config::NodeFile`] (parsed, with the place of each key) -> [`Graph`] (checked: every input
//! is fed, types and quality of service agree, no socket is taken twice) -> [`Node`] (running).
//!
//! This crate knows no kind of component and no protocol. Kinds stand in explicit tables of the crates above it and are
//! handed in ([`Kind`]); nothing registers itself.

pub mod config;

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

pub use component::{Component, Edge, Edges, Loans, Resource, SettingError, StartError};
pub use context::{CallbackContext, Context};
pub use graph::Graph;
pub use kind::{Checks, Kind, find_kind};
pub use metrics::set_build;
pub use qos::{DurabilitySetting, HistorySetting, LivelinessSetting, QosPreset, QosSettings, ReliabilitySetting};
pub use running::{Failure, FailureCause};
pub use stop::Stop;
pub use supervisor::{Node, NodeError, STOP_TIME_MAX};
