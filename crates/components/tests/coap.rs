//! `coap_server` against the clients of Debian's libcoap and of aiocoap, and `coap_client` against the server of libcoap.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "coap/nodes.rs"]
mod nodes;
#[path = "coap/peers.rs"]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use std::net::UdpSocket;
use std::time::Duration;

use nodes::{client, free_udp_port, log_server, psk_setting, server};
use peers::{Aiocoap, Coap, CoapServer};
use support::{PATIENCE, count, eventually, has};
use viaduct_bus::{MessageFormat, Qos, Recv, TypeInfo};
use viaduct_messages::foxglove::Log;

const LIBCOAP: &str = "coap-client-notls";

#[test]
fn libcoap_reads_the_latest_sample_of_a_topic() {
    if !has(LIBCOAP) {
        return;
    }
    let (node, address) = log_server("");
    let client = Coap::notls();
    assert!(client.get(&format!("coap://{address}/log")).starts_with("4.04"));
    node.log("log/n", "first");
    node.log("log/n", "second");
    eventually("the sample arrives", || {
        client.get(&format!("coap://{address}/log")).contains("\"message\":\"second\"")
    });
    assert!(client.get(&format!("coap+tcp://{address}/log")).contains("\"message\":\"second\""));
    // Field 3 of foxglove.Log.
    assert!(client.get(&format!("coap://{address}/raw")).contains("\x1a\x06second"));
    assert!(client.get(&format!("coap://{address}/nothing")).starts_with("4.04"));
    assert!(client.get(&format!("coap://{address}/command")).starts_with("4.05"));
    let core = client.get(&format!("coap://{address}/.well-known/core"));
    for link in ["</log>;", "obs", "ct=50", "</command>"] {
        assert!(core.contains(link), "{core}");
    }
    assert!(node.stop());
}

