//! A page of the driver's desk: it takes control, sends commands, and reads the marks in the pictures.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use viaduct_bus::clock;
use viaduct_components::kinds::camera::Mark;

use super::arrivals::Arrivals;
use super::viaduct::age_ns;
use crate::floor::nanos;
use crate::sys;

/// Commands per second of the desk; the page sends as many.
const COMMAND_PERIOD: Duration = Duration::from_millis(20);
/// Time between two requests for control.
const REQUEST_PERIOD: Duration = Duration::from_secs(1);
/// Pause between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Octets of a frame's header, at least.
const HEADER_OCTETS: usize = 48;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The tasks of a page.
pub(super) struct Page(JoinHandle<()>);

impl Page {
    /// Opens the page of the desk on this port, and opens it again if the connection ends. `marks` decodes the pictures.
    pub(super) fn open(port: u16, marks: bool, arrivals: Arrivals, runtime: &Runtime) -> Self {
        Self(runtime.spawn(async move {
            loop {
                // The desk may still be starting.
                let _ = visit(port, marks, &arrivals).await;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }))
    }

    pub(super) fn close(self) {
        self.0.abort();
    }
}

async fn visit(port: u16, marks: bool, arrivals: &Arrivals) -> Result<(), tungstenite::Error> {
    let mut request = format!("ws://127.0.0.1:{port}/v1/desk").into_client_request()?;
    request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static("viaduct.desk.v1"));
    let (socket, _) = connect_async(request).await?;
    let (mut sink, stream) = socket.split();
    send(&mut sink, &json!({ "type": "login", "version": 1, "token": "" })).await?;
    tokio::select! {
        read = listen(stream, marks, arrivals) => read,
        sent = drive(sink) => sent,
    }
}

/// Requests control and sends commands with a released dead-man control: the vehicle accepts them and stands.
async fn drive(mut sink: SplitSink<Socket, Message>) -> Result<(), tungstenite::Error> {
    let mut ticks = tokio::time::interval(COMMAND_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let requests = u32::try_from(REQUEST_PERIOD.as_millis() / COMMAND_PERIOD.as_millis()).unwrap_or(1);
    for seq in 0_u32.. {
        ticks.tick().await;
        if seq % requests == 0 {
            send(&mut sink, &json!({ "type": "request_control" })).await?;
            send(&mut sink, &json!({ "type": "ping", "seq": seq, "page_us": now_us() })).await?;
        }
        let command = json!({
            "type": "command", "seq": seq, "page_us": now_us(), "time_us": now_us(), "steering": 0.0, "accelerator": 0.0,
            "brake": 0.0, "gear": "P", "dead_man": false, "emergency": false, "input": "keyboard",
        });
        send(&mut sink, &command).await?;
    }
    Ok(())
}

async fn send(sink: &mut SplitSink<Socket, Message>, message: &Value) -> Result<(), tungstenite::Error> {
    sink.send(Message::text(message.to_string())).await
}

async fn listen(mut stream: SplitStream<Socket>, marks: bool, arrivals: &Arrivals) -> Result<(), tungstenite::Error> {
    let mut latest = None;
    while let Some(message) = stream.next().await {
        match message? {
            Message::Text(text) => {
                let Some((seq, age_ns)) = serde_json::from_str(&text).ok().as_ref().and_then(command_age) else {
                    continue;
                };
                if latest != Some(seq) {
                    latest = Some(seq);
                    arrivals.update(|arrived| arrived.command_ages.push((nanos(sys::monotonic()), age_ns)));
                }
            }
            Message::Binary(frame) if marks => read_mark(&frame, arrivals),
            _ => {}
        }
    }
    Ok(())
}

/// Returns number and age of the newest command that the vehicle has accepted, from a message `state`.
fn command_age(message: &Value) -> Option<(u64, u64)> {
    let command = message.get("command").filter(|_| message["type"] == "state")?;
    let age_ms = command["age_ms"].as_f64().filter(|age| (0.0..1e9).contains(age))?;
    Some((command["seq"].as_u64()?, (age_ms * 1e6) as u64))
}

fn read_mark(frame: &[u8], arrivals: &Arrivals) {
    let Some(header) = frame.get(..HEADER_OCTETS) else { return };
    let length = usize::from(u16::from_be_bytes([header[6], header[7]]));
    let Some(picture) = frame.get(length..) else { return };
    let mark = Mark::read_jpeg(picture);
    let now = clock::tai();
    arrivals.update(|arrived| match mark {
        Ok(mark) => arrived.glass.push((mark.camera, mark.frame, age_ns(now, mark.unwrapped_time_us(now_us())))),
        Err(_) => arrived.marks_failed += 1,
    });
}

/// Returns the time in microseconds since 1970-01-01T00:00:00 TAI, which is the desk's time, too.
fn now_us() -> u64 {
    u64::try_from(clock::tai().nanos() / 1000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_command_is_read_from_the_state() {
        let state = json!({ "type": "state", "command": { "age_ms": 1.5, "seq": 7, "refused": 0 } });
        assert_eq!(command_age(&state), Some((7, 1_500_000)));
        let unknown = json!({ "type": "state", "command": { "age_ms": null, "seq": null, "refused": 0 } });
        assert_eq!(command_age(&unknown), None);
        assert_eq!(command_age(&json!({ "type": "event", "command": { "age_ms": 1.5, "seq": 7 } })), None);
    }
}
