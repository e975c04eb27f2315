//! The UDP socket at an interface that takes no packets for a while.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod network;

use std::net::SocketAddr;

use bytes::Bytes;
use socket2::SockRef;
use viaduct_components::net::udp_socket::{UdpSettings, UdpSocket, UnsentReason};

use network::{in_own_network, ip};

const DATAGRAMS: u64 = 500;

#[test]
fn a_batch_that_the_kernel_takes_in_part_keeps_the_rest() {
    in_own_network("a_batch_that_the_kernel_takes_in_part_keeps_the_rest", || {
        ip("address add 10.77.0.1/24 dev veth0");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = UdpSettings { receive_buffer_octets: 65_536, datagram_octets_max: 1500, queue_max: 1000 };
            let mut socket = UdpSocket::bind("10.77.0.1:0".parse().unwrap(), &settings).unwrap();
            SockRef::from(&socket).set_send_buffer_size(16_384).unwrap();
            let neighbour: SocketAddr = "10.77.0.9:9".parse().unwrap();
            for number in 0..DATAGRAMS {
                socket.push(neighbour, Bytes::from(vec![number as u8; 1000]));
            }

            // The kernel holds the first datagrams, because it does not know the link address of the neighbour yet.
            socket.flush();
            let waiting = socket.waiting() as u64;
            assert!((1..DATAGRAMS).contains(&waiting), "{waiting}");
            socket.flush();
            assert_eq!(socket.waiting() as u64, waiting);
            assert_eq!(socket.counters().sent, DATAGRAMS - waiting);

            ip("neighbour replace 10.77.0.9 lladdr 02:00:00:00:00:11 dev veth0");
            socket.flush_all().await.unwrap();
            assert_eq!((socket.waiting(), socket.counters().sent), (0, DATAGRAMS));
            assert_eq!(UnsentReason::ALL.map(|reason| socket.counters().unsent(reason)), [0; 6]);
        });
    });
}
