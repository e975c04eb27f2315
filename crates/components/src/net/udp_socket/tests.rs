//! Tests over sockets of the loopback interface, which delivers a datagram before the sending call returns.

use std::time::Duration;

use super::*;

const SETTINGS: UdpSettings =
    UdpSettings { receive_buffer_octets: 4 << 20, datagram_octets_max: 9000, queue_max: 1000 };

fn socket() -> (UdpSocket, SocketAddr) {
    socket_with(&SETTINGS)
}

fn socket_with(settings: &UdpSettings) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let address = socket.local_address().unwrap();
    (socket, address)
}

fn datagram(number: usize, octets: usize) -> Bytes {
    (0..octets).map(|index| (number * 31 + index) as u8).collect()
}

/// Receives until this many datagrams are in the batch.
async fn receive(socket: &mut UdpSocket, count: usize) -> Vec<Received> {
    let mut batch = Vec::new();
    while batch.len() < count {
        socket.receive(&mut batch).await.unwrap();
    }
    batch
}

#[tokio::test]
async fn datagrams_of_any_length_arrive_whole_and_in_order() {
    let ((mut from, from_address), (mut to, to_address)) = (socket(), socket());
    // Equal ones, which pass the kernel as one piece, shorter and longer ones, and empty ones.
    let lengths = [1400, 1400, 1400, 700, 1400, 0, 1400, 9000, 8999, 9000, 1, 1, 0, 0];
    let sent: Vec<Bytes> = (0..700).map(|number| datagram(number, lengths[number % lengths.len()])).collect();
    let mut arrived = Vec::new();
    for chunk in sent.chunks(100) {
        chunk.iter().for_each(|datagram| from.push(to_address, datagram.clone()));
        from.flush_all().await.unwrap();
        arrived.extend(receive(&mut to, chunk.len()).await);
    }
    assert!(arrived.iter().all(|received| received.from == from_address));
    assert!(arrived.iter().map(|received| &received.octets).eq(&sent));
    let octets = sent.iter().map(|datagram| datagram.len() as u64).sum::<u64>();
    assert_eq!((from.counters().sent, from.counters().sent_octets), (700, octets));
    assert_eq!((to.counters().received, to.counters().received_octets), (700, octets));
    assert!(from.segments, "the loopback interface segments");
}

#[tokio::test]
async fn datagrams_to_several_addresses_reach_their_own() {
    let ((mut from, _), (mut one, to_one), (mut two, to_two)) = (socket(), socket(), socket());
    for number in 0..100 {
        from.push(if number % 3 == 0 { to_one } else { to_two }, datagram(number, 100));
    }
    from.flush_all().await.unwrap();
    let (ones, twos) = (receive(&mut one, 34).await, receive(&mut two, 66).await);
    let expected = |of_one: bool| (0..100).filter(move |number| (number % 3 == 0) == of_one);
    assert!(ones.iter().map(|received| received.octets.clone()).eq(expected(true).map(|number| datagram(number, 100))));
    assert!(
        twos.iter().map(|received| received.octets.clone()).eq(expected(false).map(|number| datagram(number, 100)))
    );
}

#[tokio::test]
async fn a_datagram_has_the_time_of_the_kernel_and_not_of_the_wake_up() {
    let ((mut from, _), (mut to, to_address)) = (socket(), socket());
    // The first timestamps of a system may be missing, because the kernel enables them later.
    for _ in 0..2 {
        from.push(to_address, datagram(1, 10));
        from.flush_all().await.unwrap();
        std::thread::sleep(Duration::from_millis(60));
        let received = receive(&mut to, 1).await.remove(0);
        let late = clock::mono().since(received.at);
        if late >= Duration::from_millis(50) {
            return;
        }
    }
    panic!("datagrams have the time of the wake-up");
}

#[test]
fn the_time_of_arrival_is_bounded_if_the_clock_is_set() {
    let at = |ms| Mono(Duration::from_millis(ms));
    let now = Now { mono: at(1000), tai: Tai::from_nanos(50_000_000_000) };
    let stamp = |ms: i64| Some(Tai::from_nanos(50_000_000_000 + ms * 1_000_000));
    for (stamp, expected) in [
        (None, 1000),
        (stamp(0), 1000),
        (stamp(-20), 980),
        (stamp(-100), 900),
        // The clock was set forward by an hour, or back.
        (stamp(-3_600_000), 900),
        (stamp(3_600_000), 1000),
        (Some(Tai::from_nanos(i64::MIN)), 900),
    ] {
        assert_eq!(arrival(now, stamp, at(900)), at(expected), "{stamp:?}");
    }
}

