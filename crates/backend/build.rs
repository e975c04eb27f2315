//! Embeds the built dashboard (`dashboard/dist`), compressed, into the crate as a table of files, if it exists.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest number of files; more indicate that the folder is not a built dashboard.
const FILES_MAX: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dashboard = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../dashboard");
    let dist = dashboard.join("dist");
    // If a watched path is missing, cargo rebuilds this crate each time.
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

/// Returns a Rust expression `&[File { .. }, ..]` with the paths of the files in URLs. It refers to compressed copies in `out`.
fn table(dist: &Path, files: &[PathBuf], out: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let path = file.strip_prefix(dist.canonicalize()?)?.to_str().ok_or("a file name is not UTF-8")?;
        let content = std::fs::read(file)?;
        // A weak one: it identifies the file, which is sent compressed or not.
        let etag = format!("W/\"{:016x}\"", fnv1a(&content));
        let copy = out.join(format!("dashboard-{number}.gz"));
        let mut compressed = Vec::new();
        flate2::read::GzEncoder::new(&content[..], flate2::Compression::best()).read_to_end(&mut compressed)?;
        std::fs::write(&copy, compressed)?;
        let url = format!("/{path}");
        writeln!(
            table,
            "    File {{ path: {url:?}, etag: {etag:?}, content: Content::Gzip(include_bytes!({copy:?})) }},"
        )?;
    }
    table.push_str("]\n");
    Ok(table)
}

/// Returns the FNV-1a hash (64 bits), which identifies a version of a file.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}
