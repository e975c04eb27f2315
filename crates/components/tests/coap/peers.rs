//! Clients of libcoap and aiocoap, and the server of libcoap.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::nodes::free_udp_port;
use crate::support::{eventually, has, skipped};

/// The client of libcoap.
pub(crate) struct Coap {
    program: &'static str,
    arguments: Vec<String>,
    seconds: u32,
}

impl Coap {
    pub(crate) fn notls() -> Self {
        Self { program: "coap-client-notls", arguments: Vec::new(), seconds: 30 }
    }

    /// Returns the client with a pre-shared key.
    pub(crate) fn with_key(identity: &str, key: &str) -> Self {
        let arguments = ["-u", identity, "-k", key].map(str::to_owned).to_vec();
        Self { program: "coap-client-openssl", arguments, seconds: 30 }
    }

    /// Limits the time of each request.
    pub(crate) fn within(self, seconds: u32) -> Self {
        Self { seconds, ..self }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(["-v", "3", "-B", &self.seconds.to_string()])
            .args(&self.arguments)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.command(arguments).output().unwrap();
        // Codes of errors are on standard error.
        let mut text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        // The client adds a line break.
        text.pop_if(|octet| *octet == b'\n');
        text
    }

    /// Returns the payload, or the code of an error with its payload.
    pub(crate) fn get(&self, uri: &str) -> String {
        text(&self.get_octets(uri, &[]))
    }

    pub(crate) fn get_octets(&self, uri: &str, arguments: &[&str]) -> Vec<u8> {
        self.run(&[&["-m", "get"], arguments, &[uri]].concat())
    }

    pub(crate) fn send(&self, method: &str, uri: &str, payload: &str) -> String {
        text(&self.run(&["-m", method, "-e", payload, uri]))
    }

    /// Observes a resource for some seconds.
    pub(crate) fn observe(&self, uri: &str, seconds: u32) -> Observer {
        let mut command = self.command(&["-m", "get", "-s", &seconds.to_string(), uri]);
        Observer(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).trim_end_matches('\n').to_owned()
}

/// A client that observes a resource.
pub(crate) struct Observer(Child);

impl Observer {
    /// Waits for the end of the observation. Returns all payloads.
    pub(crate) fn finish(self) -> String {
        text(&self.0.wait_with_output().unwrap().stdout)
    }
}

/// The server of libcoap, which ends with the test. Clients can create resources.
pub(crate) struct CoapServer {
    process: Child,
    port: u16,
    is_secure: bool,
}

impl CoapServer {
    /// Starts a server, which has one more port for DTLS if there is a key. Returns `None` if it is not installed.
    pub(crate) fn start(key: Option<&str>) -> Option<Self> {
        let program = if key.is_some() { "coap-server-openssl" } else { "coap-server-notls" };
        if !has(program) || !has("coap-client-notls") {
            return None;
        }
        let port = free_udp_port();
        let mut command = Command::new(program);
        command.args(["-A", "127.0.0.1", "-p", &port.to_string(), "-d", "8"]);
        command.args(key.iter().flat_map(|key| ["-k", key, "-h", "hint"]));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, port, is_secure: key.is_some() };
        let client = Coap::notls().within(1);
        eventually("libcoap listens", || client.get(&server.uri("")).contains("libcoap"));
        Some(server)
    }

    /// Returns the address for the client of a node.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port + u16::from(self.is_secure))
    }

    /// Returns the URI of a resource without DTLS.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("coap://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for CoapServer {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

/// The client of aiocoap.
pub(crate) struct Aiocoap(PathBuf);

impl Aiocoap {
    pub(crate) fn find() -> Option<Self> {
        let python =
            PathBuf::from(std::env::var_os("VIADUCT_PYTHON").unwrap_or_else(|| "../../.cache/venv/bin/python".into()));
        let program = python.with_file_name("aiocoap-client");
        if !program.is_file() {
            skipped("aiocoap is not installed");
            return None;
        }
        Some(Self(program))
    }

    /// Returns the payload.
    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(&self.0).args(["--quiet"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

/// Answers one HTTP request: with its first line, or 404 if the path contains `missing`.
pub(crate) fn answer_http(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let body = first.trim_end_matches(" HTTP/1.1");
    let status = if body.contains("missing") { "404 Not Found" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
}
