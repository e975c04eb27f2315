//! The clients of the packages mqtt-sn-12 and mqttsn.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::skipped;

/// Returns a free UDP port.
pub(crate) fn free_udp_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn python() -> PathBuf {
    PathBuf::from(std::env::var_os("VIADUCT_PYTHON").unwrap_or_else(|| "../../.cache/venv/bin/python".into()))
}

/// Returns `true` if the package mqtt-sn-12 is installed, and reports it otherwise.
pub(crate) fn has_client() -> bool {
    has_module("mqttsn12")
}

/// Returns `true` if the package mqttsn is installed, and reports it otherwise.
pub(crate) fn has_rsmb_client() -> bool {
    has_module("mqttsn.client")
}

fn has_module(module: &str) -> bool {
    let found = Command::new(python()).args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    let is_found = found.is_ok_and(|status| status.success());
    if !is_found {
        skipped(&format!("no Python with {module} (VIADUCT_PYTHON, or .cache/venv/bin/python)"));
    }
    is_found
}

/// A client that runs its steps.
pub(crate) struct Client {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Client {
    pub(crate) fn start(port: u16, client_id: &str, steps: &[&str]) -> Self {
        Self::with_keep_alive(port, client_id, 30, steps)
    }

    pub(crate) fn with_keep_alive(port: u16, client_id: &str, keep_alive_s: u16, steps: &[&str]) -> Self {
        Self::run("mqttsn_client.py", &[&port.to_string(), client_id, &keep_alive_s.to_string()], steps)
    }

    /// Starts the client of the package mqttsn.
    pub(crate) fn rsmb(port: u16, client_id: &str, steps: &[&str]) -> Self {
        Self::run("mqttsn_rsmb.py", &[&port.to_string(), client_id], steps)
    }

    fn run(script: &str, settings: &[&str], steps: &[&str]) -> Self {
        let mut process = Command::new(python())
            .arg(format!("tests/peers/{script}"))
            .args(settings)
            .args(steps)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines, seen: Vec::new() }
    }

    /// Waits for a line.
    pub(crate) fn wait_for(&mut self, wanted: &str) {
        while self.seen.last().is_none_or(|line| line != wanted) {
            let line =
                self.lines.next().unwrap_or_else(|| panic!("the client ended before `{wanted}`: {:?}", self.seen));
            self.seen.push(line.unwrap());
        }
    }

    /// Ends the step `wait`.
    pub(crate) fn go_on(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits for the end of the client. Returns its lines.
    pub(crate) fn finish(mut self) -> Vec<String> {
        for line in self.lines.by_ref() {
            self.seen.push(line.unwrap());
        }
        self.process.wait().unwrap();
        self.seen
    }
}
