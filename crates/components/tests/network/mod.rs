//! Tests in a network namespace with two connected interfaces, `veth0` and `veth1`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set in the process with the network namespace.
const INSIDE: &str = "VIADUCT_TEST_NETWORK";

/// Runs `body` in a network namespace, by running this test again in a process below unshare(1). `test` is the name of the test. If
/// the system does not permit a namespace, the test is skipped.
pub(crate) fn in_own_network(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        set_up();
        return body();
    }
    let Some(rights) = rights_for_a_network() else { return };
    let status = Command::new("unshare")
        .args(rights)
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} fails in its own network");
}

/// Returns the arguments of unshare that permit creating interfaces: a network namespace for root, and a user namespace in addition
/// for other users.
fn rights_for_a_network() -> Option<&'static [&'static str]> {
    let choices: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let works = |arguments: &&&[&str]| {
        let mut probe = Command::new("unshare");
        probe.args(**arguments).args(["ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1"]);
        probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let found = choices.iter().find(works).copied();
    if found.is_none() {
        skipped(
            "the system gives no network namespace with a veth pair (unshare(1) and ip(8) as root, or user namespaces)",
        );
    }
    found
}

fn set_up() {
    ip("link set lo up");
    // No IPv6 addresses, because neighbour discovery would send packets.
    ip("link add veth0 address 02:00:00:00:00:10 type veth peer name veth1 address 02:00:00:00:00:11");
    ip("link set veth0 addrgenmode none up");
    ip("link set veth1 addrgenmode none up");
}

/// Runs `ip` with the arguments.
pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Returns the sample capture, or `None` if there is no data folder. The capture is not part of the project, so it is required only
/// if the folder is named by the environment.
#[allow(dead_code, reason = "not every test file replays")]
pub(crate) fn sample_capture() -> Option<PathBuf> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let data = named.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = data.join("v2x/cam_cpm_r2_unsecured.pcap");
    if path.exists() {
        return Some(path);
    }
    assert!(named.is_none(), "VIADUCT_DATA names a folder without {}", path.display());
    report_skipped(&format!("{} is not there; VIADUCT_DATA names the data folder", path.display()));
    None
}

/// Prints that a test is skipped and the reason, bypassing the test runner, which hides the output of passing tests. Fails if peers
/// are required (in CI).
pub(crate) fn skipped(reason: &str) {
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "skipped although peers are required: {reason}");
    report_skipped(reason);
}

fn report_skipped(reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
