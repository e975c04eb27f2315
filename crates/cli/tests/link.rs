//! `viaduct link` from the outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A link in the background, which is removed when dropped.
struct Link(String);

impl Link {
    /// Starts a link with a name of its own. If the system does not permit it, the test is skipped.
    fn up(name: &str, arguments: &[&str]) -> Option<Self> {
        let name = format!("{name}-{}", std::process::id());
        let output = viaduct(&[&["link", "up", "--name", &name, "--background"], arguments].concat());
        let errors = text(&output.stderr);
        if errors.contains("needs root") || errors.contains("/dev/net/tun") {
            assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "{errors}");
            let _ = writeln!(std::io::stderr(), "skipped: {errors}");
            return None;
        }
        assert!(output.status.success(), "{errors}");
        assert!(text(&output.stdout).starts_with(&format!("link {name} is up")), "{output:?}");
        Some(Self(name))
    }

    /// Runs `viaduct link COMMAND --name NAME ARGUMENTS`.
    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        viaduct(&[&["link", command, "--name", &self.0], arguments].concat())
    }

    fn show(&self) -> Value {
        serde_json::from_slice(&self.run("show", &["--json"]).stdout).unwrap()
    }

    /// Returns the stderr of a command that must fail.
    fn refused(&self, command: &str, arguments: &[&str]) -> String {
        let output = self.run(command, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.run("down", &[]);
    }
}

fn viaduct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

#[test]
fn a_wrong_command_line_is_refused_with_what_is_possible() {
    for (arguments, parts) in [
        (&["up", "wifi"][..], &["there is no profile \"wifi\"", "ethernet", "lossy-5"][..]),
        (&["up", "5g", "--name", "a/b"], &["\"a/b\" is not a name of a link"]),
        (&["up", "5g", "--name", "refused", "--set", "dely=1"], &["unknown field `dely`", "`delay`"]),
        (&["up", "5g", "--name", "refused", "--set", "loss"], &["`loss` is not of the form KEY=VALUE"]),
        (&["up", "./none.yaml", "--name", "refused"], &["./none.yaml: cannot be read"]),
        (&["set", "--name", "refused", "sideways", "loss=none"], &["`sideways`", "a-to-b"]),
        (&["set", "--name", "refused", "both"], &["no setting"]),
    ] {
        let output = viaduct(&[&["link"], arguments].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_command_for_a_link_that_is_not_up_says_how_to_create_it() {
    for arguments in [&["show"][..], &["set", "loss=none"], &["down"], &["exec", "a", "--", "true"]] {
        let output = viaduct(&[&["link"], &arguments[..1], &["--name", "absent"], &arguments[1..]].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert_eq!(errors, "viaduct: no link absent is up: create it with `viaduct link up PROFILE --name absent`\n");
    }
}

#[test]
fn a_link_is_used_changed_and_removed() {
    let Some(link) = Link::up("cycle", &["lossy-5", "--seed", "7", "--set", "delay.base_ms=3"]) else { return };
    assert_eq!(link.run("exec", &["a", "--", "sh", "-c", "exit 9"]).status.code(), Some(9));
    let addresses = text(&link.run("exec", &["b", "--", "ip", "-4", "-o", "address"]).stdout);
    assert!(addresses.contains("10.77.0.2/30"), "{addresses}");

    let status = link.show();
    assert_eq!((&status["seed"], &status["profile"]), (&7.into(), &"lossy-5".into()));
    assert_eq!(status["b_to_a"]["settings"]["delay"]["base_ms"], 3.0);
    let changed = link.run("set", &["a-to-b", "loss.independent=1", "delay.base_ms=1"]);
    assert!(changed.status.success(), "{changed:?}");
    let send = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(10): s.sendto(b'x', ('10.77.0.2', 9))";
    assert!(link.run("exec", &["a", "--", "python3", "-c", send]).status.success());
    let began = Instant::now();
    while link.show()["a_to_b"]["dropped"]["lost"] != 10 {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", link.show());
    }
    let status = link.show();
    assert_eq!(status["a_to_b"]["settings"]["loss"]["independent"], 1.0);
    assert_eq!(status["b_to_a"]["settings"]["loss"]["independent"], 0.05);
    assert_eq!((&status["a_to_b"]["received"], &status["b_to_a"]["received"]), (&10.into(), &0.into()));
    let shown = text(&link.run("show", &[]).stdout);
    assert!(shown.contains("dropped: lost") && shown.contains("lateness in us"), "{shown}");

    let unknown = link.refused("set", &["both", "dely.base_ms=1"]);
    assert!(unknown.starts_with("viaduct: `dely.base_ms`: unknown field `dely`, expected one of"), "{unknown}");
    let invalid = link.refused("set", &["delay.base_ms=1", "loss.bursts={ loss: 0.5, packets: 0 }"]);
    assert!(invalid.contains("the mean burst length is 0"), "{invalid}");
    assert_eq!(link.show()["b_to_a"]["settings"]["delay"]["base_ms"], 3.0);
    let used = link.refused("up", &["5g"]);
    assert!(used.contains("is up already"), "{used}");

    assert!(link.run("down", &[]).status.success());
    let left = |path: &str| Path::new(&path.replace("NAME", &link.0)).exists();
    assert!(!["/run/netns/NAME-a", "/run/netns/NAME-b", "/run/viaduct/link-NAME.sock"].into_iter().any(left));
    assert_eq!(link.run("down", &[]).status.code(), Some(1));
}

#[test]
fn a_link_whose_process_was_killed_is_removed() {
    let Some(link) = Link::up("killed", &["ethernet"]) else { return };
    let process = link.show()["process_id"].to_string();
    assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
    let began = Instant::now();
    while link.run("show", &[]).status.success() {
        assert!(began.elapsed() < Duration::from_secs(10), "process {process} still answers");
    }
    assert!(Path::new(&format!("/run/netns/{}-a", link.0)).exists());
    let down = link.run("down", &[]);
    assert!(down.status.success() && text(&down.stderr).contains("a killed process has left"), "{down:?}");
    assert!(!Path::new(&format!("/run/netns/{}-a", link.0)).exists());
}

#[test]
fn a_file_describes_each_direction() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("uplink.yaml");
    std::fs::write(&file, "profile: 5g\na_to_b: { bottleneck: { rate: { mbps: 20 } } }\n").unwrap();
    let Some(link) = Link::up("file", &[file.to_str().unwrap()]) else { return };
    let status = link.show();
    assert_eq!(status["a_to_b"]["settings"]["bottleneck"]["rate"]["mbps"], 20.0);
    assert_eq!(status["b_to_a"]["settings"]["bottleneck"]["rate"]["mbps"], 173.5);

    std::fs::write(&file, "profile: 5g\nboth: { dealy: { base_ms: 1 } }\n").unwrap();
    let output = viaduct(&["link", "up", file.to_str().unwrap(), "--name", "refused"]);
    let errors = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && errors.contains("uplink.yaml:2:9") && errors.contains("dealy"),
        "{errors}"
    );
}
