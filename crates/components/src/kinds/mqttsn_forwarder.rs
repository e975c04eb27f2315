//! Kind `mqttsn_forwarder`: passes the messages of MQTT-SN nodes on to a gateway, encapsulated with the identity of the node (MQTT-SN 1.2, 5.5).
//!
//! It keeps no table: the identity of a node is its address. With DTLS between forwarder and gateway, nodes need no keys in a local network.
//!
//! Counters: `to_gateway`, `to_nodes`, `refused` by reason, and those of UDP sockets with the prefix `datagrams_`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior};
use viaduct_bus::clock;
use viaduct_mqttsn::Destination;
use viaduct_mqttsn::forwarder::{Forwarder, ForwarderRefusal};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError, Stop};

use crate::machine_counters::MachineCounters;
use crate::net::dtls::DtlsClientSettings;
use crate::net::port::{Port, check_keys, check_server};
use crate::net::timer::PreciseTimer;

/// Size of the kernel's receive buffers in bytes.
const RECEIVE_BUFFER_OCTETS: usize = 1 << 20;
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// Settings of `mqttsn_forwarder`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForwarderSettings {
    /// UDP address for the nodes. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// UDP address of the gateway.
    pub gateway: SocketAddr,
    /// DTLS with a pre-shared key to the gateway. Default: none.
    #[serde(default)]
    pub dtls: Option<DtlsClientSettings>,
}

/// A forwarder. All its work is in its I/O task.
pub struct MqttsnForwarder;

impl Component for MqttsnForwarder {
    type Settings = ForwarderSettings;

    fn check(settings: &ForwarderSettings) -> Result<(), SettingError> {
        check_server("gateway", settings.gateway, "gateway")?;
        if settings.gateway == settings.listen {
            let problem = "is the address on which the forwarder itself listens; expected that of a gateway";
            return Err(SettingError::new("gateway", format!("`{}` {problem}", settings.gateway)));
        }
        settings.dtls.as_ref().map_or(Ok(()), |dtls| dtls.check("dtls"))
    }

    fn check_machine(settings: &ForwarderSettings) -> Result<(), SettingError> {
        check_keys(settings.dtls.as_ref().map(DtlsClientSettings::load))
    }

    fn edges(settings: &ForwarderSettings) -> Edges {
        let listen = Resource::UdpBind { address: settings.listen, shared: false, setting: "listen".to_owned() };
        Edges::default().takes(listen).connects(settings.gateway)
    }

    fn start(settings: ForwarderSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::open(&settings, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}

/// The task.
struct Runner {
    gateway: SocketAddr,
    forwarder: Forwarder,
    nodes: Port,
    uplink: Port,
    timer: PreciseTimer,
    count: Interval,
    stop: Stop,
    counters: MachineCounters<Forwarder>,
}

impl Runner {
    fn open(settings: &ForwarderSettings, context: &Context<MqttsnForwarder>) -> Result<Self, StartError> {
        let nodes = Port::server(settings.listen, RECEIVE_BUFFER_OCTETS, None, context)?;
        if let Ok(address) = nodes.local_address() {
            tracing::info!(component = context.name(), %address, "MQTT-SN forwarder listens");
        }
        let mut count = tokio::time::interval(COUNT_PERIOD);
        count.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            gateway: settings.gateway,
            forwarder: Forwarder::new(settings.gateway),
            nodes,
            uplink: Port::client(settings.gateway, RECEIVE_BUFFER_OCTETS, settings.dtls.as_ref(), context)?,
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            count,
            stop: context.stop(),
            counters: MachineCounters::new(context, |totals| {
                totals.one("to_gateway", |forwarder: &Forwarder| forwarder.counters().to_gateway);
                totals.one("to_nodes", |forwarder| forwarder.counters().to_nodes);
                totals.each("refused", &ForwarderRefusal::ALL, ForwarderRefusal::label, |forwarder, reason| {
                    forwarder.counters().refused(reason)
                });
            }),
        })
    }

    /// Runs until the stop of the component is requested.
    async fn run(mut self) -> io::Result<()> {
        let (mut from_nodes, mut from_gateway) = (Vec::new(), Vec::new());
        loop {
            self.timer.set(self.uplink.poll_timeout())?;
            tokio::select! {
                biased;
                () = self.stop.asked() => break,
                arrived = self.nodes.receive(&mut from_nodes) => arrived?,
                arrived = self.uplink.receive(&mut from_gateway) => arrived?,
                expired = self.timer.expired() => {
                    expired?;
                    self.uplink.handle_timeout(clock::mono(), &mut from_gateway);
                }
                _ = self.count.tick() => self.sync_counters(),
            }
            // A datagram that the socket of the nodes gets from the gateway's address is from a node on that machine.
            for (from, payload) in from_nodes.drain(..).filter(|(from, _)| *from != self.gateway) {
                self.forwarder.handle_datagram(from, &payload);
            }
            for (from, payload) in from_gateway.drain(..).filter(|(from, _)| *from == self.gateway) {
                self.forwarder.handle_datagram(from, &payload);
            }
            self.send();
        }
        self.sync_counters();
        Ok(())
    }

    fn send(&mut self) {
        while let Some(transmit) = self.forwarder.poll_transmit() {
            match transmit.to {
                Destination::Unicast(address) if address == self.gateway => {
                    self.uplink.push(address, transmit.datagram);
                }
                Destination::Unicast(address) | Destination::Broadcast { reply_to: Some(address), .. } => {
                    self.nodes.push(address, transmit.datagram);
                }
                // The nodes of a forwarder have no multicast group.
                Destination::Broadcast { reply_to: None, .. } => {}
            }
        }
        self.uplink.flush();
        self.nodes.flush();
    }

    fn sync_counters(&mut self) {
        self.nodes.sync_counters();
        self.uplink.sync_counters();
        self.counters.sync(&self.forwarder);
    }
}
