//! Files that a config file names.
//!
//! A path may name anything, for example `/dev/zero` or a log of several gigabytes. A file is therefore read up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a text of at most `octets_max` octets.
///
/// # Errors
/// The file cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, octets_max: u64) -> io::Result<String> {
    text_of(File::open(path)?, octets_max)
}

/// Reads a file of at most `octets_max` octets.
///
/// # Errors
/// The file cannot be read, or is longer.
pub fn read_octets(path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
    octets_of(File::open(path)?, octets_max)
}

/// Reads the rest of a stream, a text of at most `octets_max` octets.
///
/// # Errors
/// See [`read_text`].
pub fn text_of(stream: impl Read, octets_max: u64) -> io::Result<String> {
    String::from_utf8(octets_of(stream, octets_max)?).map_err(|_| io::Error::other("it is not a text in UTF-8"))
}

fn octets_of(stream: impl Read, octets_max: u64) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    stream.take(octets_max.saturating_add(1)).read_to_end(&mut octets)?;
    if octets.len() as u64 > octets_max {
        return Err(io::Error::other(format!("it is longer than {octets_max} bytes")));
    }
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let error = read_text(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1000 bytes");
        assert_eq!(text_of(&b"four"[..], 4).unwrap(), "four");
        assert!(text_of(&b"four"[..], 3).is_err());
        assert_eq!(text_of(&b"\xFF"[..], 3).unwrap_err().to_string(), "it is not a text in UTF-8");
        assert!(read_octets(Path::new("/"), 1000).is_err());
    }
}