#[test]
fn libcoap_and_aiocoap_write_topics() {
    if !has(LIBCOAP) {
        return;
    }
    let (node, address) = log_server("");
    let logs = node.bus().subscribe::<Log>("commands", Qos::keep_last(16), "test").unwrap();
    let blobs = node.bus().subscribe_untyped("blobs", Qos::keep_last(16), "test").unwrap();
    let client = Coap::notls();
    let posted = client.send("post", &format!("coap://{address}/command"), r#"{"message":"go"}"#);
    assert_eq!(posted, "", "2.04 has no payload");
    let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("nothing published") };
    assert_eq!(sample.message, "go");
    let refused = client.send("post", &format!("coap://{address}/command"), r#"{"massage":"go"}"#);
    assert!(refused.starts_with("4.00") && refused.contains("massage"), "{refused}");
    assert!(client.send("put", &format!("coap://{address}/log"), "{}").starts_with("4.05"));
    // Longer than a datagram: Block1.
    let text = "x".repeat(5000);
    assert_eq!(client.send("put", &format!("coap://{address}/blob"), &text), "");
    let Recv::Sample(sample) = blobs.recv_timeout(PATIENCE) else { panic!("nothing published") };
    assert_eq!(sample.encoded().to_bytes(), text.as_bytes());
    assert_eq!((sample.type_info().format(), sample.type_info().full_name()), (MessageFormat::Opaque, "blob"));
    if let Some(aiocoap) = Aiocoap::find() {
        aiocoap.run(&["-m", "POST", "--payload", r#"{"message":"stop"}"#, &format!("coap://{address}/command")]);
        let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("nothing published") };
        assert_eq!(sample.message, "stop");
    }
    assert!(node.stop());
}

#[test]
fn observers_get_new_samples() {
    if !has(LIBCOAP) {
        return;
    }
    let (node, address) = log_server("");
    node.log("log/n", "0");
    let client = Coap::notls();
    eventually("the sample arrives", || client.get(&format!("coap://{address}/log")).contains("\"message\":\"0\""));
    let observer = client.observe(&format!("coap://{address}/log"), 4);
    eventually("it observes", || count(&node.bus(), "server", "observations") == 1);
    for number in 1..=5 {
        node.log("log/n", &number.to_string());
        std::thread::sleep(Duration::from_millis(100));
    }
    let text = observer.finish();
    for number in 0..=5 {
        assert!(text.contains(&format!("\"message\":\"{number}\"")), "{text}");
    }
    eventually("the observation has ended", || count(&node.bus(), "server", "observations_ended") == 1);
    assert!(node.stop());
}

#[test]
fn large_representations_arrive_in_blocks() {
    if !has(LIBCOAP) {
        return;
    }
    let (node, address) = log_server("");
    let octets: Vec<u8> = (0..100_000).map(|number: u32| b'a' + (number % 23) as u8).collect();
    let info = TypeInfo::foreign(MessageFormat::Opaque, "cloud", bytes::Bytes::new());
    node.any("any/cloud", &info, octets.clone().into());
    let client = Coap::notls();
    let mut got = Vec::new();
    eventually("the sample arrives", || {
        got = client.get_octets(&format!("coap://{address}/any/any/cloud"), &["-b", "1024"]);
        got.len() == octets.len()
    });
    assert_eq!(got, octets);
    assert_eq!(client.get_octets(&format!("coap+tcp://{address}/any/any/cloud"), &[]), octets);
    if let Some(aiocoap) = Aiocoap::find() {
        assert_eq!(aiocoap.run(&[&format!("coap://{address}/any/any/cloud")]), octets);
    }
    assert!(node.stop());
    // libcoap sends an Echo option back.
    let (node, address) =
        server("      - { path: any, from: any/*, encoding: native }\n", "      address_check: echo\n");
    node.any("any/cloud", &info, octets.clone().into());
    eventually("the sample arrives", || {
        client.get_octets(&format!("coap://{address}/any/any/cloud"), &["-b", "1024"]) == octets
    });
    assert!(node.stop());
}

#[test]
fn malformed_datagrams_are_counted_and_do_no_harm() {
    let (node, address) = log_server("");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(&address).unwrap();
    // Too short; version 2; token of 15 octets; an option beyond the end; a payload marker without payload.
    let wrong: [&[u8]; 5] =
        [b"\x40", b"\x80\x01\0\x01", b"\x5f\x01\0\x01", b"\x50\x01\0\x01\xbd", b"\x50\x01\0\x01\xff"];
    for datagram in wrong {
        socket.send(datagram).unwrap();
    }
    eventually("they are counted", || count(&node.bus(), "server", "refused") == wrong.len() as u64);
    // A ping is answered with a reset.
    socket.send(b"\x40\0\x12\x34").unwrap();
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer).unwrap();
    assert_eq!(answer[..length], *b"\x70\0\x12\x34");
    assert!(node.stop());
}

#[test]
fn requests_reach_the_http_server_through_the_proxy() {
    if !has(LIBCOAP) {
        return;
    }
    let http = free_udp_port();
    let listener = std::net::TcpListener::bind(("127.0.0.1", http)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            peers::answer_http(stream.unwrap());
        }
    });
    let proxy = format!("      proxy: {{ path: http, to: \"http://127.0.0.1:{http}\" }}\n");
    let (node, address) = server("      - { path: log, from: log/n }\n", &proxy);
    let client = Coap::notls();
    assert_eq!(client.get(&format!("coap://{address}/http/v1/topics?limit=3")), "GET /v1/topics?limit=3");
    assert!(client.get(&format!("coap://{address}/http/missing")).starts_with("4.04"));
    assert!(node.stop());
}

#[test]
fn a_client_with_a_key_reads_and_writes_over_dtls() {
    if !has("coap-client-openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("keys"), "robot-1:\"0123456789abcdef\"\n");
    let resources = "      - { path: log, from: log/n }\n      \
                     - { path: command, to: commands, type: { protobuf: foxglove.Log } }\n";
    let (node, address) = server(resources, &dtls);
    let logs = node.bus().subscribe::<Log>("commands", Qos::keep_last(16), "test").unwrap();
    node.log("log/n", "secret");
    let client = Coap::with_key("robot-1", "0123456789abcdef");
    eventually("the sample arrives", || {
        client.get(&format!("coaps://{address}/log")).contains("\"message\":\"secret\"")
    });
    client.send("post", &format!("coaps://{address}/command"), r#"{"message":"go"}"#);
    let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("nothing published") };
    assert_eq!(sample.message, "go");
    for (identity, key) in [("robot-1", "0123456789abcdeX"), ("robot-2", "0123456789abcdef")] {
        let text = Coap::with_key(identity, key).within(3).get(&format!("coaps://{address}/log"));
        assert!(!text.contains("secret"), "{identity} {key}: {text}");
    }
    assert!(node.stop());
}

