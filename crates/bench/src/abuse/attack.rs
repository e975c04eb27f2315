//! The attacks.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::Options;
use super::target::Target;
use super::wire::{self, ATTACKER, Wire, packet, publish};
use crate::error::BenchError;

/// Connections of a flood: more than the files that the process may open.
const CONNECTIONS: usize = 1100;

/// Time in which a client that takes part in an attack must be served.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);

/// Memory in MiB at which an attack ends.
const MEMORY_MAX: f64 = 2000.0;

/// Retained messages, and filters of one client.
const RETAINED: usize = 10_000;
const FILTERS: usize = 900;

/// Filters of a SUBSCRIBE.
const FILTERS_OF_PACKET: usize = 50;

/// Clients with many wildcards.
const CLIENTS: usize = 20;

/// An attack. The figures in its name are what it attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Nothing, for comparison.
    None,
    /// Clients that leave their sessions behind, then messages for each of them.
    Sessions,
    /// Clients that announce a long first packet, without a login.
    FirstPacket,
    /// Many filters with many retained messages.
    Retained,
    /// Many filters with wildcards, then messages of others.
    Wildcards,
    /// A subscriber that does not read.
    Deaf,
    /// Idle connections.
    IdleMqtt,
    IdleApi,
    IdleEndpoint,
    /// Clients of the API that send a header line from time to time.
    Trickle,
    /// Parallel requests of long answers.
    LongAnswers,
}

impl Attack {
    pub(super) const ALL: [Self; 11] = [
        Self::None,
        Self::Sessions,
        Self::FirstPacket,
        Self::Retained,
        Self::Wildcards,
        Self::Deaf,
        Self::IdleMqtt,
        Self::IdleApi,
        Self::IdleEndpoint,
        Self::Trickle,
        Self::LongAnswers,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sessions => "8000_sessions",
            Self::FirstPacket => "100_connects_of_16_mb",
            Self::Retained => "900_filters_10000_retained",
            Self::Wildcards => "18000_wildcards",
            Self::Deaf => "1_mb_messages_not_read",
            Self::IdleMqtt => "1100_idle_mqtt",
            Self::IdleApi => "1100_idle_api",
            Self::IdleEndpoint => "1100_idle_endpoint",
            Self::Trickle => "1100_slow_headers",
            Self::LongAnswers => "50_parallel_requests",
        }
    }

    /// Returns `true` if a broker alone can be attacked so.
    pub(super) const fn concerns_brokers(self) -> bool {
        !matches!(self, Self::IdleApi | Self::IdleEndpoint | Self::Trickle | Self::LongAnswers)
    }

    /// Runs the attack. Returns a description of its success.
    pub(super) fn run(self, target: &Target, options: &Options) -> Result<String, BenchError> {
        let http = || target.http.ok_or_else(|| BenchError::broken("attack", "the target has no HTTP"));
        match self {
            Self::None => {
                std::thread::sleep(options.hold);
                Ok(String::new())
            }
            Self::Sessions => sessions(target, options),
            Self::FirstPacket => first_packet(target),
            Self::Retained => retained(target),
            Self::Wildcards => wildcards(target),
            Self::Deaf => deaf(target, options),
            Self::IdleMqtt => flood(target.mqtt, options.hold, b""),
            Self::IdleApi => flood(http()?.0, options.hold, b""),
            Self::IdleEndpoint => flood(http()?.1, options.hold, b""),
            Self::Trickle => flood(http()?.0, options.hold, b"X-A: b\r\n"),
            Self::LongAnswers => long_answers(http()?.0, options.hold),
        }
    }
}

