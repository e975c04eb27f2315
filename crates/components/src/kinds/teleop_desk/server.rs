//! The HTTP server of the desk: its page, and the WebSocket of each page.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as Packet, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use viaduct_bus::clock;
use viaduct_node::Stop;
use viaduct_node::listen::{self, Gate, Hosts, HttpListener, is_same_origin};

use super::counters::PageCounters;
use super::mailbox::{Mailbox, Message};
use super::messages::PAGE_OCTETS_MAX;
use super::pages::{FromPage, PageId};
use super::people::{People, Person};
use super::session::{Close, Output, Session};
use super::waiting::{WaitingPages, WaitingPlace};

/// Largest number of HTTP connections at the same time.
pub(super) const CONNECTIONS_MAX: usize = 128;
/// Time after which a connection without traffic in either direction is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Time after which a page that takes no message is lost.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
/// Time that answers in progress may take when the desk stops.
const GRACE: Duration = Duration::from_millis(300);
/// Pause after a failed login.
const FAILED_LOGIN_PAUSE: Duration = Duration::from_millis(500);

/// Name of the protocol.
const SUBPROTOCOL: &str = "viaduct.desk.v1";

/// The page, or nothing if the program was built without it.
const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/desk.html"));
const NOT_BUILT: &[u8] = include_bytes!("not_built.html");

/// Answer to the page of another server.
const OTHER_ORIGIN: &str = "The page of another server may not connect to this desk: Origin and Host differ. A proxy must pass on the \
                            header Host.\n";
/// Answer to a request with the name of another host, if the tokens are not secret.
const OTHER_HOST: &str = "Without a file of tokens, the desk accepts only localhost or a loopback address as its host name. Open it as \
                          http://localhost:PORT, or configure `login: tokens`.\n";

/// The state that all connections share.
pub(super) struct Shared {
    /// Name of the desk.
    pub(super) desk: String,
    pub(super) people: Arc<People>,
    /// Largest age of a command.
    pub(super) command_age_max: Duration,
    pub(super) to_owner: Sender<FromPage>,
    pub(super) counters: PageCounters,
    /// Permits for pages that are logged in.
    logged_in: Arc<Semaphore>,
    waiting: Arc<WaitingPages>,
    next_page: AtomicU64,
    stop: Stop,
}

impl Shared {
    pub(super) fn new(
        desk: String,
        people: Arc<People>,
        command_age_max: Duration,
        pages_max: usize,
        to_owner: Sender<FromPage>,
        counters: PageCounters,
        stop: Stop,
    ) -> Arc<Self> {
        Arc::new(Self {
            desk,
            people,
            command_age_max,
            to_owner,
            counters,
            logged_in: Arc::new(Semaphore::new(pages_max)),
            waiting: Arc::default(),
            next_page: AtomicU64::new(1),
            stop,
        })
    }
}

