//! Notes the commit that is built, so that a report can name it.

use std::path::Path;
use std::process::Command;

/// What goes into the binary, seen from the repository's root.
const SOURCES: [&str; 5] = ["crates", "testdata", "configs", "Cargo.toml", "Cargo.lock"];

fn main() {
    println!("cargo::rustc-env=VIADUCT_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    // Another commit is another reference, and an edit makes the tree another one than its commit; without one of these
    // paths (a source archive) it is not watched.
    for path in SOURCES.into_iter().chain([".git/HEAD", ".git/logs/HEAD"]) {
        let path = Path::new("../..").join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Short hash of the commit, with `-dirty` where what is built is not what was committed; `None` without git or without a
/// repository.
fn commit() -> Option<String> {
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

/// What git says about the repository's root; `None` where it cannot.
fn git(arguments: &[&str]) -> Option<String> {
    // A build must not stand in the way of a commit that is made meanwhile.
    let output = Command::new("git").arg("--no-optional-locks").current_dir("../..").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