#[tokio::test]
async fn a_datagram_that_cannot_be_sent_does_not_affect_the_others() {
    let ((mut from, _), (mut to, to_address)) = (socket(), socket());
    let another_family: SocketAddr = "[::1]:9".parse().unwrap();
    let broadcast: SocketAddr = "255.255.255.255:9".parse().unwrap();
    for number in 0..90 {
        match number % 9 {
            2 => from.push(to_address, datagram(number, DATAGRAM_OCTETS_MAX + 1)),
            5 => from.push(another_family, datagram(number, 50)),
            // Without permission to send to all.
            7 => from.push(broadcast, datagram(number, 50)),
            _ => from.push(to_address, datagram(number, 50)),
        }
    }
    from.flush_all().await.unwrap();
    let arrived = receive(&mut to, 60).await;
    let expected = (0..90).filter(|number| ![2, 5, 7].contains(&(number % 9)));
    assert!(arrived.iter().map(|received| received.octets.clone()).eq(expected.map(|number| datagram(number, 50))));
    let counters = from.counters();
    assert_eq!(
        (counters.sent, counters.unsent(UnsentReason::TooLong), counters.unsent(UnsentReason::Failed)),
        (60, 10, 20)
    );
}

#[tokio::test]
async fn a_refused_datagram_is_reported_and_the_next_ones_are_sent() {
    let closed = socket().1;
    let connected = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    connected.connect(&closed.into()).unwrap();
    let mut from = UdpSocket::new(connected, &SETTINGS).unwrap();
    for number in 0..10 {
        from.push(closed, datagram(number, number + 1));
        from.flush_all().await.unwrap();
    }
    let mut batch = Vec::new();
    assert_eq!(from.try_receive(&mut batch).unwrap(), 0);
    let counters = from.counters();
    assert_eq!((counters.sent, counters.unsent(UnsentReason::Refused)), (10, 0));
    assert!(counters.reported_errors > 0);
}

#[tokio::test]
async fn a_datagram_that_is_too_long_is_counted_and_dropped() {
    let ((mut from, _), (mut to, to_address)) = (socket(), socket());
    for octets in [9001, 20_000, 9000] {
        from.push(to_address, datagram(1, octets));
    }
    from.flush_all().await.unwrap();
    let arrived = receive(&mut to, 1).await;
    assert_eq!(arrived[0].octets.len(), 9000);
    assert_eq!((to.counters().received, to.counters().received_too_long), (1, 2));
}

#[tokio::test]
async fn a_full_queue_drops_the_oldest_and_counts_it() {
    let ((mut from, _), (mut to, to_address)) = (socket_with(&UdpSettings { queue_max: 4, ..SETTINGS }), socket());
    (0..10).for_each(|number| from.push(to_address, datagram(number, 8)));
    assert_eq!(from.waiting(), 4);
    from.flush_all().await.unwrap();
    let arrived = receive(&mut to, 4).await;
    assert!(arrived.iter().map(|received| received.octets.clone()).eq((6..10).map(|number| datagram(number, 8))));
    assert_eq!((from.counters().sent, from.counters().unsent(UnsentReason::QueueFull)), (4, 6));
}

#[tokio::test]
async fn drops_of_the_kernel_are_counted() {
    let (mut from, _) = socket();
    let (mut to, to_address) = socket_with(&UdpSettings { receive_buffer_octets: 8192, ..SETTINGS });
    (0..1000).for_each(|number| from.push(to_address, datagram(number, 1000)));
    from.flush_all().await.unwrap();
    let mut batch = Vec::new();
    while to.try_receive(&mut batch).unwrap() > 0 {}
    to.count_kernel_drops();
    assert!(to.counters().kernel_drops > 0);
    assert_eq!(to.counters().received + to.counters().kernel_drops, 1000);
    let counted = to.counters().kernel_drops;
    to.count_kernel_drops();
    assert_eq!(to.counters().kernel_drops, counted);
}

#[tokio::test]
async fn a_wait_that_is_cancelled_loses_nothing() {
    let ((mut from, _), (mut to, to_address)) = (socket(), socket());
    let mut batch = Vec::new();
    let waited = tokio::time::timeout(Duration::from_millis(1), to.receive(&mut batch)).await;
    assert!(waited.is_err() && batch.is_empty());
    from.push(to_address, datagram(7, 70));
    from.flush_all().await.unwrap();
    assert_eq!(receive(&mut to, 1).await[0].octets, datagram(7, 70));
}

#[test]
fn only_equal_datagrams_to_one_address_pass_the_kernel_as_one_piece() {
    let (one, two): (SocketAddr, SocketAddr) = ("192.0.2.1:1".parse().unwrap(), "192.0.2.2:1".parse().unwrap());
    let lengths = |list: &[(SocketAddr, usize)], segments| -> Vec<usize> {
        let datagrams: Vec<_> = list.iter().map(|(to, octets)| (*to, datagram(0, *octets))).collect();
        runs(&datagrams, segments).iter().map(|run| run.datagrams.len()).collect()
    };
    assert_eq!(lengths(&[(one, 10), (one, 10), (one, 5), (one, 5)], true), [3, 1]);
    assert_eq!(lengths(&[(one, 10), (one, 11), (one, 11)], true), [1, 2]);
    assert_eq!(lengths(&[(one, 10), (two, 10), (two, 0)], true), [1, 1, 1]);
    assert_eq!(lengths(&[(one, 0), (one, 0)], true), [1, 1]);
    assert_eq!(lengths(&[(one, 10), (one, 10)], false), [1, 1]);
    assert_eq!(lengths(&vec![(one, 1400); 100], true), [42, 22]);
    assert_eq!(lengths(&vec![(one, 1); 100], true), [44, 20]);
}