/// Serves the page and its WebSocket until the component is asked to stop.
pub(super) async fn serve(listener: TcpListener, gate: Gate, shared: Arc<Shared>) {
    let (mut stop, mut ending) = (shared.stop.clone(), shared.stop.clone());
    let listener = HttpListener { listener, hosts: Hosts::any(), gate, idle_max: IDLE_MAX };
    let server = listen::serve(listener, router(shared), async move { stop.asked().await });
    tokio::select! {
        () = server => {}
        () = async {
            ending.asked().await;
            tokio::time::sleep(GRACE).await;
        } => {}
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new().route("/", get(page)).route("/v1/desk", get(upgrade)).with_state(shared)
}

async fn page() -> impl IntoResponse {
    const HEADERS: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (HEADERS, if PAGE.is_empty() { NOT_BUILT } else { PAGE })
}

async fn upgrade(State(shared): State<Arc<Shared>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    let counters = &shared.counters;
    if !is_same_origin(&headers) {
        counters.refused_origin.increment();
        return (StatusCode::FORBIDDEN, OTHER_ORIGIN).into_response();
    }
    if !shared.people.have_secret_tokens() && !is_of_this_machine(&headers) {
        counters.refused_host.increment();
        return (StatusCode::FORBIDDEN, OTHER_HOST).into_response();
    }
    if !offers_protocol(&headers) {
        counters.refused_protocol.increment();
        let text = format!("The desk supports the subprotocol {SUBPROTOCOL} only.\n");
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    counters.connections.increment();
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(PAGE_OCTETS_MAX)
        .max_frame_size(PAGE_OCTETS_MAX)
        .on_upgrade(|socket| connect(socket, shared))
}

/// Returns `true` if the request names this machine. A name that an attacker's name server maps to this machine is refused.
fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<axum::http::uri::Authority>().ok()) else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn offers_protocol(headers: &HeaderMap) -> bool {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    offered.flat_map(|value| value.split(',')).any(|name| name.trim() == SUBPROTOCOL)
}

/// Serves one connection.
async fn connect(socket: WebSocket, shared: Arc<Shared>) {
    let mailbox = Arc::new(Mailbox::new(shared.counters.mailbox.clone()));
    let (sink, stream) = socket.split();
    let waiting = Some(WaitingPages::add(&shared.waiting, mailbox.clone()));
    let writing = write(sink, &mailbox);
    let reader = Reader {
        session: Session::new(clock::now(), &shared.desk, shared.people.clone(), shared.command_age_max),
        mailbox: mailbox.clone(),
        waiting,
        page: None,
        shared: shared.clone(),
    };
    // The end of one direction is the end of the connection; the writer ends after it has sent the close frame.
    tokio::select! {
        () = writing => {}
        () = reader.run(stream) => {}
    }
}

/// Sends the messages of the mailbox until the connection ends.
async fn write(mut sink: SplitSink<WebSocket, Packet>, mailbox: &Mailbox) {
    loop {
        let (packet, last) = match mailbox.next().await {
            Message::Text(text) => (Packet::Text(text.into()), false),
            Message::Frame(frame) => (Packet::Binary(frame), false),
            Message::Close(close) => {
                let frame = CloseFrame { code: close.code(), reason: close.name().into() };
                (Packet::Close(Some(frame)), true)
            }
        };
        let sent = tokio::time::timeout(SEND_TIME_MAX, sink.send(packet)).await;
        if sent.is_err() {
            mailbox.close(Close::TooSlow);
        }
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// The reading half of a connection.
struct Reader {
    session: Session,
    mailbox: Arc<Mailbox>,
    /// Place of a page that is not logged in; `None` after the login.
    waiting: Option<WaitingPlace>,
    page: Option<LoggedIn>,
    shared: Arc<Shared>,
}

/// The entry of a page in the owner's list. Dropping it removes the page.
struct LoggedIn {
    page: PageId,
    to_owner: Sender<FromPage>,
    counters: PageCounters,
    _permit: OwnedSemaphorePermit,
}

impl Drop for LoggedIn {
    fn drop(&mut self) {
        self.counters.left.increment();
        let (page, to_owner) = (self.page, self.to_owner.clone());
        if let Err(unsent) = to_owner.try_send(FromPage::Left { page })
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // The owner's queue is full. Without this message, the page would keep its place.
            let message = unsent.into_inner();
            runtime.spawn(async move { to_owner.send(message).await });
        }
    }
}

impl Reader {
    /// Passes on the messages of the page until the connection ends.
    async fn run(mut self, mut stream: SplitStream<WebSocket>) {
        let mut stop = self.shared.stop.clone();
        while self.pass_on().await {
            let login_due = self.session.poll_timeout();
            tokio::select! {
                packet = stream.next() => match packet {
                    Some(Ok(packet)) => self.receive(&packet),
                    Some(Err(error)) if is_too_long(&error) => self.session.handle_too_long(),
                    Some(Err(_)) | None => return,
                },
                () = sleep_until(login_due) => self.session.handle_timeout(clock::mono()),
                () = stop.asked() => self.session.end(Close::Stops),
            }
        }
        // The writer ends the connection.
        std::future::pending::<()>().await;
    }

    fn receive(&mut self, packet: &Packet) {
        let now = clock::now();
        match packet {
            Packet::Text(text) => self.session.handle_text(now, text.as_str()),
            Packet::Binary(_) => self.session.handle_other(now),
            Packet::Ping(_) | Packet::Pong(_) | Packet::Close(_) => self.session.handle_keep_alive(now),
        }
    }

    /// Passes on the outputs of the session. Returns `false` if it has ended.
    async fn pass_on(&mut self) -> bool {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(text) => self.mailbox.answer(text),
                Output::Pong(text) => self.mailbox.set_pong(text),
                Output::LoginFailed => {
                    self.shared.counters.logins_failed.increment();
                    tokio::time::sleep(FAILED_LOGIN_PAUSE).await;
                }
                Output::LoggedIn(person) => {
                    let Ok(permit) = self.shared.logged_in.clone().try_acquire_owned() else {
                        self.session.end(Close::TooMany);
                        continue;
                    };
                    self.open(person, permit).await;
                }
                Output::Refused(refusal) => self.shared.counters.count_refused(refusal),
                Output::Malformed => self.shared.counters.malformed.increment(),
                Output::Input { seq, sampled, input } => {
                    self.send_to_owner(|page| FromPage::Input { page, seq, sampled, input }).await;
                }
                Output::Control(control) => self.send_to_owner(|page| FromPage::Control { page, control }).await,
                Output::Report(report) => self.send_to_owner(|page| FromPage::Report { page, report }).await,
                Output::Close(close) => {
                    self.mailbox.close(close);
                    return false;
                }
            }
        }
        true
    }

    async fn open(&mut self, person: Arc<Person>, permit: OwnedSemaphorePermit) {
        self.shared.counters.logins.increment();
        self.waiting = None;
        let page = self.shared.next_page.fetch_add(1, Ordering::Relaxed);
        let (to_owner, counters) = (self.shared.to_owner.clone(), self.shared.counters.clone());
        let opened = FromPage::Opened { page, person, mailbox: self.mailbox.clone() };
        self.page = Some(LoggedIn { page, to_owner, counters, _permit: permit });
        // Fails only if the desk stops.
        let _ = self.shared.to_owner.send(opened).await;
    }

    async fn send_to_owner(&self, message: impl FnOnce(PageId) -> FromPage) {
        if let Some(logged_in) = &self.page {
            // Fails only if the desk stops.
            let _ = self.shared.to_owner.send(message(logged_in.page)).await;
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("too long") {
            return true;
        }
        cause = error.source();
    }
    false
}

async fn sleep_until(time: Option<viaduct_units::Mono>) {
    match time {
        Some(time) => tokio::time::sleep(time.since(clock::mono())).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_page_of_another_server_is_refused() {
        for (origin, host, permitted) in [
            (None, "127.0.0.1:8090", true),
            (Some("http://127.0.0.1:8090"), "127.0.0.1:8090", true),
            (Some("https://Desk.example"), "desk.example", true),
            (Some("http://127.0.0.1:8091"), "127.0.0.1:8090", false),
            (Some("https://evil.example"), "desk.example", false),
            (Some("null"), "desk.example", false),
        ] {
            let mut pairs = vec![("host", host)];
            pairs.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(is_same_origin(&headers(&pairs)), permitted, "{origin:?}");
        }
    }

    #[test]
    fn only_localhost_and_loopback_addresses_are_names_of_this_machine() {
        for (host, permitted) in [
            ("127.0.0.1:8090", true),
            ("localhost:8090", true),
            ("[::1]:8090", true),
            ("evil.example:8090", false),
            ("192.168.1.7", false),
        ] {
            assert_eq!(is_of_this_machine(&headers(&[("host", host)])), permitted, "{host}");
        }
        assert!(!is_of_this_machine(&HeaderMap::new()));
    }

    #[test]
    fn the_subprotocol_is_one_of_those_that_the_page_offers() {
        let offered = |value| offers_protocol(&headers(&[("sec-websocket-protocol", value)]));
        assert!(offered("viaduct.desk.v1") && offered("other, viaduct.desk.v1"));
        assert!(!offered("viaduct.desk.v10") && !offers_protocol(&HeaderMap::new()));
    }
}
