//! Key figures of messages that leave a node, are processed elsewhere and come back: the stages of their path, statistics over a window,
//! the offset of the clocks, and losses.
//!
//! | module | purpose |
//! |---|---|
//! | [`path`] | the stages of a path, and their latencies for one message |
//! | [`window`] | statistics of the newest messages |
//! | [`loss`] | messages of the source that did not come back |
//!
//! The modules read no clock and no file. Latencies are in milliseconds, because that is the unit of the figures.

pub mod loss;
pub mod path;
pub mod window;
