//! The files of the figures, which a thread of their own writes, so that a slow disk delays no message.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use viaduct_bus::Counter;
use viaduct_node::{Context, SettingError, StartError};

use super::{FilesSettings, KeyFigures, suite};
use crate::figures::path::Path;

/// Maximum number of lines that wait for the thread.
const WAITING_MAX: usize = 1024;

/// A text for the thread.
enum Text {
    /// A line of the time stamps.
    Row(String),
    /// The whole file of the metrics.
    Metrics(String),
}

/// The files. Everything is written when they are dropped.
pub(super) struct Files {
    texts: Option<SyncSender<Text>>,
    thread: Option<JoinHandle<()>>,
    lost: Counter,
}

impl Files {
    /// Creates the folder and the files.
    pub(super) fn open(
        settings: &FilesSettings,
        path: &Path,
        context: &Context<KeyFigures>,
    ) -> Result<Self, StartError> {
        let wrong = |error: io::Error| {
            SettingError::new("files.folder", format!("cannot write to {}: {error}", settings.folder.display()))
        };
        let writing = Writing::open(settings, path, context.counter("file_failed")).map_err(wrong)?;
        let (texts, waiting) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("key figures".to_owned());
        let thread = thread.spawn(move || writing.run(&waiting)).map_err(wrong)?;
        Ok(Self { texts: Some(texts), thread: Some(thread), lost: context.counter("file_lost") })
    }

    /// Writes a line of the time stamps.
    pub(super) fn write_row(&self, row: String) {
        self.write(Text::Row(row));
    }

    /// Replaces the metrics.
    pub(super) fn write_metrics(&self, text: String) {
        self.write(Text::Metrics(text));
    }

    /// Never waits: if too many texts wait, the text is lost and counted.
    fn write(&self, text: Text) {
        if self.texts.as_ref().is_none_or(|texts| texts.try_send(text).is_err()) {
            self.lost.increment();
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.texts = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by its own hook.
            let _ = thread.join();
        }
    }
}

/// The part that runs in the thread.
struct Writing {
    rows: BufWriter<File>,
    rows_left: u32,
    metrics: PathBuf,
    failed: Counter,
    /// `true` if the last text failed, so that a full disk is logged once.
    is_failing: bool,
}

impl Writing {
    fn open(settings: &FilesSettings, path: &Path, failed: Counter) -> io::Result<Self> {
        let FilesSettings { folder, name, samples_max } = settings;
        std::fs::create_dir_all(folder)?;
        let mut rows = BufWriter::new(File::create(folder.join(format!("{name}_timestamps.csv")))?);
        writeln!(rows, "{}", suite::header(path))?;
        rows.flush()?;
        let metrics = folder.join(format!("{name}_metrics.json"));
        Ok(Self { rows, rows_left: *samples_max, metrics, failed, is_failing: false })
    }

    fn run(mut self, waiting: &Receiver<Text>) {
        for text in waiting {
            match self.write(text) {
                Ok(()) => self.is_failing = false,
                Err(error) => {
                    self.failed.increment();
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::error!(file = %self.metrics.display(), %error, "key figures cannot be written");
                    }
                }
            }
        }
    }

    fn write(&mut self, text: Text) -> io::Result<()> {
        match text {
            Text::Row(row) if self.rows_left > 0 => {
                self.rows_left -= 1;
                writeln!(self.rows, "{row}")
            }
            Text::Row(_) => Ok(()),
            // Once a second. A reader sees the earlier file or the whole new one.
            Text::Metrics(text) => {
                self.rows.flush()?;
                let new = self.metrics.with_extension("json.new");
                std::fs::write(&new, text)?;
                std::fs::rename(&new, &self.metrics)
            }
        }
    }
}
