//! The source `directory`: recorded JPEG files in the order of their names, repeated.

use std::path::{Path, PathBuf};

use viaduct_node::files;

use super::jpeg::{FILE_OCTETS_MAX, JpegFile};

/// Largest number of files.
const FILES_MAX: usize = 100_000;

/// The reason why a directory is not a recording.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{} has no files with the ending .jpg or .jpeg", path.display())]
    Empty { path: PathBuf },
    #[error("{} has more than {FILES_MAX} files", path.display())]
    TooMany { path: PathBuf },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
}

/// Recorded files. One file at a time is in memory.
#[derive(Debug)]
pub(super) struct Recording {
    files: Vec<PathBuf>,
    next: usize,
    current: Vec<u8>,
}

impl Recording {
    /// Lists the files of a directory, and checks the first one.
    pub(super) fn open(directory: &Path) -> Result<Self, DirectoryError> {
        let failed = |cause| DirectoryError::Read { path: directory.to_owned(), cause };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_jpeg(&path) {
                files.push(path);
            }
            if files.len() > FILES_MAX {
                return Err(DirectoryError::TooMany { path: directory.to_owned() });
            }
        }
        if files.is_empty() {
            return Err(DirectoryError::Empty { path: directory.to_owned() });
        }
        files.sort();
        let mut recording = Self { files, next: 0, current: Vec::new() };
        recording.advance()?;
        recording.next = 0;
        Ok(recording)
    }

    /// Reads the next file; after the last one follows the first.
    pub(super) fn advance(&mut self) -> Result<&[u8], DirectoryError> {
        let path = &self.files[self.next];
        self.next = (self.next + 1) % self.files.len();
        let wrong = |problem: String| DirectoryError::File { path: path.clone(), problem };
        self.current = files::read_octets(path, FILE_OCTETS_MAX as u64).map_err(|error| wrong(error.to_string()))?;
        JpegFile::parse(&self.current).map_err(|error| wrong(error.to_string()))?;
        Ok(&self.current)
    }
}

fn is_jpeg(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    matches!(ending.as_deref(), Some("jpg" | "jpeg"))
}

#[cfg(test)]
mod tests {
    use super::super::picture::Picture;
    use super::*;

    fn jpeg(width: usize) -> Vec<u8> {
        let mut picture = Picture::default();
        picture.resize(width, 8);
        let mut file = vec![0; 65536];
        let length = picture.encode(50, b"", &mut file).unwrap();
        file.truncate(length);
        file
    }

    #[test]
    fn files_are_read_in_the_order_of_their_names_and_repeated() {
        let directory = tempfile::tempdir().unwrap();
        for (name, width) in [("b.jpeg", 16), ("a.JPG", 8), ("c.txt", 24)] {
            std::fs::write(directory.path().join(name), jpeg(width)).unwrap();
        }
        let mut recording = Recording::open(directory.path()).unwrap();
        let widths: Vec<u16> = (0..4).map(|_| JpegFile::parse(recording.advance().unwrap()).unwrap().size.0).collect();
        assert_eq!(widths, [8, 16, 8, 16]);
    }

    #[test]
    fn a_wrong_directory_is_refused_and_a_wrong_file_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Recording::open(path).err().unwrap().to_string();
        assert!(refused(&directory.path().join("none")).starts_with("cannot read "));
        assert!(refused(directory.path()).ends_with("has no files with the ending .jpg or .jpeg"));
        std::fs::write(directory.path().join("1.jpg"), b"text").unwrap();
        assert!(refused(directory.path()).ends_with("1.jpg: the file does not begin with FF D8"));
        std::fs::write(directory.path().join("0.jpg"), jpeg(8)).unwrap();
        let mut recording = Recording::open(directory.path()).unwrap();
        assert!(recording.advance().is_ok() && recording.advance().is_err() && recording.advance().is_ok());
    }
}
