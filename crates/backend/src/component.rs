//! The kind `api`: subscribes to V2X messages and serves them over HTTP.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use viaduct_bus::{Counter, Hop, Qos, Sample, clock};
use viaduct_messages::viaduct::figures::KeyFigures;
use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_node::listen::{GateLimits, Hosts};
use viaduct_node::{CallbackContext, Component, Context, Edges, Kind, Resource, SettingError, StartError};

use crate::api::{self, Api};
use crate::cache::Rejected;
use crate::figures::{NewestFigures, NodeKpis};
use crate::{ApiSettings, Backend, SettingsError};

/// Every kind of this crate.
pub static KINDS: &[Kind] = &[Kind::of::<ApiServer>(
    "api",
    "Keeps the newest V2X messages and serves them over HTTP, with the dashboard.",
    "{ listen: 127.0.0.1:0, topics: [] }",
)];

/// Queue of each subscribed topic. When it is full, the oldest messages are dropped and counted; the publisher never waits for
/// the cache.
const REQUESTED: Qos = Qos::keep_last(4096);

/// Queue of each topic of key figures, of which only the newest ones matter.
const FIGURES: Qos = Qos::keep_last(1);

/// Period in which rates are computed and expired messages dropped.
const TICK: Duration = Duration::from_secs(1);

/// The component: feeds a [`Backend`] and serves its API.
pub struct ApiServer {
    backend: Arc<Backend>,
    /// Key figures of messages that come back.
    figures: NewestFigures,
    /// Measures the latency until a message is available to requests.
    hop: Hop,
    /// Messages received: equals inserted plus dropped.
    received: Counter,
    inserted: Counter,
    dropped: [(Rejected, Counter); Rejected::ALL.len()],
}

impl Component for ApiServer {
    type Settings = ApiSettings;

    fn check(settings: &ApiSettings) -> Result<(), SettingError> {
        Ok(settings.check()?)
    }

    fn edges(settings: &ApiSettings) -> Edges {
        let listen = Resource::TcpListen { address: settings.listen, setting: "listen".to_owned() };
        let topics = settings.topics.iter().take(settings.topics_needed()).enumerate();
        let edges = topics.fold(Edges::default().takes(listen), |edges, (index, pattern)| {
            edges.reads::<V2xMessage>(&format!("topics.{index}"), pattern, REQUESTED)
        });
        settings
            .figures
            .iter()
            .enumerate()
            .fold(edges, |edges, (index, topic)| edges.reads::<KeyFigures>(&format!("figures.{index}"), topic, FIGURES))
    }

    fn start(settings: ApiSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let backend = Backend::new(&settings).map_err(SettingError::from)?;
        let figures = NewestFigures::default();
        let kpis = NodeKpis { bus: context.bus().clone(), figures: figures.clone() };
        let api = Api::new(&settings, backend.clone(), Arc::new(kpis)).map_err(SettingError::from)?;
        serve(&settings, api, context)?;
        for pattern in &settings.topics {
            let messages = context.subscribe::<V2xMessage>(pattern, REQUESTED)?;
            context.on(messages, Self::on_message);
        }
        for topic in &settings.figures {
            let samples = context.subscribe::<KeyFigures>(topic, FIGURES)?;
            context.on(samples, |server, sample, _| server.figures.set(sample.topic(), &sample));
        }
        context.every(TICK, |server, out| server.backend.tick(out.now));
        let dropped = Rejected::ALL.map(|reason| (reason, context.counter_for("dropped", reason.label())));
        Ok(Self {
            backend,
            figures,
            hop: context.hop(),
            received: context.counter("received"),
            inserted: context.counter("inserted"),
            dropped,
        })
    }
}

impl ApiServer {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn on_message(&mut self, message: Sample<V2xMessage>, _: &mut CallbackContext) {
        self.received.increment();
        match self.backend.insert(&message) {
            Ok(()) => {
                self.inserted.increment();
                self.hop.mark(message.meta(), clock::tai());
            }
            Err(reason) => self.count(reason),
        }
    }

    fn count(&self, rejected: Rejected) {
        if let Some((_, counter)) = self.dropped.iter().find(|(reason, _)| *reason == rejected) {
            counter.increment();
        }
    }
}

