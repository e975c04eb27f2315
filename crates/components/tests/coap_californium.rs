//! `coap_server` and `coap_client` against the client and the server of Eclipse Californium.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "coap/californium.rs"]
mod californium;
#[path = "coap/nodes.rs"]
mod nodes;
#[path = "mqtt/support.rs"]
mod support;

use bytes::Bytes;
use californium::{Client, Server};
use nodes::{client, log_server, psk_setting};
use support::{PATIENCE, TestNode, count, eventually};
use viaduct_bus::{Bus, MessageFormat, Qos, Recv, TypeInfo, UntypedSubscriber};
use viaduct_messages::foxglove::Log;

/// Identity and key for DTLS, and the same as a line of a file.
const KEY: (&str, &str) = ("robot-1", "0123456789abcdef");
const KEY_LINE: &str = "robot-1:\"0123456789abcdef\"\n";
/// Content formats.
const JSON: u16 = 50;
const OCTETS: u16 = 42;
/// Octets that are transferred in blocks, and their number of blocks of 1024 octets.
const LARGE_OCTETS: u32 = 50_000;
const LARGE_BLOCKS: u64 = 48;

fn large(first: u8) -> Vec<u8> {
    (0..LARGE_OCTETS).map(|number| first + (number % 23) as u8).collect()
}

fn blob() -> TypeInfo {
    TypeInfo::foreign(MessageFormat::Opaque, "blob", Bytes::new())
}

/// Checks a payload without printing it.
fn is_large(payload: &[u8], first: u8) -> bool {
    payload == large(first)
}

fn next_blob(subscriber: &UntypedSubscriber) -> Bytes {
    match subscriber.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => sample.encoded().to_bytes(),
        _ => panic!("nothing published"),
    }
}

/// Publishes a log and waits until the server has it.
fn publish(node: &TestNode, client: &mut Client, uri: &str, message: &str) {
    node.log("log/n", message);
    let expected = format!("\"message\":\"{message}\"");
    eventually("the sample arrives", || client.get("con", uri).text().contains(&expected));
}

#[test]
fn californium_reads_the_latest_sample_of_a_topic() {
    let Some(mut client) = Client::start(None) else { return };
    let (node, address) = log_server("");
    let uri = |path: &str| format!("coap://{address}/{path}");
    assert!(client.ping(&uri("")));
    let absent = client.get("con", &uri("log"));
    assert_eq!((absent.head.as_str(), absent.text()), ("4.04 ACK -1", "there is no sample yet"));
    publish(&node, &mut client, &uri("log"), "first");
    publish(&node, &mut client, &uri("log"), "second");
    assert_eq!(client.get("con", &uri("log")).head, "2.05 ACK 50");
    let hinted = client.get("non", &uri("log"));
    assert_eq!(hinted.head, "2.05 NON 50");
    assert!(hinted.text().contains("\"message\":\"second\""));
    let raw = client.get("con", &uri("raw"));
    assert_eq!(raw.head, "2.05 ACK 42");
    // Field 3 of foxglove.Log.
    assert!(raw.payload.windows(8).any(|octets| octets == b"\x1a\x06second"));
    assert_eq!(client.get("con", &uri("nothing")).head, "4.04 ACK -1");
    assert_eq!(client.get("non", &uri("nothing")).head, "4.04 NON -1");
    assert_eq!(client.get("con", &uri("command")).head, "4.05 ACK -1");
    assert!(node.stop());
}

#[test]
fn californium_discovers_the_resources() {
    let Some(mut client) = Client::start(None) else { return };
    let (node, address) = log_server("");
    node.any("any/cloud", &blob(), Bytes::from_static(b"cloud"));
    let links = ["/any/any/cloud core.s 42 obs", "/blob core.p 42 -", "/command core.p 50 -", "/log core.s 50 obs"];
    let mut found = Vec::new();
    eventually("all resources are listed", || {
        found = client.discover(&format!("coap://{address}"));
        found.len() == links.len() + 1
    });
    for link in links {
        assert!(found.contains(&format!("link {link}")), "{link}: {found:?}");
    }
    assert!(node.stop());
}

