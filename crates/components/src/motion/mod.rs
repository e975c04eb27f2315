//! The movement of simulated vehicles: kinds `fleet`, `vehicle_model` and `camera` share it.

pub(crate) mod bicycle;
pub(crate) mod road;
pub(crate) mod tour;
