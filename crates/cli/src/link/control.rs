//! The Unix socket of a link: one request and one answer per connection, each a line of JSON.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use viaduct_components::link::LinkReport;

use super::change::{Change, refused};

/// Folder of the sockets.
const FOLDER: &str = "/run/viaduct";
/// Longest line.
const LINE_OCTETS_MAX: u64 = 1 << 20;
/// Longest wait for the other process.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to the process that owns a link.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Show,
    Set { direction: Direction, changes: Vec<Change> },
    Down,
}

/// Directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    AToB,
    BToA,
    Both,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Status(Box<Status>),
    Done,
    Refused(String),
}

/// A link and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) name: String,
    /// Profile or file that `viaduct link up` was given.
    pub(super) profile: String,
    pub(super) seed: u64,
    /// Largest packet in octets.
    pub(super) mtu: u16,
    /// Process that owns the link.
    pub(super) process_id: u32,
    pub(super) uptime_s: f64,
    pub(super) a: EndStatus,
    pub(super) b: EndStatus,
    #[serde(flatten)]
    pub(super) directions: LinkReport,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EndStatus {
    pub(super) address: String,
    pub(super) namespace: String,
}

/// No process owns a link of that name.
#[derive(Debug, thiserror::Error)]
#[error("no link {0} is up: create it with `viaduct link up PROFILE{option}`", option = name_option(.0))]
pub(super) struct NotUp(String);

fn name_option(name: &str) -> String {
    if name == "viaduct" { String::new() } else { format!(" --name {name}") }
}

impl Direction {
    /// Parses a direction of the command line.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        match text {
            "a-to-b" => Ok(Self::AToB),
            "b-to-a" => Ok(Self::BToA),
            "both" => Ok(Self::Both),
            _ => Err(refused(format!("`{text}` is neither KEY=VALUE nor a direction: `a-to-b`, `b-to-a` or `both`"))),
        }
    }
}

/// Returns the path of the socket of a link.
pub(super) fn socket_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("link-{name}.sock"))
}

/// Returns the path of the log of a link in the background.
pub(super) fn log_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("link-{name}.log"))
}

/// Removes the socket and the log of a link. Returns `true` if there was a socket.
pub(super) fn remove_socket(name: &str) -> bool {
    let _ = fs::remove_file(log_path(name));
    fs::remove_file(socket_path(name)).is_ok()
}

/// Opens the socket of a link for its owner only.
pub(super) fn listen(name: &str) -> anyhow::Result<UnixListener> {
    let path = socket_path(name);
    let open = || -> io::Result<UnixListener> {
        fs::create_dir_all(FOLDER)?;
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    open().with_context(|| format!("cannot open {}", path.display()))
}

/// Sends a request to the process that owns a link, and returns its answer.
pub(super) fn ask(name: &str, request: &Request) -> anyhow::Result<Answer> {
    let path = socket_path(name);
    let mut stream = match UnixStream::connect(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Err(NotUp(name.to_owned()).into());
        }
        connected => connected.with_context(|| format!("cannot connect to {}; use sudo", path.display()))?,
    };
    send(&mut stream, request).context("cannot ask the link")?;
    match receive(&stream).context("no answer from the link")? {
        Answer::Refused(problem) => Err(refused(problem)),
        answer => Ok(answer),
    }
}

/// Reads a request, and returns it with the connection for the answer.
pub(super) fn request(stream: &UnixStream) -> io::Result<Request> {
    receive(stream)
}

/// Sends the answer to a request.
pub(super) fn answer(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    send(stream, answer)
}

fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn receive<T: for<'de> Deserialize<'de>>(stream: &UnixStream) -> io::Result<T> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(LINE_OCTETS_MAX)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