#[test]
fn californium_writes_topics() {
    let Some(mut client) = Client::start(None) else { return };
    let (node, address) = log_server("");
    let uri = |path: &str| format!("coap://{address}/{path}");
    let logs = node.bus().subscribe::<Log>("commands", Qos::keep_last(16), "test").unwrap();
    for (method, kind, head) in [("post", "con", "2.04 ACK -1"), ("put", "non", "2.04 NON -1")] {
        let payload = format!("{{\"message\":\"{method}\"}}");
        assert_eq!(client.send(method, kind, &uri("command"), JSON, payload.as_bytes()).head, head);
        let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("nothing published") };
        assert_eq!(sample.message, method);
    }
    let refused = client.send("post", "con", &uri("command"), JSON, br#"{"massage":"go"}"#);
    assert_eq!(refused.head, "4.00 ACK -1");
    assert!(refused.text().contains("massage"), "{refused:?}");
    assert_eq!(client.send("post", "con", &uri("command"), OCTETS, b"{}").head, "4.15 ACK -1");
    assert_eq!(client.send("put", "con", &uri("log"), JSON, b"{}").head, "4.05 ACK -1");
    assert_eq!(client.send("put", "con", &uri("nothing"), JSON, b"{}").head, "4.04 ACK -1");
    assert_eq!(count(&node.bus(), "server", "published"), 2);
    assert!(node.stop());
}

#[test]
fn californium_observes_a_topic() {
    for (more, head) in
        [("", "notification 2.05 CON 50"), ("      confirm_notifications: false\n", "notification 2.05 NON 50")]
    {
        let Some(mut client) = Client::start(None) else { return };
        let (node, address) = log_server(more);
        let uri = format!("coap://{address}/log");
        publish(&node, &mut client, &uri, "first");
        client.observe(&uri);
        let first = client.next();
        assert_eq!(first.head, "notification 2.05 ACK 50");
        assert!(first.text().contains("\"message\":\"first\""));
        for number in 1..=10 {
            node.log("log/n", &number.to_string());
            let notification = client.next();
            assert_eq!(notification.head, head);
            assert!(notification.text().contains(&format!("\"message\":\"{number}\"")), "{number}: {notification:?}");
        }
        assert_eq!(count(&node.bus(), "server", "observations"), 1);
        client.cancel();
        eventually("the observation has ended", || count(&node.bus(), "server", "observations_ended") == 1);
        assert!(node.stop());
    }
}

#[test]
fn californium_observes_a_large_representation() {
    let Some(mut client) = Client::start(None) else { return };
    let (node, address) = log_server("");
    let uri = format!("coap://{address}/any/any/cloud");
    node.any("any/cloud", &blob(), large(b'A').into());
    eventually("the sample arrives", || client.get("con", &uri).head.starts_with("2.05"));
    client.observe(&uri);
    assert!(is_large(&client.next().payload, b'A'));
    for first in [b'B', b'C'] {
        node.any("any/cloud", &blob(), large(first).into());
        let notification = client.next();
        assert!(notification.head.starts_with("notification 2.05"), "{}", notification.head);
        assert!(is_large(&notification.payload, first));
    }
    assert!(node.stop());
}

#[test]
fn large_bodies_of_californium_are_transferred_in_blocks() {
    let Some(mut client) = Client::start(None) else { return };
    let (node, address) = log_server("");
    let uri = |path: &str| format!("coap://{address}/{path}");
    let blobs = node.bus().subscribe_untyped("blobs", Qos::keep_last(16), "test").unwrap();
    let received = |bus: &Bus| count(bus, "server", "received");
    assert_eq!(client.send("put", "con", &uri("blob"), OCTETS, &large(b'A')).head, "2.04 ACK -1");
    assert!(is_large(&next_blob(&blobs), b'A'));
    eventually("blocks are counted", || received(&node.bus()) >= LARGE_BLOCKS);
    let before = received(&node.bus());
    node.any("any/cloud", &blob(), large(b'B').into());
    let mut got = Vec::new();
    eventually("the sample arrives", || {
        let response = client.get("con", &uri("any/any/cloud"));
        got = response.payload;
        response.head == "2.05 ACK 42"
    });
    assert!(is_large(&got, b'B'));
    eventually("blocks are counted", || received(&node.bus()) >= before + LARGE_BLOCKS);
    assert!(node.stop());
}

#[test]
fn californium_reads_writes_and_observes_over_dtls() {
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("keys"), KEY_LINE);
    reads_writes_and_observes("coaps", Some(KEY), &dtls);
}

#[test]
fn californium_reads_writes_and_observes_over_tcp() {
    reads_writes_and_observes("coap+tcp", None, "");
}

