//! The kind `api`: topics of V2X messages in, HTTP out.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use viaduct_bus::{Counter, Hop, Qos, Sample, clock};
use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_node::{Component, Context, Edges, Kind, Out, Resource, SettingError, StartError};

use crate::api::{self, Api};
use crate::cache::Rejected;
use crate::{ApiSettings, Backend, SettingsError};

/// Every kind of this crate.
pub const KINDS: &[Kind] = &[Kind::of::<ApiServer>(
    "api",
    "Keeps the newest V2X messages and answers about them over HTTP; shows the dashboard.",
    "{ listen: 127.0.0.1:0, topics: [] }",
)];

/// Messages of one topic that wait to be taken into the cache; then the oldest are lost and counted. The publisher never
/// waits for the cache.
const REQUESTED: Qos = Qos::keep_last(4096);

/// How often rates are read and what is too old is dropped.
const TICK: Duration = Duration::from_secs(1);

/// See the module.
pub struct ApiServer {
    backend: Arc<Backend>,
    /// Where messages are measured when they can be asked for.
    hop: Hop,
    /// Received = inserted + dropped by reason.
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
        topics.fold(Edges::default().takes(listen), |edges, (index, pattern)| {
            edges.reads::<V2xMessage>(&format!("topics.{index}"), pattern, REQUESTED)
        })
    }

    fn start(settings: ApiSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let backend = Backend::new(&settings).map_err(SettingError::from)?;
        let api = Api::new(&settings, backend.clone(), Arc::new(context.bus().clone())).map_err(SettingError::from)?;
        serve(settings.listen, api, context)?;
        for pattern in &settings.topics {
            let messages = context.subscribe::<V2xMessage>(pattern, REQUESTED)?;
            context.on(messages, Self::on_message);
        }
        context.every(TICK, |server, out| server.backend.tick(out.now));
        let dropped = Rejected::ALL.map(|reason| (reason, context.counter_for("dropped", reason.label())));
        Ok(Self {
            backend,
            hop: context.hop(),
            received: context.counter("received"),
            inserted: context.counter("inserted"),
            dropped,
        })
    }
}

impl ApiServer {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn on_message(&mut self, message: Sample<V2xMessage>, _: &mut Out) {
        self.received.increment();
        match self.backend.insert(&message) {
            Ok(()) => {
                self.inserted.increment();
                self.hop.mark(message.meta(), clock::tai());
            }
            Err(refused) => self.count(refused),
        }
    }

    fn count(&self, refused: Rejected) {
        if let Some((_, counter)) = self.dropped.iter().find(|(reason, _)| *reason == refused) {
            counter.increment();
        }
    }
}

/// Listens, so that a port in use is an error of the start, and serves beside the callbacks.
fn serve(address: SocketAddr, api: Arc<Api>, context: &mut Context<ApiServer>) -> Result<(), StartError> {
    let refused = |cause| StartError::io(format!("cannot listen on {address}"), cause);
    let listener = TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    tracing::info!(%address, "the API listens");
    let mut stop = context.stop();
    context.spawn_io(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        api::serve(listener, api, async move { stop.asked().await }).await
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
    use crate::cache::suite::message;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use viaduct_bus::Publisher;
    use viaduct_messages::viaduct::its::MessageType;
    use viaduct_node::{Graph, Node};

    /// Publishes one message that the cache takes and one that it refuses.
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
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn free_address() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn what_is_published_in_a_node_can_be_asked_for() {
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
    fn a_wrong_setting_is_refused_with_its_place() {
        let text = "node: a\ncomponents:\n  web: { kind: api, settings: { topics: [], live: { queue: 0 } } }\n";
        let error = Graph::resolve("a.yaml", text, KINDS).err().unwrap().to_string();
        assert!(error.contains("components.web.settings.live.queue: 0 is not within 1 to 65536"), "{error}");
    }

    #[test]
    fn a_missing_map_keeps_the_node_from_starting() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let text = "node: a\ncomponents:\n  web: { kind: api, settings: { listen: \"127.0.0.1:0\", topics: [], map: { file: /no/map } } }\n";
        let error = Node::start(Graph::resolve("a.yaml", text, KINDS).unwrap(), runtime.handle()).err().unwrap();
        assert!(error.to_string().contains("`map.file`: /no/map"), "{error}");
    }
}