/// Binds the address and serves the API in an I/O task. A port in use is thus an error of the start.
fn serve(settings: &ApiSettings, api: Arc<Api>, context: &mut Context<ApiServer>) -> Result<(), StartError> {
    let failed = |cause| StartError::io(format!("cannot listen on {}", settings.listen), cause);
    let listener = TcpListener::bind(settings.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "API is listening");
    let mut stop = context.stop();
    let hosts = Hosts::of(address, settings.hosts());
    let gate = context.gate(GateLimits::new(api::CONNECTIONS_MAX));
    context.spawn_io(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        api::serve(listener, hosts, gate, api, async move { stop.asked().await }).await;
        Ok::<_, std::io::Error>(())
    });
    Ok(())
}

impl From<SettingsError> for SettingError {
    fn from(error: SettingsError) -> Self {
        Self::new(error.key, error.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::message;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use viaduct_bus::Publisher;
    use viaduct_messages::viaduct::its::MessageType;
    use viaduct_node::{Graph, Node};

    /// Publishes one message that the cache accepts and one that it rejects.
    struct Radio(Option<Publisher<V2xMessage>>);

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct RadioSettings {}

    impl Component for Radio {
        type Settings = RadioSettings;

        fn edges(_: &RadioSettings) -> Edges {
            Edges::default().publishes::<V2xMessage>("", "its/rx/cam", REQUESTED)
        }

        fn start(_: RadioSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
            context.every(Duration::from_millis(1), |radio, _| {
                let Some(publisher) = radio.0.take() else { return };
                let good = message(77, MessageType::Cam, 0, None);
                publisher.publish(V2xMessage { reception_time: None, ..good.clone() }).unwrap();
                publisher.publish(good).unwrap();
            });
            Ok(Self(Some(context.publisher("its/rx/cam", REQUESTED)?)))
        }
    }

    const RADIO: Kind = Kind::of::<Radio>("radio", "Two messages.", "{}");

    fn get(address: SocketAddr, path: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn free_address() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn a_message_published_in_a_node_is_served() {
        let (runtime, address) = (tokio::runtime::Runtime::new().unwrap(), free_address());
        let text = format!(
            "node: edge\ncomponents:\n  web: {{ kind: api, settings: {{ listen: \"{address}\" }} }}\n  radio: {{ kind: radio, settings: {{}} }}\n"
        );
        let graph = Graph::resolve("edge.yaml", &text, &[KINDS[0], RADIO]).unwrap();
        let node = Node::start(graph, runtime.handle()).unwrap();
        while get(address, "/v1/messages")["numberReturned"] == 0 {
            std::thread::yield_now();
        }
        let kpis = get(address, "/v1/kpis");
        assert_eq!((&kpis["node"], &kpis["cache"]["messages"]), (&"edge".into(), &1.into()));
        assert_eq!(kpis["cache"]["rejected"]["no_reception_time"], 1);
        let topics = kpis["topics"].as_array().unwrap();
        assert!(topics.iter().any(|topic| topic["topic"] == "its/rx/cam" && topic["published"] == 2), "{kpis}");
        let counters = kpis["counters"].as_array().unwrap();
        assert!(counters.iter().any(|counter| counter["reason"] == "no_reception_time" && counter["value"] == 1));
        let hops = kpis["hops"].as_array().unwrap();
        assert!(hops.iter().any(|hop| hop["hop"] == "web" && hop["count"] == 1), "{kpis}");
        assert!(node.stop());
    }

    #[test]
    fn an_invalid_setting_is_rejected_with_its_key() {
        let text = "node: a\ncomponents:\n  web: { kind: api, settings: { topics: [], live: { queue: 0 } } }\n";
        let error = Graph::resolve("a.yaml", text, KINDS).err().unwrap().to_string();
        assert!(error.contains("components.web.settings.live.queue: 0 is not within 1 to 65536"), "{error}");
    }

    #[test]
    fn a_missing_map_prevents_the_node_from_starting() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let text = "node: a\ncomponents:\n  web: { kind: api, settings: { listen: \"127.0.0.1:0\", topics: [], map: { file: /no/map } } }\n";
        let error = Node::start(Graph::resolve("a.yaml", text, KINDS).unwrap(), runtime.handle()).err().unwrap();
        assert!(error.to_string().contains("`map.file`: /no/map"), "{error}");
    }
}
