//! Calls from the master and from other nodes.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response as HttpResponse};
use axum::routing::post;
use viaduct_node::Stop;
use viaduct_node::listen::{self, Gate, Hosts, HttpListener};
use viaduct_ros::xmlrpc::{Call, Response, Value};

use super::Identity;
use super::master::texts;
use super::publication::Publication;
use super::subscription::Subscription;

/// Longest call. The longest ones have the addresses of all publishers of a topic.
const CALL_BYTES_MAX: usize = 1 << 20;
/// Maximum number of connections at a time, and time after which an idle one is closed.
pub(super) const CONNECTIONS_MAX: usize = 64;
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Longest reason that is logged, in characters.
const REASON_CHARACTERS_MAX: usize = 200;
/// First element of a result: the call succeeded, or the caller is at fault.
const SUCCESS: i32 = 1;
const ERROR: i32 = -1;
/// Fault of a method that does not exist.
const UNKNOWN_METHOD: i32 = 1;

/// The part of a node that other nodes call.
pub(super) struct Api {
    identity: Arc<Identity>,
    subscriptions: Arc<[Arc<Subscription>]>,
    publications: Arc<[Arc<Publication>]>,
}

impl Api {
    pub(super) fn new(
        identity: &Arc<Identity>,
        subscriptions: &Arc<[Arc<Subscription>]>,
        publications: &Arc<[Arc<Publication>]>,
    ) -> Arc<Self> {
        let (subscriptions, publications) = (Arc::clone(subscriptions), Arc::clone(publications));
        Arc::new(Self { identity: Arc::clone(identity), subscriptions, publications })
    }

    /// Returns the response to a call (ROS wiki, Slave API).
    fn answer(&self, call: &Call) -> Response {
        let result = match call.method.as_str() {
            "publisherUpdate" => self.update_publishers(call),
            "requestTopic" => self.request_topic(call),
            "getPid" => Ok(i32::try_from(std::process::id()).unwrap_or(i32::MAX).into()),
            "getMasterUri" => Ok(self.identity.master.as_str().into()),
            "getSubscriptions" => {
                Ok(self.subscriptions.iter().map(|one| pair(one.topic(), "*")).collect::<Vec<_>>().into())
            }
            "getPublications" => Ok(self.publications()),
            "getBusStats" => Ok(Value::Array(vec![Value::Array(Vec::new()); 3])),
            "getBusInfo" => Ok(Value::Array(Vec::new())),
            "paramUpdate" => Ok(0.into()),
            "shutdown" => Err(self.refuse_shutdown(call)),
            method => return Response::Fault { code: UNKNOWN_METHOD, message: format!("no method `{method}`") },
        };
        let (code, text, value) = match result {
            Ok(value) => (SUCCESS, String::new(), value),
            Err(problem) => (ERROR, problem, Value::Int(0)),
        };
        Response::Value(Value::Array(vec![code.into(), text.as_str().into(), value]))
    }

    /// `shutdown(caller, reason)`: the master has removed this node, usually because another node has registered under its name.
    fn refuse_shutdown(&self, call: &Call) -> String {
        let reason = call.params.get(1).and_then(Value::as_str).unwrap_or_default();
        let reason: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        let name = &self.identity.name;
        tracing::warn!(name, reason, "the ROS master asks this node to end; does another node have its name?");
        "this node is stopped by its own process".to_owned()
    }

    /// `publisherUpdate(caller, topic, publishers)`: the master reports the publishers of a topic.
    fn update_publishers(&self, call: &Call) -> Result<Value, String> {
        let topic = text(call, 1)?;
        let publishers = call.params.get(2).and_then(texts).ok_or("parameter 3 is not an array of strings")?;
        if let Some(subscription) = self.subscriptions.iter().find(|one| one.topic() == topic) {
            subscription.set_publishers(publishers);
        }
        Ok(0.into())
    }

    /// `requestTopic(caller, topic, protocols)`: a subscriber asks for the address of the connection.
    fn request_topic(&self, call: &Call) -> Result<Value, String> {
        let topic = text(call, 1)?;
        let protocols = call.params.get(2).and_then(Value::as_array).ok_or("parameter 3 is not a list")?;
        let name = |protocol: &Value| {
            protocol.as_array().and_then(|one| one.first()).and_then(Value::as_str) == Some("TCPROS")
        };
        if !protocols.iter().any(name) {
            return Err("only the protocol TCPROS is supported".to_owned());
        }
        if !self.publications.iter().any(|one| one.topic() == topic && one.type_name().is_some()) {
            return Err(format!("`{topic}` is not published here"));
        }
        let address = self.identity.connections;
        let (host, port) = (address.ip().to_string(), i32::from(address.port()));
        Ok(Value::Array(vec!["TCPROS".into(), host.as_str().into(), port.into()]))
    }

    fn publications(&self) -> Value {
        let typed = |one: &Arc<Publication>| Some(pair(one.topic(), &one.type_name()?));
        self.publications.iter().filter_map(typed).collect::<Vec<_>>().into()
    }
}

fn pair(topic: &str, type_name: &str) -> Value {
    Value::Array(vec![topic.into(), type_name.into()])
}

fn text(call: &Call, index: usize) -> Result<&str, String> {
    call.params.get(index).and_then(Value::as_str).ok_or_else(|| format!("parameter {} is not a string", index + 1))
}

/// Serves calls until the component stops.
pub(super) async fn serve(listener: TcpListener, gate: Gate, api: Arc<Api>, mut stop: Stop) -> io::Result<()> {
    // Nodes use different paths: `/`, `/RPC2`.
    let router = Router::new().fallback(post(handle)).layer(DefaultBodyLimit::max(CALL_BYTES_MAX)).with_state(api);
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // Nodes of ROS have the names of their machines.
    let listener = HttpListener { listener, hosts: Hosts::any(), gate, idle_max: IDLE_MAX };
    tokio::select! {
        () = listen::serve(listener, router, std::future::pending()) => {}
        () = stop.asked() => {}
    }
    Ok(())
}

async fn handle(State(api): State<Arc<Api>>, body: Bytes) -> HttpResponse {
    match Call::parse(&body) {
        Ok(call) => ([(CONTENT_TYPE, "text/xml")], api.answer(&call).write()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}
