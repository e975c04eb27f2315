//! Runs every command of README and guides as written, next to a running demo.
//!
//! A block that starts with three backticks and `sh` is run line by line, in the order of the page. Commands that do not
//! end, such as `viaduct topic hz`, are interrupted after some seconds and must have printed something, as
//! must every command that ends with `jq`. Programs in the
//! background end with the page; in the README, whose quick starts are independent, with the section. A block `sh root`
//! changes network interfaces or capabilities; it is run here too, because everything happens in a separate network
//! namespace.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "in a test a panic is the failure")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines that are not run, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("make demo", "CI runs the same program as `viaduct demo`"),
    ("make test", "it contains this test"),
    ("make lint", "a step of CI"),
    ("make fuzz", "a step of CI, with fewer inputs"),
    ("make build", "the tests use the binary that cargo built for them"),
    ("bash .ci/run", "it contains this test"),
    ("python3 -m venv", "the namespace has no network; `.venv` is the environment that `make setup` created"),
    ("kill $(jobs -p)", "the programs in the background are not jobs of this shell, and end with the page"),
    ("sudo setcap", "it would change the binary that other tests run"),
];

const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "docs/guides/bus.md",
    "docs/guides/component.md",
    "docs/guides/config-files.md",
    "docs/guides/constrained-robots.md",
    "docs/guides/from-mqtt-client.md",
    "docs/guides/internet.md",
    "docs/guides/its-station.md",
    "docs/guides/link-emulator.md",
    "docs/guides/measuring.md",
    "docs/guides/packets-to-mqtt.md",
    "docs/guides/remote-driving.md",
    "docs/guides/ros.md",
];

/// Bash functions that run one command as a user does.
const PRELUDE: &str = r#"
set -u -o pipefail
fail() { echo "FAILED: $*"; cat "$LOG" 2>/dev/null | tail -n 30; exit 1; }
LOG=$(mktemp)
foreground() {
  local limit=8 status=0
  case "$1" in *cargo*|*pip*) limit=600 ;; esac
  timeout --signal=INT --kill-after=5 "$limit" bash -o pipefail -c "$1" >"$LOG" 2>&1 </dev/null || status=$?
  case $status in
    0) ;;
    124) [ -s "$LOG" ] || fail "$PAGE: no output within $limit s: $1" ;;
    *) fail "$PAGE: exit code $status: $1" ;;
  esac
  case "$1" in *'| jq'*) [ -s "$LOG" ] || fail "$PAGE: no output: $1" ;; esac
  echo "ran: $1"
}
background() {
  bash -c "exec $1" >"$LOG.background" 2>&1 </dev/null &
  local process=$!
  sleep 3
  kill -0 "$process" 2>/dev/null || { cat "$LOG.background"; fail "$PAGE: ended at once: $1 &"; }
  BACKGROUND+=("$process")
  echo "ran: $1 &"
}
end_background() {
  [ ${#BACKGROUND[@]} = 0 ] || { kill "${BACKGROUND[@]}" 2>/dev/null; wait "${BACKGROUND[@]}" 2>/dev/null; }
  BACKGROUND=()
}
BACKGROUND=()
ip link set lo up
viaduct demo --headless --seconds 3600 >"$LOG.demo" 2>&1 </dev/null &
DEMO=$!
trap 'kill $DEMO "${BACKGROUND[@]}" 2>/dev/null; wait' EXIT
for _ in $(seq 100); do curl -sf http://127.0.0.1:8080/v1/latest >/dev/null && break; sleep 0.2; done
kill -0 $DEMO || { cat "$LOG.demo"; exit 1; }
"#;

/// Appends the commands of one page to the script.
fn add_page(script: &mut String, page: &str, text: &str) {
    let _ = writeln!(script, "PAGE={page}\nunset VIADUCT_NODE");
    let mut in_block = false;
    let mut command = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block && matches!(line, "```sh" | "```sh root");
        } else if in_block {
            command.push_str(line);
            if let Some(continued) = command.strip_suffix('\\') {
                command = continued.to_owned();
                continue;
            }
            add_command(script, &without_comment(&command));
            command.clear();
        } else if line.starts_with('#') && page == "README.md" {
            script.push_str("end_background\n");
        }
    }
    script.push_str("end_background\n");
}

