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
    if links_with_lld() {
        // Functions with identical code are in the binary once, which makes a release build 0.8 MB smaller (decision 0009).
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
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

/// Returns `true` if the compiler links with its own LLD, which is its default on this target since 1.90.
fn links_with_lld() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|actual| actual == value);
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    is("TARGET", "x86_64-unknown-linux-gnu") && std::env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link")
}

/// Returns the first line that git prints, or `None` if there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
