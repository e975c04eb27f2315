//! The kinds of components that Viaduct has, one file or folder each.
//!
//! Only here do the bus and the protocols meet: a component owns sockets, reads the clock, and drives a pure machine.
//! A new kind is a new file and a row in [`KINDS`].

use viaduct_node::Kind;

/// Every kind of this crate.
pub const KINDS: &[Kind] = &[];
