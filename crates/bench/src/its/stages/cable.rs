//! A cable: two network interfaces joined to each other, in a network of their own that nobody else is on.
//!
//! The network belongs to a thread that ends once the sockets are open. They stay in it, and with the last of them it ends
//! with all that is in it (network_namespaces(7)): nothing is left behind, however the bench ends.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use crate::error::BenchError;

/// The interfaces at the two ends of the cable.
pub(super) const ENDS: [&str; 2] = ["left", "right"];

/// Lays the cable and runs `open` where it is; what went wrong as text, where this machine or this user has none.
pub(super) fn on_cable<R: Send>(open: impl FnOnce() -> Result<R, BenchError> + Send) -> Result<R, String> {
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
        .map_err(|error| format!("a network of its own is refused, which root would get: {error}"))?;
    let [left, right] = ENDS;
    ip(&format!("link add {left} type veth peer name {right}"))?;
    // No address of IPv6: its neighbour discovery would be on the cable too.
    ENDS.iter().try_for_each(|end| ip(&format!("link set {end} addrgenmode none up")))
}

/// `ip ARGUMENTS`, in the network of this thread.
fn ip(arguments: &str) -> Result<(), String> {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    let run = run.map_err(|error| format!("cannot run ip(8): {error}"))?;
    let said = String::from_utf8_lossy(&run.stderr);
    if run.status.success() { Ok(()) } else { Err(format!("`ip {arguments}` fails: {}", said.trim())) }
}