/// Connects a client that is served as soon as others have left.
fn connect(mqtt: SocketAddr, client_id: &str) -> Result<Wire, BenchError> {
    let deadline = Instant::now() + CONNECT_TIME_MAX;
    loop {
        match Wire::connect(ATTACKER, mqtt, client_id, 0) {
            Ok((wire, _)) => return Ok(wire),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Clients subscribe and leave. Then forty messages of 10 kB arrive for each session.
fn sessions(target: &Target, options: &Options) -> Result<String, BenchError> {
    let mut kept = 0;
    for number in 0..options.sessions {
        let connected = Wire::connect(ATTACKER, target.mqtt, &format!("absent-{number}"), 3600);
        let subscribed =
            connected.is_ok_and(|(mut wire, code)| code == 0 && wire.subscribe(&["q/#".to_owned()]).is_ok());
        kept += u32::from(subscribed);
    }
    let mut wire = connect(target.mqtt, "talker")?;
    let payload = vec![b'x'; 10_000];
    for number in 1..=40 {
        wire.send(&publish("q/a", 1, false, number, &payload))?;
        wire.read()?;
        if target.memory() > MEMORY_MAX {
            return Ok(format!("{kept} sessions; ended at {MEMORY_MAX} MiB"));
        }
    }
    Ok(format!("{kept} sessions"))
}

/// Clients announce a CONNECT of 16 MB and send 14 MB of it.
fn first_packet(target: &Target) -> Result<String, BenchError> {
    let head = packet(0x10, &vec![0; 16_000_000]).into_iter().take(5).collect::<Vec<_>>();
    let part = vec![0; 1 << 20];
    let mut sent = 0.0;
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut wire = Wire::open(ATTACKER, target.mqtt)?;
        // The target closes the connection, or reads.
        if wire.send(&head).is_ok() {
            let parts = (0..14).take_while(|_| wire.send(&part).is_ok()).count();
            sent += parts as f64;
        }
        held.push(wire);
        if target.memory() > MEMORY_MAX {
            break;
        }
    }
    Ok(format!("{sent:.0} MiB were read"))
}

/// A client subscribes to the same retained messages again and again.
fn retained(target: &Target) -> Result<String, BenchError> {
    let mut wire = connect(target.mqtt, "talker")?;
    for number in 0..RETAINED {
        wire.send(&publish(&format!("r/{number}"), 0, true, 0, b"x"))?;
    }
    // The answer comes after the messages were taken.
    wire.send(&publish("r/last", 1, false, 1, b"x"))?;
    wire.read()?;
    let mut wire = connect(target.mqtt, "greedy")?;
    let filters: Vec<String> = (0..FILTERS).map(|number| format!("none/{number}")).collect();
    let granted = subscribe(&mut wire, &filters)?;
    Ok(format!("{granted} filters"))
}

fn subscribe(wire: &mut Wire, filters: &[String]) -> Result<usize, BenchError> {
    let mut granted = 0;
    for filters in filters.chunks(FILTERS_OF_PACKET) {
        granted += wire.subscribe(filters)?.iter().filter(|code| **code < 0x80).count();
    }
    Ok(granted)
}

/// Clients subscribe to many wildcards, then another one publishes.
fn wildcards(target: &Target) -> Result<String, BenchError> {
    let (mut clients, mut granted) = (Vec::new(), 0);
    for client in 0..CLIENTS {
        let mut wire = connect(target.mqtt, &format!("greedy-{client}"))?;
        let filters: Vec<String> = (0..FILTERS).map(|number| format!("w/{client}/{number}/+/#")).collect();
        granted += subscribe(&mut wire, &filters)?;
        clients.push(wire);
    }
    let mut wire = connect(target.mqtt, "talker")?;
    let (start, messages) = (Instant::now(), 500_u16);
    for number in 1..=messages {
        wire.send(&publish("other", 1, false, number, b"x"))?;
        wire.read()?;
    }
    let each = start.elapsed().as_secs_f64() * 1000.0 / f64::from(messages);
    Ok(format!("{granted} filters; {each:.2} ms for a message of others"))
}

/// A client subscribes and does not read, while another one publishes messages of 1 MB.
fn deaf(target: &Target, options: &Options) -> Result<String, BenchError> {
    let mut listener = connect(target.mqtt, "deaf")?;
    listener.subscribe(&["loud".to_owned()])?;
    let mut wire = connect(target.mqtt, "talker")?;
    let message = publish("loud", 0, false, 0, &vec![b'x'; 1_000_000]);
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < options.hold && target.memory() < MEMORY_MAX {
        if wire.send(&message).is_err() {
            return Ok(format!("{count} messages, then the publisher was disconnected"));
        }
        count += 1;
    }
    let ended = if target.memory() < MEMORY_MAX { String::new() } else { format!("; ended at {MEMORY_MAX} MiB") };
    Ok(format!("{count} messages{ended}"))
}

/// Opens connections, and sends a line on each from time to time.
fn flood(to: SocketAddr, hold: Duration, line: &[u8]) -> Result<String, BenchError> {
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..CONNECTIONS {
        // The queue of the kernel is long; a refused connection is closed later.
        if let Ok(stream) = wire::connect(ATTACKER, to) {
            stream.set_nonblocking(true).map_err(BenchError::system("cannot set up a socket"))?;
            open.push(stream);
        }
    }
    let start = Instant::now();
    if !line.is_empty() {
        open.iter_mut().for_each(|stream| _ = stream.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n"));
    }
    while start.elapsed() < hold {
        std::thread::sleep(Duration::from_millis(500));
        if !line.is_empty() {
            open.iter_mut().for_each(|stream| _ = stream.write(line));
        }
    }
    let is_open = |stream: &mut TcpStream| matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    let kept = open.iter_mut().filter_map(|stream| is_open(stream).then_some(())).count();
    Ok(format!("{kept} of {CONNECTIONS} connections"))
}

/// Clients ask for long answers, one after the other.
fn long_answers(api: SocketAddr, hold: Duration) -> Result<String, BenchError> {
    let start = Instant::now();
    let ask = move || {
        let mut answers = 0_u32;
        while start.elapsed() < hold {
            let Ok(mut stream) = wire::connect(ATTACKER, api) else { continue };
            let request = format!("GET /v1/messages?limit=10000 HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\r\n");
            let mut octets = Vec::new();
            if stream.write_all(request.as_bytes()).is_ok() && stream.read_to_end(&mut octets).is_ok() {
                answers += u32::from(octets.starts_with(b"HTTP/1.1 200"));
            }
        }
        answers
    };
    let threads = (0..50).map(|_| crate::floor::spawn("long-answers", ask)).collect::<Result<Vec<_>, _>>()?;
    let mut answers = 0;
    for thread in threads {
        answers += crate::floor::join("long answers", thread)?;
    }
    Ok(format!("{answers} answers"))
}
