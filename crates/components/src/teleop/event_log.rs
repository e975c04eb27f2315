//! An event log on disk: one JSON object a line, in files of limited size.
//!
//! A thread of its own writes the lines, so a slow disk never delays the vehicle. Each line is on the disk before the next one is
//! written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, clock};
use viaduct_node::{Context, SettingError, StartError};
use viaduct_units::Mono;

/// Largest number of lines that wait for the thread.
const LINES_MAX: usize = 1024;
/// Time from a failed rotation to the next attempt.
const ROTATION_RETRY: Duration = Duration::from_secs(60);

/// An event log on disk.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventLogSettings {
    /// File. Events are appended, one JSON object a line.
    pub file: PathBuf,
    /// Size in bytes at which the file is renamed to `FILE.1`, and `FILE.1` to `FILE.2`, 4096 to 1073741824. Default: 16777216
    /// (16 MiB).
    #[serde(default = "default_octets")]
    #[schemars(range(min = 4096, max = 1_073_741_824))]
    pub max_octets: u64,
    /// Number of renamed files that are kept, 0 to 999. Default: 7.
    #[serde(default = "default_kept")]
    #[schemars(range(min = 0, max = 999))]
    pub kept: u32,
}

const fn default_octets() -> u64 {
    16 << 20
}

const fn default_kept() -> u32 {
    7
}

impl EventLogSettings {
    pub(crate) fn check(&self, key: &str) -> Result<(), SettingError> {
        if !(4096..=1 << 30).contains(&self.max_octets) {
            let problem = format!("{} is not within 4096 to 1073741824", self.max_octets);
            return Err(SettingError::new(format!("{key}.max_octets"), problem));
        }
        if self.kept > 999 {
            return Err(SettingError::new(format!("{key}.kept"), format!("{} is not within 0 to 999", self.kept)));
        }
        Ok(())
    }
}

/// Counters of a log. Lines given = written + behind + failed.
#[derive(Clone)]
struct LogCounters {
    written: Counter,
    behind: Counter,
    failed: Counter,
    /// Failed attempts to rotate the files. The lines are appended to the present file.
    rotations_failed: Counter,
}

/// A log that is being written. All lines are on the disk when it is dropped.
pub(crate) struct EventLog {
    lines: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    counters: LogCounters,
}

impl EventLog {
    /// Opens the file.
    ///
    /// # Errors
    /// The file cannot be written, or the thread cannot be started.
    pub(crate) fn open<C: Send + 'static>(
        settings: &EventLogSettings,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let counters = LogCounters {
            written: context.counter("event_log_written"),
            behind: context.counter_for("event_log_lost", "disk_too_slow"),
            failed: context.counter_for("event_log_lost", "write_failed"),
            rotations_failed: context.counter("event_log_rotations_failed"),
        };
        let failed = |cause| StartError::io(format!("cannot write the event log {}", settings.file.display()), cause);
        let writing = Writing::open(settings, counters.clone()).map_err(failed)?;
        let (lines, waiting) = sync_channel(LINES_MAX);
        let thread = std::thread::Builder::new().name("event log".to_owned());
        let thread = thread.spawn(move || writing.run(&waiting)).map_err(failed)?;
        Ok(Self { lines: Some(lines), thread: Some(thread), counters })
    }

    /// Writes a line. Never waits: if too many lines wait, the line is lost and counted.
    pub(crate) fn write(&self, line: String) {
        if self.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.counters.behind.increment();
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by its own hook.
            let _ = thread.join();
        }
    }
}

/// The part of a log that runs in its thread.
struct Writing {
    path: PathBuf,
    max_octets: u64,
    kept: u32,
    /// The file and its size; `None` after an error.
    file: Option<(File, u64)>,
    /// `true` if the last line failed, so that a full disk is logged once.
    failing: bool,
    /// Time of the next attempt to rename the files; `None` unless the last one failed.
    rotation_retry: Option<Mono>,
    counters: LogCounters,
}

impl Writing {
    fn open(settings: &EventLogSettings, counters: LogCounters) -> io::Result<Self> {
        let EventLogSettings { file: path, max_octets, kept } = settings.clone();
        let file = Some(open_for_append(&path)?);
        Ok(Self { path, max_octets, kept, file, failing: false, rotation_retry: None, counters })
    }

    fn run(mut self, waiting: &Receiver<String>) {
        for line in waiting {
            match self.write(clock::mono(), &line) {
                Ok(()) => {
                    self.failing = false;
                    self.counters.written.increment();
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::error!(file = %self.path.display(), %error, "event log cannot be written");
                    }
                    // The next line opens the file again.
                    self.file = None;
                    self.counters.failed.increment();
                }
            }
        }
    }

    fn write(&mut self, now: Mono, line: &str) -> io::Result<()> {
        let octets = line.len() as u64 + 1;
        if self.file.as_ref().is_some_and(|(_, size)| *size > 0 && size + octets > self.max_octets) {
            self.rotate(now);
        }
        let (file, size) = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_for_append(&self.path)?),
        };
        file.write_all(format!("{line}\n").as_bytes())?;
        *size += octets;
        file.sync_data()
    }

    /// Starts a new file. If the files cannot be renamed, the lines are appended to the present one until the next attempt.
    fn rotate(&mut self, now: Mono) {
        if self.rotation_retry.is_some_and(|retry| now < retry) {
            return;
        }
        match self.rename_files() {
            Ok(()) => (self.file, self.rotation_retry) = (None, None),
            Err(error) => {
                if self.rotation_retry.replace(now.plus(ROTATION_RETRY)).is_none() {
                    tracing::error!(file = %self.path.display(), %error, "event log cannot be rotated, its file grows");
                }
                self.counters.rotations_failed.increment();
            }
        }
    }

    /// Renames the file to `FILE.1` and each earlier one to the next number. The oldest one is replaced.
    fn rename_files(&self) -> io::Result<()> {
        if self.kept == 0 {
            return unless_missing(std::fs::remove_file(&self.path));
        }
        // A missing number, for example after a failed attempt, takes the file before it. Repeated attempts thus replace no
        // further files.
        let last = (1..self.kept).find(|number| !numbered(&self.path, *number).exists()).unwrap_or(self.kept);
        for number in (1..last).rev() {
            unless_missing(std::fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1)))?;
        }
        unless_missing(std::fs::rename(&self.path, numbered(&self.path, 1)))
    }
}