#[test]
fn a_client_writes_and_observes_resources_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("key"), "robot-1:00112233445566778899aabbccddeeff\n");
    for dtls in [String::new(), dtls] {
        let resources = "      - { path: log, to: logs, type: { protobuf: foxglove.Log } }\n      \
                         - { path: command, from: log/n }\n";
        let (edge, address) = server(resources, &dtls);
        let routes = "      routes: [ { from: log/n, to: log } ]\n      \
                      observe: [ { from: command, to: command, type: { protobuf: foxglove.Log } } ]\n";
        let robot = client(&address, &(dtls + routes));
        let logs = edge.bus().subscribe::<Log>("logs", Qos::keep_last(64), "test").unwrap();
        let commands = robot.bus().subscribe::<Log>("command", Qos::keep_last(64), "test").unwrap();
        for number in 0..20 {
            robot.log("log/n", &number.to_string());
            let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("no log") };
            assert_eq!(sample.message, number.to_string());
        }
        edge.log("log/n", "first");
        // The observation begins when there is something to observe.
        let Recv::Sample(sample) = commands.recv_timeout(PATIENCE) else { panic!("no command") };
        assert_eq!(sample.message, "first");
        for number in 0..20 {
            edge.log("log/n", &number.to_string());
            let Recv::Sample(sample) = commands.recv_timeout(PATIENCE) else { panic!("no command") };
            assert_eq!(sample.message, number.to_string());
        }
        eventually("requests are answered", || count(&robot.bus(), "client", "delivered") == 20);
        assert!(robot.stop() && edge.stop());
    }
}

#[test]
fn a_client_writes_and_observes_resources_of_libcoap() {
    let folder = tempfile::tempdir().unwrap();
    let dtls = psk_setting(&folder.path().join("key"), "robot-1:\"0123456789abcdef\"\n");
    for (key, dtls) in [(None, String::new()), (Some("0123456789abcdef"), dtls)] {
        let Some(server) = CoapServer::start(key) else { return };
        let routes = "      routes:\n      \
                      - { from: log/n, to: example_data, method: put }\n      \
                      - { from: any/blob, to: blob, method: put, encoding: native }\n      \
                      - { from: any/hint, to: hint, method: put, encoding: native, confirm: false }\n      \
                      - { from: any/time, to: async, encoding: native }\n      \
                      observe: [ { from: example_data, to: state, type: { protobuf: foxglove.Log } } ]\n";
        let robot = client(&server.address(), &(dtls + routes));
        let states = robot.bus().subscribe::<Log>("state", Qos::keep_last(64), "test").unwrap();
        // The resource has a state from the beginning, which is no log.
        eventually("it observes", || count(&robot.bus(), "client", "notifications_refused") == 1);
        for number in 0..20 {
            robot.log("log/n", &number.to_string());
            let Recv::Sample(sample) = states.recv_timeout(PATIENCE) else { panic!("no state") };
            assert_eq!(sample.message, number.to_string());
        }
        let info = TypeInfo::foreign(MessageFormat::Opaque, "blob", bytes::Bytes::new());
        let octets: Vec<u8> = (0..20_000).map(|number: u32| b'a' + (number % 23) as u8).collect();
        robot.any("any/blob", &info, octets.clone().into());
        robot.any("any/hint", &info, bytes::Bytes::from_static(b"hint"));
        eventually("requests are answered", || count(&robot.bus(), "client", "delivered") == 22);
        let reader = Coap::notls();
        assert_eq!(reader.get_octets(&server.uri("blob"), &[]), octets);
        assert_eq!(reader.get(&server.uri("hint")), "hint");
        robot.any("any/time", &info, bytes::Bytes::from_static(b"no"));
        eventually("a rejection is counted", || count(&robot.bus(), "client", "dropped") == 1);
        assert!(robot.stop());
    }
}
