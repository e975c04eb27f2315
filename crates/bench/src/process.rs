//! Programs that receive and answer lines on their standard streams.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::sys;

/// Waiting time for a program file that is still open for writing, several times.
const BUSY_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Time limit for the end of a program.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process with its lines. It leads a process group, which is killed with it.
pub(crate) struct Process {
    child: Child,
    /// `None` once the process was requested to end.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Its last line on standard error.
    last_error: Receiver<String>,
}

impl Process {
    /// Starts a program in a process group of its own, with pipes to its standard streams.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = start_written(command).map_err(|cause| format!("it does not start: {cause}"))?;
        let input = child.stdin.take();
        let lines = each_line(child.stdout.take());
        let last_error = last_line(child.stderr.take());
        Ok(Self { child, input, lines, last_error })
    }

    /// Returns the process identifier.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a value as a line of JSON.
    pub(crate) fn send(&mut self, value: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_string(value).map_err(|problem| problem.to_string())?;
        line.push('\n');
        let input = self.input.as_mut().ok_or("its standard input is closed")?;
        if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
            // The reader has ended.
            return Err(self.with_last_error("it ended"));
        }
        Ok(())
    }

    /// Waits for the program's next line.
    pub(crate) fn next_line(&mut self, timeout: Duration) -> Result<String, String> {
        self.lines.recv_timeout(timeout).map_err(|why| match why {
            RecvTimeoutError::Timeout => format!("no answer within {} s; killed", timeout.as_secs()),
            RecvTimeoutError::Disconnected => self.with_last_error("it ended"),
        })
    }

    fn with_last_error(&self, what: &str) -> String {
        match self.last_error.recv_timeout(Duration::from_millis(200)) {
            Ok(words) if !words.is_empty() => format!("{what}: {words}"),
            _ => what.to_owned(),
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // This also kills processes that it started and left behind.
        sys::kill_group(self.child.id());
        // The process was killed, so this returns.
        let _ = self.child.wait();
    }
}

/// Returns the lines of a stream, read by a thread that ends with the stream.
fn each_line(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = sync_channel(4);
    // Without the thread, the receiver is disconnected, as after the end of the program.
    let _ = crate::floor::spawn("bench-rival", move || {
        let lines = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Returns the last line of a stream when the stream has ended.
fn last_line(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, line) = sync_channel(1);
    let _ = crate::floor::spawn("bench-rival-errors", move || {
        let lines = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        let last = lines.map_while(Result::ok).filter(|line| !line.trim().is_empty()).last();
        // The receiver may have ended.
        let _ = sender.send(last.unwrap_or_default());
    });
    line
}

/// Starts a program. A file that was written a moment ago may still be open in a forked process before its exec.
fn start_written(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(cause) if cause.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_RETRY_DELAY);
            }
            started => return started,
        }
    }
    command.spawn()
}
