//! Puts the built dashboard (`dashboard/dist`) into the crate as a table of files, where it is there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files that a dashboard may have; more means that something else lies there.
const FILES_MAX: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dashboard = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../dashboard");
    let dist = dashboard.join("dist");
    // A path that is missing would make cargo build this crate each time.
    let watched = [&dist, &dashboard].into_iter().find(|path| path.is_dir());
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(watched) = watched {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist.canonicalize()?, &mut files)?;
        files.sort();
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("dashboard.rs"), table(&dist, &files, &out)?)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn std::error::Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(format!("{} holds more than {FILES_MAX} files", folder.display()).into());
        }
    }
    Ok(())
}

/// A Rust expression: `&[File { .. }, ..]`, with paths as URLs have them. It names copies in `out`: the dashboard may be built
/// anew while this crate is compiled.
fn table(dist: &Path, files: &[PathBuf], out: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let path = file.strip_prefix(dist.canonicalize()?)?.to_str().ok_or("a file name is not UTF-8")?;
        let content = std::fs::read(file)?;
        let etag = format!("\"{:016x}\"", fnv1a(&content));
        let copy = out.join(format!("dashboard-{number}"));
        std::fs::write(&copy, content)?;
        let url = format!("/{path}");
        writeln!(table, "    File {{ path: {url:?}, etag: {etag:?}, octets: include_bytes!({copy:?}) }},")?;
    }
    table.push_str("]\n");
    Ok(table)
}

/// FNV-1a, 64 bits: tells the versions of a file apart.
fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01B3))
}
