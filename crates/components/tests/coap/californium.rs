//! The client and the server of Californium: `scripts/setup californium` builds them from `tests/peers/californium`.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::support::{PATIENCE, has, skipped};

/// Folder with the classes and their dependencies.
const FOLDER: &str = "../../.cache/californium";

/// A line that a peer has printed about a message.
pub(crate) struct Line {
    /// Code or method, type and content format, for example `2.05 ACK 50`.
    pub(crate) head: String,
    pub(crate) payload: Vec<u8>,
}

impl Line {
    fn parse(line: &str) -> Self {
        match line.rsplit_once(' ') {
            Some((head, payload)) => Self { head: head.to_owned(), payload: BASE64.decode(payload).unwrap() },
            None => Self { head: line.to_owned(), payload: Vec::new() },
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.payload).unwrap()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A large payload would hide the rest.
        let begin = &self.payload[..self.payload.len().min(100)];
        write!(formatter, "{}, {} octets: {}", self.head, self.payload.len(), String::from_utf8_lossy(begin))
    }
}

/// A Java process, which ends with the test.
struct Java {
    process: Child,
    input: ChildStdin,
    output: Receiver<String>,
    errors: Receiver<String>,
}

impl Java {
    /// Starts a class, or returns `None` if it is not built. A peer with an identity and a key uses DTLS.
    fn start(class: &str, key: Option<(&str, &str)>) -> Option<Self> {
        if !has("java") {
            return None;
        }
        if !Path::new(FOLDER).join("built").is_file() {
            skipped("the Californium peers are not built; `scripts/setup californium` builds them");
            return None;
        }
        let mut command = Command::new("java");
        // A short start matters more than fast code.
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]);
        command.args([&format!("{FOLDER}/classes:{FOLDER}/dependency/*"), class]);
        command.args(key.iter().flat_map(|(identity, key)| [identity, key]));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = lines(process.stdout.take().unwrap());
        let errors = lines(process.stderr.take().unwrap());
        Some(Self { input: process.stdin.take().unwrap(), process, output, errors })
    }

    fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for the next line.
    fn read(&self) -> String {
        self.output.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let errors: Vec<String> = self.errors.try_iter().collect();
            panic!("Californium prints nothing: {error}\n{}", errors.join("\n"))
        })
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

/// Reads lines in a thread.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    let lines = BufReader::new(from).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

/// Returns a content format and a payload as arguments of a command.
fn arguments(format: u16, payload: &[u8]) -> String {
    format!("{format} {}", BASE64.encode(payload))
}

/// The client.
pub(crate) struct Client(Java);

impl Client {
    pub(crate) fn start(key: Option<(&str, &str)>) -> Option<Self> {
        Java::start("Client", key).map(Self)
    }

    /// Waits for the next response or notification.
    pub(crate) fn next(&self) -> Line {
        Line::parse(&self.0.read())
    }

    /// Reads a resource. `kind` is `con` or `non`.
    pub(crate) fn get(&mut self, kind: &str, uri: &str) -> Line {
        self.0.write(&format!("get {uri} {kind}"));
        self.next()
    }

    /// Writes a resource with `method`, which is `post` or `put`.
    pub(crate) fn send(&mut self, method: &str, kind: &str, uri: &str, format: u16, payload: &[u8]) -> Line {
        self.0.write(&format!("{method} {uri} {kind} {}", arguments(format, payload)));
        self.next()
    }

    /// Begins an observation. The first state is the next line.
    pub(crate) fn observe(&mut self, uri: &str) {
        self.0.write(&format!("observe {uri}"));
    }

    /// Ends the observation with a request.
    pub(crate) fn cancel(&mut self) {
        self.0.write("cancel");
    }

    /// Returns `true` if a ping is answered.
    pub(crate) fn ping(&mut self, uri: &str) -> bool {
        self.0.write(&format!("ping {uri}"));
        self.0.read() == "pong"
    }

    /// Returns the links that Californium finds, each with interface, content format and `obs` if it can be observed.
    pub(crate) fn discover(&mut self, uri: &str) -> Vec<String> {
        self.0.write(&format!("discover {uri}"));
        std::iter::repeat_with(|| self.0.read()).take_while(|line| line != "end").collect()
    }
}

/// The server.
pub(crate) struct Server {
    java: Java,
    port: u16,
}

impl Server {
    /// Starts the server and waits until it listens.
    pub(crate) fn start(key: Option<(&str, &str)>) -> Option<Self> {
        let java = Java::start("Server", key)?;
        let ready = java.read();
        let port = ready.strip_prefix("ready ").and_then(|port| port.parse().ok());
        Some(Self { java, port: port.expect("the server prints its port") })
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Waits for the next request that writes a resource, or for an acknowledgement of a separate response.
    pub(crate) fn next(&self) -> Line {
        Line::parse(&self.java.read())
    }

    /// Changes a state that is observed.
    pub(crate) fn set(&mut self, path: &str, format: u16, payload: &[u8]) {
        self.java.write(&format!("{path} {}", arguments(format, payload)));
    }
}