fn reads_writes_and_observes(scheme: &str, key: Option<(&str, &str)>, more: &str) {
    let Some(mut client) = Client::start(key) else { return };
    let (node, address) = log_server(more);
    let uri = |path: &str| format!("{scheme}://{address}/{path}");
    let blobs = node.bus().subscribe_untyped("blobs", Qos::keep_last(16), "test").unwrap();
    publish(&node, &mut client, &uri("log"), "first");
    let absent = client.get("con", &uri("nothing"));
    assert!(absent.head.starts_with("4.04"), "{absent:?}");
    client.observe(&uri("log"));
    assert!(client.next().text().contains("\"message\":\"first\""));
    for number in 1..=5 {
        node.log("log/n", &number.to_string());
        let notification = client.next();
        assert!(notification.text().contains(&format!("\"message\":\"{number}\"")), "{notification:?}");
    }
    for payload in [b"short".to_vec(), large(b'A')] {
        let written = client.send("put", "con", &uri("blob"), OCTETS, &payload);
        assert!(written.head.starts_with("2.04"), "{written:?}");
        assert!(next_blob(&blobs) == payload);
    }
    node.any("any/cloud", &blob(), large(b'B').into());
    let mut got = absent;
    eventually("the sample arrives", || {
        got = client.get("con", &uri("any/any/cloud"));
        got.head.starts_with("2.05")
    });
    assert!(is_large(&got.payload, b'B'), "{got:?}");
    assert!(node.stop());
}

/// Returns the number of requests of the client that were dropped for a reason.
fn dropped(node: &TestNode, reason: &str) -> u64 {
    let counters = node.bus().snapshot().counters.into_iter();
    counters.filter(|one| one.name == "dropped" && one.reason.as_deref() == Some(reason)).map(|one| one.value).sum()
}

#[test]
fn the_client_writes_resources_of_californium() {
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("key"), KEY_LINE);
    for (key, dtls) in [(None, String::new()), (Some(KEY), dtls)] {
        let Some(server) = Server::start(key) else { return };
        let routes = "      routes:\n      \
                      - { from: log/n, to: sink }\n      \
                      - { from: any/hint, to: sink, method: put, encoding: native, confirm: false }\n      \
                      - { from: any/cloud, to: sink, method: put, encoding: native }\n      \
                      - { from: any/slow, to: slow, encoding: native }\n      \
                      - { from: any/forbidden, to: forbidden, encoding: native }\n      \
                      - { from: any/broken, to: broken, encoding: native }\n";
        let robot = client(&server.address(), &(dtls + routes));
        let delivered = || count(&robot.bus(), "client", "delivered");
        for number in 0..20 {
            robot.log("log/n", &number.to_string());
            let request = server.next();
            assert_eq!(request.head, "POST sink CON 50");
            assert!(request.text().contains(&format!("\"message\":\"{number}\"")), "{number}: {request:?}");
            eventually("the response arrives", || delivered() == number + 1);
        }
        robot.any("any/hint", &blob(), Bytes::from_static(b"hint"));
        let request = server.next();
        assert_eq!((request.head.as_str(), request.text()), ("PUT sink NON 42", "hint"));
        eventually("the response arrives", || delivered() == 21);
        robot.any("any/cloud", &blob(), large(b'A').into());
        let request = server.next();
        assert!(request.head == "PUT sink CON 42" && is_large(&request.payload, b'A'), "{request:?}");
        eventually("the response arrives", || delivered() == 22);
        robot.any("any/slow", &blob(), Bytes::from_static(b"slow"));
        assert_eq!(server.next().head, "POST slow CON 42");
        assert_eq!(server.next().head, "acknowledged");
        eventually("the response arrives", || delivered() == 23);
        for (path, reason) in [("forbidden", "client_error"), ("broken", "server_error")] {
            robot.any(&format!("any/{path}"), &blob(), Bytes::from_static(b"no"));
            assert_eq!(server.next().head, format!("POST {path} CON 42"));
            eventually("the rejection is counted", || dropped(&robot, reason) == 1);
        }
        assert_eq!(delivered(), 23);
        assert!(robot.stop());
    }
}

#[test]
fn the_client_observes_resources_of_californium() {
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("key"), KEY_LINE);
    for (key, dtls) in [(None, String::new()), (Some(KEY), dtls)] {
        let Some(mut server) = Server::start(key) else { return };
        let observe = "      observe:\n      \
                       - { from: confirmed, to: confirmed, type: { opaque: blob }, encoding: native }\n      \
                       - { from: hinted, to: hinted, type: { opaque: blob }, encoding: native }\n";
        let robot = client(&server.address(), &(dtls + observe));
        for path in ["confirmed", "hinted"] {
            let states = robot.bus().subscribe_untyped(path, Qos::keep_last(64), "test").unwrap();
            for number in 0..20 {
                let text = number.to_string();
                server.set(path, OCTETS, text.as_bytes());
                assert_eq!(next_blob(&states), text.as_bytes(), "{path}");
            }
            for first in [b'A', b'B'] {
                server.set(path, OCTETS, &large(first));
                assert!(is_large(&next_blob(&states), first), "{path}");
            }
        }
        assert!(robot.stop());
    }
}