fn add_command(script: &mut String, command: &str) {
    let not_run = NOT_RUN.iter().any(|(start, _)| command.starts_with(start));
    if command.is_empty() || not_run {
        return;
    }
    if command.starts_with("export ") || command.starts_with("cd ") {
        let _ = writeln!(script, "{command}");
    } else if let Some(command) = command.strip_suffix('&') {
        let _ = writeln!(script, "background {}", quoted(command.trim_end()));
    } else {
        let _ = writeln!(script, "foreground {}", quoted(command));
    }
}

/// Returns the command without the comment that two spaces separate from it.
fn without_comment(line: &str) -> String {
    line.split("  #").next().unwrap_or_default().trim().to_owned()
}

/// Returns the text as one word of bash.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Creates a folder that looks like the repository's root, so that files which commands write do not end up in the tree.
fn scratch(root: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in ["configs", "docs", "examples", "testdata", "crates"] {
        std::os::unix::fs::symlink(root.join(entry), folder.path().join(entry)).unwrap();
    }
    std::os::unix::fs::symlink(root.join(".cache/venv"), folder.path().join(".venv")).unwrap();
    let shims = folder.path().join(".shims");
    std::fs::create_dir(&shims).unwrap();
    shim(&shims.join("cargo"), &cargo_shim(root));
    shim(&shims.join("sudo"), "exec \"$@\"");
    folder
}

/// Returns a script that runs an example from the repository's root. It takes the program that `cargo test` has built, because
/// `cargo run` resolves other features and would compile all dependencies again.
fn cargo_shim(root: &Path) -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_viaduct")).parent().unwrap();
    format!(
        "cd {}\nif [ \"$1 $2 $3\" = 'run -q --bin' ] && [ -x {}/\"$4\" ]; then\n  program=$4\n  shift 4\n  exec {}/\"$program\" \
         \"$@\"\nfi\nexec {} \"$@\"",
        quoted(&root.to_string_lossy()),
        built.display(),
        built.display(),
        env!("CARGO")
    )
}

fn shim(path: &Path, body: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/usr/bin/env bash\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the reason why the commands cannot be run here, or `None` if they can.
fn obstacle() -> Option<String> {
    for program in ["unshare", "ip", "mosquitto_sub", "coap-client-notls", "curl", "jq", "python3", "ogrinfo"] {
        let found = Command::new("bash").args(["-c", &format!("command -v {program}")]).output().unwrap();
        if !found.status.success() {
            return Some(format!("{program} is not installed"));
        }
    }
    let allowed = Command::new("unshare").args(["--net", "true"]).output().unwrap();
    (!allowed.status.success()).then(|| "network namespaces need root".to_owned())
}

#[test]
fn commands_of_readme_and_guides_work_as_written() {
    if let Some(reason) = obstacle() {
        assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut script = PRELUDE.to_owned();
    for page in PAGES {
        add_page(&mut script, page, &std::fs::read_to_string(root.join(page)).unwrap());
    }
    let folder = scratch(&root);
    let binary = Path::new(env!("CARGO_BIN_EXE_viaduct")).parent().unwrap();
    let path = format!("{}/.shims:{}:{}", folder.path().display(), binary.display(), std::env::var("PATH").unwrap());
    let file = folder.path().join(".commands.sh");
    std::fs::write(&file, script).unwrap();
    let ended = Command::new("unshare")
        .args(["--net", "bash"])
        .arg(&file)
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{output}\n{}", String::from_utf8_lossy(&ended.stderr));
}
