//! Embeds the built page of the driver's desk (`dashboard/dist-desk/desk.html`) into the crate, if it exists.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dashboard = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../dashboard");
    let page = dashboard.join("dist-desk/desk.html");
    // If a watched path is missing, cargo rebuilds this crate each time.
    let watched = [&page, &dashboard].into_iter().find(|path| path.exists());
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(watched) = watched {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    // A copy, because the page may be rebuilt while this crate is compiled. An empty one means that the page was not built.
    let copy = PathBuf::from(std::env::var("OUT_DIR")?).join("desk.html");
    std::fs::write(copy, std::fs::read(page).unwrap_or_default())?;
    Ok(())
}
