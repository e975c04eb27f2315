//! A page of the desk: a WebSocket client that logs in, sends commands and reads states and frames.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::PATIENCE;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Time between two commands.
const COMMAND_PERIOD: Duration = Duration::from_millis(10);

/// What the driver does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Input {
    pub(crate) steering: f64,
    pub(crate) accelerator: f64,
    pub(crate) brake: f64,
}

impl Input {
    pub(crate) const AHEAD: Self = Self { steering: 0.0, accelerator: 0.6, brake: 0.0 };
    pub(crate) const LEFT: Self = Self { steering: 0.5, ..Self::AHEAD };
    pub(crate) const BRAKE: Self = Self { steering: 0.0, accelerator: 0.0, brake: 0.8 };
}

/// A frame of a camera.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) camera: u8,
    pub(crate) number: u32,
    pub(crate) capture_us: u64,
    pub(crate) arrival_us: u64,
    pub(crate) picture: Bytes,
}

/// What the page has received.
#[derive(Default)]
struct Seen {
    messages: Vec<Value>,
    state: Value,
    states: u64,
    frames: Vec<Frame>,
    input: Option<Input>,
    is_closed: bool,
}

pub(crate) struct Page {
    seen: Arc<Mutex<Seen>>,
    outgoing: UnboundedSender<Value>,
}

impl Page {
    /// Connects to a desk and logs in.
    pub(crate) fn open(runtime: &Handle, desk: SocketAddr, token: &str) -> Self {
        let mut request = format!("ws://{desk}/v1/desk").into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "viaduct.desk.v1".parse().unwrap());
        let (socket, _) = runtime.block_on(tokio_tungstenite::connect_async(request)).unwrap();
        let (outgoing, to_send) = unbounded_channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        runtime.spawn(run(socket, to_send, seen.clone()));
        let page = Self { seen, outgoing };
        page.send(json!({ "type": "login", "version": 1, "token": token }));
        page.wait_for("a welcome", |seen| seen.iter().any(|message| message["type"] == "welcome"));
        page
    }

    pub(crate) fn send(&self, message: Value) {
        assert!(self.outgoing.send(message).is_ok(), "the page is closed");
    }

    /// Sends an input in each command from now on, with the dead-man control held.
    pub(crate) fn drive(&self, input: Input) {
        self.seen.lock().unwrap().input = Some(input);
    }

    /// Sends no commands any more.
    pub(crate) fn let_go(&self) {
        self.seen.lock().unwrap().input = None;
    }

    /// Requests control and waits until the page has it.
    pub(crate) fn take_control(&self) {
        let deadline = Instant::now() + PATIENCE;
        // The vehicle refuses until the clocks are synchronised.
        while !self.state()["driving"]["holder"]["you"].as_bool().unwrap_or(false) {
            assert!(Instant::now() < deadline, "no control: {}; {:?}", self.state(), self.errors());
            self.send(json!({ "type": "request_control" }));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until a state fulfils the condition.
    pub(crate) fn wait(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.wait_until(what, |seen| condition(&seen.state));
        self.state()
    }

    /// Waits until the messages fulfil the condition.
    pub(crate) fn wait_for(&self, what: &str, condition: impl Fn(&[Value]) -> bool) {
        self.wait_until(what, |seen| condition(&seen.messages));
    }

    /// Waits until the page has this many frames of a camera, and returns all of it.
    pub(crate) fn frames(&self, camera: u8, count: usize) -> Vec<Frame> {
        let of_camera = |seen: &Seen| -> Vec<Frame> {
            seen.frames.iter().filter(|frame| frame.camera == camera).cloned().collect()
        };
        self.wait_until("frames", |seen| of_camera(seen).len() >= count);
        of_camera(&self.seen.lock().unwrap())
    }

    /// Waits for this many further states.
    pub(crate) fn pass(&self, states: u64) {
        let until = self.seen.lock().unwrap().states + states;
        self.wait_until("further states", |seen| seen.states >= until);
    }

    fn wait_until(&self, what: &str, condition: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            {
                let seen = self.seen.lock().unwrap();
                if condition(&seen) {
                    return;
                }
                let late = Instant::now() >= deadline;
                assert!(!late && !seen.is_closed, "no {what}; state: {}; messages: {:?}", seen.state, seen.messages);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn state(&self) -> Value {
        self.seen.lock().unwrap().state.clone()
    }

    /// Returns the codes of the errors and of the answers that refuse.
    pub(crate) fn errors(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let errors = seen.messages.iter().filter(|message| message["type"] == "error");
        errors.map(|error| error["code"].as_str().unwrap().to_owned()).collect()
    }
}

async fn run(mut socket: Socket, mut to_send: UnboundedReceiver<Value>, seen: Arc<Mutex<Seen>>) {
    let (start, mut seq, mut pings) = (Instant::now(), 0_u32, 0_u32);
    let mut commands = tokio::time::interval(COMMAND_PERIOD);
    commands.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut ping = tokio::time::interval(Duration::from_millis(500));
    loop {
        let page_us = start.elapsed().as_micros() as u64;
        let message = tokio::select! {
            received = socket.next() => match received {
                Some(Ok(message)) => { note(&mut seen.lock().unwrap(), message); continue }
                _ => break,
            },
            message = to_send.recv() => match message {
                Some(message) => message,
                None => { let _ = socket.close(None).await; break }
            },
            _ = ping.tick() => {
                if seen.lock().unwrap().messages.iter().all(|message| message["type"] != "welcome") { continue }
                pings += 1;
                json!({ "type": "ping", "seq": pings, "page_us": page_us })
            }
            _ = commands.tick() => {
                let Some(Input { steering, accelerator, brake }) = seen.lock().unwrap().input else { continue };
                seq += 1;
                json!({
                    "type": "command", "seq": seq, "page_us": page_us, "time_us": null, "steering": steering,
                    "accelerator": accelerator, "brake": brake, "gear": "D", "dead_man": true, "emergency": false,
                    "input": "gamepad",
                })
            }
        };
        if socket.send(Message::text(message.to_string())).await.is_err() {
            break;
        }
    }
    seen.lock().unwrap().is_closed = true;
}

fn note(seen: &mut Seen, message: Message) {
    match message {
        Message::Text(text) => {
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["type"] == "state" {
                seen.states += 1;
                seen.state = value;
            } else {
                seen.messages.push(value);
            }
        }
        Message::Binary(octets) => seen.frames.push(frame(&octets)),
        _ => {}
    }
}

/// Parses a camera frame (docs/reference/teleop-desk-websocket.md, "Camera frame").
fn frame(octets: &[u8]) -> Frame {
    assert_eq!(octets[..2], [1, 1], "type and version");
    let number = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
    let time = |at: usize| u64::from_be_bytes(octets[at..at + 8].try_into().unwrap());
    let header = usize::from(u16::from_be_bytes([octets[6], octets[7]]));
    Frame {
        camera: octets[2],
        number: number(8),
        capture_us: time(16),
        arrival_us: time(24),
        picture: Bytes::copy_from_slice(&octets[header..]),
    }
}
