//! A pair of connected network interfaces (veth) in a separate network namespace.
//!
//! The namespace belongs to a thread that ends as soon as the sockets are open. The sockets stay in the namespace,
//! which the kernel removes with the last of them (network_namespaces(7)), however the bench ends.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use crate::error::BenchError;

/// Names of the two interfaces.
pub(super) const ENDS: [&str; 2] = ["left", "right"];

/// Creates the interfaces and runs `open` in their namespace. Returns the problem as text if the machine or the
/// user's privileges do not permit it.
pub(super) fn in_namespace<R: Send>(open: impl FnOnce() -> Result<R, BenchError> + Send) -> Result<R, String> {
    let inside = move || {
        lay()?;
        open().map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("bench-cable".to_owned()).spawn_scoped(scope, inside);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        thread.join().map_err(|_| "the thread panicked".to_owned())?
    })
}

fn lay() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| format!("cannot create a network namespace (needs root): {error}"))?;
    let [left, right] = ENDS;
    ip(&format!("link add {left} type veth peer name {right}"))?;
    // Without an IPv6 address there is no neighbour discovery traffic.
    ENDS.iter().try_for_each(|end| ip(&format!("link set {end} addrgenmode none up")))
}

/// Runs `ip ARGUMENTS` in the namespace of this thread.
fn ip(arguments: &str) -> Result<(), String> {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    let run = run.map_err(|error| format!("cannot run ip(8): {error}"))?;
    let errors = String::from_utf8_lossy(&run.stderr);
    if run.status.success() { Ok(()) } else { Err(format!("`ip {arguments}` fails: {}", errors.trim())) }
}
