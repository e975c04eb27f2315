//! Notes the commit that is built, so that a report can name it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=VIADUCT_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    // Another commit is another reference; without one of these paths (a source archive) nothing is watched.
    for path in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Short hash of the commit; `None` without git or without a repository.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let hash = String::from_utf8(output.stdout).ok()?;
    let hash = hash.trim();
    (output.status.success() && !hash.is_empty()).then(|| hash.to_owned())
}