/// Returns the result of an operation on a file that need not exist.
fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Opens a file and returns it with its size. A last line that is incomplete, because the power failed, is ended.
fn open_for_append(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let mut size = file.metadata()?.len();
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    use viaduct_bus::Bus;

    use super::*;

    fn open(settings: &EventLogSettings) -> Writing {
        let bus = Bus::new("t");
        let counter = |name: &str| bus.counter("log", name, None);
        let counters = LogCounters {
            written: counter("written"),
            behind: counter("behind"),
            failed: counter("failed"),
            rotations_failed: counter("rotations_failed"),
        };
        Writing::open(settings, counters).unwrap()
    }

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[test]
    fn full_files_are_renamed_and_the_oldest_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        let mut writing = open(&EventLogSettings { file: file.clone(), max_octets: 20, kept: 2 });
        for number in 0..7 {
            writing.write(at(0), &format!("line {number}..")).unwrap();
        }
        assert_eq!(lines(&file), ["line 6.."]);
        assert_eq!(lines(&numbered(&file, 1)), ["line 4..", "line 5.."]);
        assert_eq!(lines(&numbered(&file, 2)), ["line 2..", "line 3.."]);
        assert!(!numbered(&file, 3).exists());
    }

    #[test]
    fn a_line_after_a_power_failure_is_a_line_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        std::fs::write(&file, "{\"event\":\"sta").unwrap();
        let settings = EventLogSettings { file: file.clone(), max_octets: 4096, kept: 1 };
        open(&settings).write(at(0), "{}").unwrap();
        open(&settings).write(at(0), "{\"a\":1}").unwrap();
        assert_eq!(lines(&file), ["{\"event\":\"sta", "{}", "{\"a\":1}"]);
    }

    #[test]
    fn a_file_that_was_removed_is_created_again_after_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let file = below.join("events.jsonl");
        let mut writing = open(&EventLogSettings { file: file.clone(), max_octets: 8, kept: 1 });
        writing.write(at(0), "1234567").unwrap();
        std::fs::remove_dir_all(&below).unwrap();
        assert!(writing.write(at(0), "1234567").is_err());
        std::fs::create_dir(&below).unwrap();
        writing.write(at(0), "1234567").unwrap();
        assert_eq!(lines(&file), ["1234567"]);
    }

    #[test]
    fn no_line_is_lost_if_the_files_cannot_be_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        // A file cannot replace a folder.
        std::fs::create_dir(numbered(&file, 3)).unwrap();
        for number in [1, 2] {
            std::fs::write(numbered(&file, number), format!("earlier {number}\n")).unwrap();
        }
        let mut writing = open(&EventLogSettings { file: file.clone(), max_octets: 20, kept: 3 });
        for number in 0..7 {
            writing.write(at(number), &format!("line {number}..")).unwrap();
        }
        assert_eq!(lines(&file).len(), 7);
        assert_eq!(writing.counters.rotations_failed.value(), 1);
        // The first attempt was at 2 s.
        writing.write(at(61), "line 7..").unwrap();
        assert_eq!(writing.counters.rotations_failed.value(), 1);
        writing.write(at(62), "line 8..").unwrap();
        assert_eq!(writing.counters.rotations_failed.value(), 2);
        assert_eq!(lines(&file).len(), 9);

        std::fs::remove_dir(numbered(&file, 3)).unwrap();
        writing.write(at(122), "line 9..").unwrap();
        assert_eq!((lines(&file), lines(&numbered(&file, 1)).len()), (vec!["line 9..".to_owned()], 9));
        assert_eq!(lines(&numbered(&file, 2)), ["earlier 1"]);
        assert_eq!(lines(&numbered(&file, 3)), ["earlier 2"]);
        assert_eq!(writing.rotation_retry, None);
    }

    #[test]
    fn repeated_attempts_replace_no_further_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        std::fs::write(&file, "line\n").unwrap();
        for number in [2, 3] {
            std::fs::write(numbered(&file, number), format!("earlier {number}\n")).unwrap();
        }
        // `FILE.1` is missing, because an attempt has failed after it was renamed.
        open(&EventLogSettings { file: file.clone(), max_octets: 8, kept: 3 }).write(at(0), "next line").unwrap();
        assert_eq!((lines(&file), lines(&numbered(&file, 1))), (vec!["next line".to_owned()], vec!["line".to_owned()]));
        assert_eq!(lines(&numbered(&file, 2)), ["earlier 2"]);
        assert_eq!(lines(&numbered(&file, 3)), ["earlier 3"]);
    }
}
