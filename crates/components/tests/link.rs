//! The emulated link with real packets between two network namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

#[allow(dead_code, reason = "only the report of a skipped test is used")]
mod network;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use network::skipped;
use viaduct_components::link::{
    DirectionReport, End, LinkError, LinkReport, Tunnel, TunnelSettings, namespace_path, remove_namespaces,
};
use viaduct_netem::config::LinkPatch;
use viaduct_netem::link::{Bursts, Delay, Loss, Outage, Outages};
use viaduct_netem::{LinksConfig, Probability, Profile};

/// Time after which a packet that has not arrived does not arrive.
const SILENCE: Duration = Duration::from_millis(400);

/// Longest wait for the link.
const PATIENCE: Duration = Duration::from_secs(20);

/// Creates a link, or reports why it cannot be created.
fn link(settings: &TunnelSettings) -> Option<Tunnel> {
    match Tunnel::up(settings) {
        Err(error @ (LinkError::NotPermitted | LinkError::NoTun)) => {
            skipped(&error.to_string());
            None
        }
        up => Some(up.unwrap()),
    }
}

fn profile(profile: Profile) -> TunnelSettings {
    with(LinksConfig { profile: Some(profile), ..LinksConfig::default() })
}

fn with(links: LinksConfig) -> TunnelSettings {
    TunnelSettings { links, ..TunnelSettings::default() }
}

fn udp_socket(link: &Tunnel, end: End) -> UdpSocket {
    let socket = link.within(end, || UdpSocket::bind((link.address(end), 7000)).unwrap()).unwrap();
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    socket
}

/// Sockets at both ends, connected to each other.
fn udp_pair(link: &Tunnel) -> (UdpSocket, UdpSocket) {
    let (a, b) = (udp_socket(link, End::A), udp_socket(link, End::B));
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (a, b)
}

/// Sends numbered datagrams from one socket to the other, in bursts that fit in the buffer of a socket. Returns the numbers that
/// arrive.
fn exchange(link: &Tunnel, from: &UdpSocket, to: &UdpSocket, count: u32) -> Vec<u32> {
    let arrived = AtomicU64::new(0);
    // Packets that have entered the link and have not arrived, and those that have left it and were not yet received.
    let totals = || {
        let LinkReport { a_to_b, b_to_a } = link.counters();
        (a_to_b.received + b_to_a.received, a_to_b.held + b_to_a.held, a_to_b.delivered + b_to_a.delivered)
    };
    let (entered, _, delivered) = totals();
    let is_idle = |sent: u32| {
        let (now_entered, held, now_delivered) = totals();
        let all = (now_entered - entered, held, now_delivered - delivered);
        all == (u64::from(sent), 0, arrived.load(Ordering::Relaxed))
    };
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut datagram = [0; 2000];
            let mut numbers = Vec::new();
            while let Ok(octets) = to.recv(&mut datagram) {
                assert_eq!(octets, 1400);
                numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
                arrived.fetch_add(1, Ordering::Relaxed);
            }
            numbers
        });
        let mut datagram = [0; 1400];
        for number in 0..count {
            datagram[..4].copy_from_slice(&number.to_be_bytes());
            from.send(&datagram).unwrap();
            let began = Instant::now();
            while number % 32 == 31 && !is_idle(number + 1) {
                assert!(began.elapsed() < PATIENCE, "{:?}", link.counters());
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        receiver.join().unwrap()
    })
}

/// Checks that no packet is missing from the counters.
fn balance(direction: &DirectionReport) {
    let dropped: u64 = direction.dropped.values().sum();
    let outside = direction.dropped("interface_queue");
    assert_eq!(direction.received + direction.duplicated, direction.delivered + direction.held + dropped - outside);
}

#[test]
fn datagrams_are_lost_at_the_rate_of_the_profile_and_counted() {
    let Some(link) = link(&profile(Profile::Lossy5)) else { return };
    let (a, b) = udp_pair(&link);
    let arrived = exchange(&link, &a, &b, 20_000);
    assert!(arrived.is_sorted(), "the link keeps the order");
    let direction = link.counters().a_to_b;
    balance(&direction);
    assert_eq!((direction.received, direction.held), (20_000, 0), "{direction:?}");
    assert_eq!(arrived.len() as u64, direction.delivered);
    // Five deviations of a binomial distribution.
    assert!(direction.dropped("lost").abs_diff(1000) < 5 * 31, "{direction:?}");
    assert_eq!(direction.lateness.packets, direction.delivered);
    // Nothing has been sent in the other direction, not even by the kernel.
    assert_eq!(link.counters().b_to_a.received, 0);
}

#[test]
fn the_same_seed_loses_the_same_datagrams() {
    let settings = |seed| TunnelSettings { seed, ..profile(Profile::Lossy5) };
    let run = |seed| -> Option<Vec<u32>> {
        let link = link(&settings(seed))?;
        let (a, b) = udp_pair(&link);
        Some(exchange(&link, &a, &b, 2000))
    };
    let (Some(first), Some(again), Some(other)) = (run(7), run(7), run(8)) else { return };
    assert!(first == again && first != other, "{} {} {}", first.len(), again.len(), other.len());
}

