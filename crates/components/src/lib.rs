//! The kinds of components that Viaduct has, one file or folder each.
//!
//! Only here do the bus and the protocols meet: a component owns sockets, reads the clock, and drives a pure machine.
//! A new kind is a new file and a row in [`KINDS`].

pub mod capture;
pub mod fleet;
pub mod its_station;

use viaduct_node::Kind;

/// Every kind of this crate.
pub const KINDS: &[Kind] = &[
    Kind::of::<fleet::Fleet>("fleet", "Simulated vehicles that drive on a road network and send CAMs.", "vehicles: 2"),
    Kind::of::<its_station::ItsStation>(
        "its_station",
        "An ETSI ITS station: CAM and CPM from UDP multicast or a capture to the bus, and back.",
        "{ station_id: 1, access: { udp_multicast: {} } }",
    ),
];
