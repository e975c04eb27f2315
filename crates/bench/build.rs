//! Provides the commit being built for reports.

use std::path::Path;
use std::process::Command;

/// Sources of the binary, relative to the repository's root.
const SOURCES: [&str; 5] = ["crates", "testdata", "configs", "Cargo.toml", "Cargo.lock"];

fn main() {
    println!("cargo::rustc-env=VIADUCT_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    // The name changes with the commit and with edits of the sources. A source archive lacks some of these paths.
    for path in SOURCES.into_iter().chain([".git/HEAD", ".git/logs/HEAD"]) {
        let path = Path::new("../..").join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Returns the short hash of the commit, with `-dirty` if the sources differ from it, or `None` without git or
/// without a repository.
fn commit() -> Option<String> {
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

/// Runs git in the repository's root. Returns its output, or `None` on failure.
fn git(arguments: &[&str]) -> Option<String> {
    // A build must not lock the repository against a concurrent commit.
    let output = Command::new("git").arg("--no-optional-locks").current_dir("../..").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