#[test]
fn a_round_trip_takes_at_least_both_delays() {
    let delay = Delay { base: Duration::from_millis(10), ..Delay::default() };
    let both = LinkPatch { delay: Some(delay), ..LinkPatch::default() };
    let Some(link) = link(&with(LinksConfig { both, ..LinksConfig::default() })) else { return };
    let (a, b) = udp_pair(&link);
    let mut datagram = [0; 8];
    for _ in 0..20 {
        let sent = Instant::now();
        a.send(b"there").unwrap();
        b.recv(&mut datagram).unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(10));
        b.send(b"back").unwrap();
        a.recv(&mut datagram).unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn settings_change_while_the_link_is_up() {
    let Some(link) = link(&profile(Profile::Ethernet)) else { return };
    let (a, b) = udp_pair(&link);
    assert_eq!(exchange(&link, &a, &b, 100).len(), 100);

    let all = LinkPatch { loss: Some(Loss::Independent(Probability::ONE)), ..LinkPatch::default() };
    link.set(End::A, &all).unwrap();
    assert_eq!((exchange(&link, &a, &b, 100).len(), exchange(&link, &b, &a, 100).len()), (0, 100));
    let none = LinkPatch { loss: Some(Loss::None), ..LinkPatch::default() };
    link.set(End::A, &none).unwrap();
    assert_eq!(exchange(&link, &a, &b, 100).len(), 100);

    let outage = Outages::List(vec![Outage { start: Duration::ZERO, duration: Duration::from_millis(300) }]);
    link.set(End::A, &LinkPatch { outages: Some(outage), ..LinkPatch::default() }).unwrap();
    let began = Instant::now();
    while exchange(&link, &a, &b, 1).is_empty() {}
    assert!(began.elapsed() >= Duration::from_millis(300));

    let impossible = Loss::Bursts(Bursts { loss: Probability::ONE, packets: 0.5 });
    let refused = link.set(End::A, &LinkPatch { loss: Some(impossible), ..LinkPatch::default() }).unwrap_err();
    assert!(refused.to_string().starts_with("a_to_b.loss: "), "{refused}");
    let report = link.counters();
    assert_eq!(report.a_to_b.settings.loss, Loss::None);
    assert!(report.a_to_b.dropped("lost") == 100 && report.a_to_b.dropped("outage") > 0, "{report:?}");
    balance(&report.a_to_b);
    balance(&report.b_to_a);
}

#[test]
fn tcp_works_over_a_lossy_link_and_its_segments_are_not_merged() {
    let Some(link) = link(&profile(Profile::Lossy03)) else { return };
    let address = SocketAddr::from((link.address(End::B), 7000));
    let listener = link.within(End::B, || TcpListener::bind(address).unwrap()).unwrap();
    let mut sender = link.within(End::A, || TcpStream::connect(address).unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let sent: Vec<u8> = (0..2_000_000_u32).map(|index| (index % 251) as u8).collect();
    let octets = sent.clone();
    let sending = std::thread::spawn(move || sender.write_all(&octets));
    let mut received = Vec::new();
    receiver.read_to_end(&mut received).unwrap();
    sending.join().unwrap().unwrap();
    assert!(received == sent, "the octets arrive unchanged");
    let report = link.counters();
    assert_eq!((report.a_to_b.dropped("longer_than_mtu"), report.b_to_a.dropped("longer_than_mtu")), (0, 0));
    assert!(report.a_to_b.received > 2_000_000 / 1500, "{report:?}");
}

#[test]
fn commands_run_in_the_namespace_of_their_end() {
    let Some(link) = link(&TunnelSettings::default()) else { return };
    for end in [End::A, End::B] {
        let output = link.command(end, "ip").args(["-4", "-o", "address"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("127.0.0.1/8") && text.contains(&format!("{}/30", link.address(end))), "{text}");
    }
    let status = link.command(End::A, "sh").args(["-c", "exit 7"]).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(7));
    let host = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let inside = link.within(End::A, || std::fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    assert_ne!(host, inside);
}

#[test]
fn multicast_reaches_the_other_end() {
    let Some(link) = link(&TunnelSettings::default()) else { return };
    let group = Ipv4Addr::new(239, 255, 0, 1);
    let (a, b) = (udp_socket(&link, End::A), link.within(End::B, || UdpSocket::bind((group, 7400)).unwrap()).unwrap());
    b.set_read_timeout(Some(SILENCE)).unwrap();
    link.within(End::B, || b.join_multicast_v4(&group, &link.address(End::B)).unwrap()).unwrap();
    a.send_to(b"discovery", (group, 7400)).unwrap();
    let mut datagram = [0; 16];
    assert_eq!(b.recv_from(&mut datagram).unwrap(), (9, a.local_addr().unwrap()));
}

#[test]
fn nothing_is_left_of_a_link() {
    let name = format!("test-{}", std::process::id());
    let settings = TunnelSettings { name: Some(name.clone()), ..TunnelSettings::default() };
    let Some(link) = link(&settings) else { return };
    let paths = [End::A, End::B].map(|end| namespace_path(&name, end));
    let listed =
        || String::from_utf8(std::process::Command::new("ip").args(["netns"]).output().unwrap().stdout).unwrap();
    assert!(paths.iter().all(|path| path.exists()) && listed().contains(&format!("{name}-a")));
    let used = Tunnel::up(&settings).err().unwrap();
    assert!(matches!(used, LinkError::InUse { .. }), "{used}");
    drop(link);
    assert!(paths.iter().all(|path| !path.exists()) && !listed().contains(&name));
    assert!(!remove_namespaces(&name).unwrap());
}
