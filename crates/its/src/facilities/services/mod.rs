//! The services of a station, one machine each, and their common input.

pub mod ca_service;
pub mod cp_service;
pub mod den_service;
mod motion;
mod schedule;
pub mod va_service;
mod vehicle_state;

pub use vehicle_state::{STATE_AGE_MAX, VehicleState};
