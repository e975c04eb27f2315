//! Passes the commit of the source to the compiler, for `viaduct --version`.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on stdout")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!(
        "cargo::rustc-env=VIADUCT_COMMIT={}",
        git(&["rev-parse", "--short=9", "HEAD"]).unwrap_or("unknown".into())
    );
    // The addresses that the loader adjusts take 0.1 MB instead of 1.2 (glibc 2.36 and later).
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // Without a file that changes only with HEAD, cargo would run this script and recompile the binary at each change.
    println!("cargo::rerun-if-changed=build.rs");
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD".to_owned()].into_iter().chain(branch).chain(["packed-refs".to_owned()]) {
        let file = git(&["rev-parse", "--git-path", &name]);
        // Cargo takes a file that does not exist as changed.
        if let Some(file) = file.filter(|file| Path::new(file).exists()) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
}

/// Returns the first line that git prints, or `None` if there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
