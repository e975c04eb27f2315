//! The back-end of a node: what it received lately, over HTTP.
//!
//! [`cache`] holds the newest V2X messages; [`api`] answers about them and shows the dashboard. [`Backend`] joins them:
//! whoever feeds it calls [`Backend::insert`] for each message and [`Backend::tick`] once a second.

pub mod cache;
mod decoded;
mod live;
mod settings;
mod sync;

pub use decoded::{DecodeJson, Undecodable};
pub use settings::{ApiSettings, CacheSettings, LiveSettings, SettingsError};
