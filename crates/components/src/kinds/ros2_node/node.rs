//! The start of a node, and the thread that waits for messages, discovery and changes of the node itself.

use std::sync::Arc;
use std::time::Duration;

use viaduct_node::{Context, SettingError, StartError, Stop};
use viaduct_ros::dds::{self, Guid};

use super::counters::Counters;
use super::graph::Graph;
use super::publication::{Publication, PublicationState};
use super::settings::Ros2NodeSettings;
use super::subscription::Subscription;
use super::sys::{
    DdsError, DiscoveryReader, Domain, EndpointEvent, EndpointKind, Guard, Participant, Wait, Waitset, WriteError,
};
use super::{Ros2Node, network};
use viaduct_bus::Qos;

/// Tokens of the waitset. Those of readers and writers follow.
const WAKE: usize = 0;
const WRITERS: usize = 1;
const READERS: usize = 2;
const GRAPH: usize = 3;
const ENDPOINTS: usize = 4;
/// Time after which a topic of the bus that could not be opened is tried again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// A node, as its thread has it. Fields are dropped in this order: endpoints before the participant.
struct Node {
    subscriptions: Vec<Subscription>,
    publications: Vec<Arc<PublicationState>>,
    graph: Graph,
    writers: DiscoveryReader,
    readers: DiscoveryReader,
    /// Ready when the component stops, or a writer has changed.
    wake: Arc<Guard>,
    waitset: Arc<Waitset>,
    participant: Arc<Participant>,
    stop: Stop,
    events: Vec<EndpointEvent>,
}

/// Joins the domain and starts the threads of the node.
pub(super) fn start(settings: &Ros2NodeSettings, context: &mut Context<Ros2Node>) -> Result<Ros2Node, StartError> {
    let failed = |error: DdsError| StartError::Other(format!("cannot join domain {}: {error}", settings.domain));
    let domain = Domain::open(settings.domain, &network::config(settings)).map_err(failed)?;
    let domain = domain.ok_or_else(|| {
        let problem = "another component of this process has the same `domain` and other network settings";
        SettingError::new("domain", problem)
    })?;
    let participant = Participant::create(domain, dds::enclave()).map_err(failed)?;
    let waitset = Arc::new(Waitset::create(&participant).map_err(failed)?);
    let wake = Arc::new(Guard::create(&participant, &waitset, WAKE).map_err(failed)?);
    let counters = Arc::new(Counters::new(context));

    let subscriptions = settings
        .subscriptions
        .iter()
        .enumerate()
        .map(|(index, one)| Subscription::new((index, one, settings), &counters, ENDPOINTS + index, context));
    let subscriptions: Vec<_> = subscriptions.collect::<Result<_, _>>()?;
    let token = |index| ENDPOINTS + subscriptions.len() + index;
    let publications = settings.publications.iter().enumerate();
    let publications: Vec<_> =
        publications.map(|(index, one)| PublicationState::new(one, &counters, token(index), context)).collect();
    for (index, (state, one)) in publications.iter().zip(&settings.publications).enumerate() {
        let own = (&participant, &waitset, &wake);
        let end = (context.hop(), context.stop());
        let publication = Publication::new((index, one, settings), Arc::clone(state), own, end)?;
        let input = context.subscribe_untyped(&one.from, Qos::keep_last(one.queue))?;
        let runtime = tokio::runtime::Handle::current();
        context.spawn_thread(move || publication.run(&input, &runtime))?;
    }

    let node = Node {
        graph: Graph::create(&participant, settings, name(settings, context), (&waitset, GRAPH)).map_err(failed)?,
        writers: DiscoveryReader::create(&participant, EndpointKind::Writers, &waitset, WRITERS).map_err(failed)?,
        readers: DiscoveryReader::create(&participant, EndpointKind::Readers, &waitset, READERS).map_err(failed)?,
        subscriptions,
        publications,
        wake: Arc::clone(&wake),
        waitset,
        participant,
        stop: context.stop(),
        events: Vec::new(),
    };
    context.spawn_thread(move || node.run())?;
    let mut stop = context.stop();
    context.spawn_io(async move {
        stop.asked().await;
        wake.wake();
        Ok::<_, std::convert::Infallible>(())
    });
    Ok(Ros2Node)
}

/// Returns the name of the node, by default made from the names of the Viaduct node and of the component.
fn name(settings: &Ros2NodeSettings, context: &Context<Ros2Node>) -> String {
    settings.name.clone().unwrap_or_else(|| {
        let is_letter = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let text = format!("{}_{}", context.node(), context.name());
        let name: String = text.chars().map(|character| if is_letter(character) { character } else { '_' }).collect();
        if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
    })
}

impl Node {
    /// Runs until the component stops.
    fn run(mut self) -> Result<(), DdsError> {
        let mut wait = Wait::default();
        let mut ready = vec![WRITERS, READERS];
        let mut must_retry = self.refresh_all()?;
        while !self.stop.is_asked() {
            must_retry |= self.process(&ready)?;
            if must_retry {
                must_retry = self.refresh_all()?;
            }
            self.publish_graph()?;
            let timeout = must_retry.then_some(RETRY_PERIOD);
            ready.clear();
            ready.extend(self.waitset.wait(timeout, &mut wait)?);
        }
        self.subscriptions.iter_mut().try_for_each(Subscription::close)
    }

    /// Processes the entities that are ready. Returns `true` if a subscription must be refreshed later.
    fn process(&mut self, ready: &[usize]) -> Result<bool, DdsError> {
        let mut must_retry = false;
        for token in ready {
            match *token {
                WAKE => self.wake.clear(),
                WRITERS => must_retry |= self.discover_writers()?,
                READERS => self.discover_readers()?,
                GRAPH => self.graph.receive()?,
                token => self.record_statuses(token),
            }
        }
        self.receive(ready)?;
        Ok(must_retry)
    }

    /// Publishes messages of the subscriptions that are ready, in turn, until none has more.
    fn receive(&mut self, ready: &[usize]) -> Result<(), DdsError> {
        let mut has_more = true;
        while has_more && !self.stop.is_asked() {
            has_more = false;
            for subscription in self.subscriptions.iter_mut().filter(|one| ready.contains(&one.token())) {
                has_more |= subscription.receive()?;
            }
        }
        Ok(())
    }

    fn record_statuses(&self, token: usize) {
        let subscription = self.subscriptions.iter().find(|one| one.token() == token);
        let publication = self.publications.iter().find(|one| one.token() == token);
        match (subscription, publication) {
            (Some(subscription), _) => subscription.record_statuses(),
            (None, Some(publication)) => publication.record_statuses(),
            (None, None) => {}
        }
    }

    fn discover_writers(&mut self) -> Result<bool, DdsError> {
        while self.writers.take(&mut self.events)? {}
        let mut must_retry = false;
        for event in std::mem::take(&mut self.events) {
            let (participant, waitset) = (Arc::clone(&self.participant), Arc::clone(&self.waitset));
            if let Some(subscription) = self.update_publishers(event) {
                must_retry |= subscription.refresh(&participant, &waitset)?;
            }
        }
        Ok(must_retry)
    }

    /// Adds or removes a publisher. Returns the subscription of its topic, if there is one.
    fn update_publishers(&mut self, event: EndpointEvent) -> Option<&mut Subscription> {
        match event {
            EndpointEvent::Found(endpoint) if endpoint.participant == self.participant.guid() => None,
            EndpointEvent::Found(endpoint) => {
                let subscription = self.subscriptions.iter_mut().find(|one| one.dds_topic() == endpoint.topic)?;
                subscription.found(endpoint);
                Some(subscription)
            }
            EndpointEvent::Gone(handle) => {
                self.subscriptions.iter_mut().find_map(|one| one.gone(handle).then_some(one))
            }
        }
    }

    fn discover_readers(&mut self) -> Result<(), DdsError> {
        while self.readers.take(&mut self.events)? {}
        for event in std::mem::take(&mut self.events) {
            match event {
                EndpointEvent::Found(endpoint) if endpoint.participant == self.participant.guid() => {}
                EndpointEvent::Found(endpoint) => {
                    if let Some(publication) = self.publications.iter().find(|one| one.dds_topic() == endpoint.topic) {
                        publication.found(endpoint);
                    }
                }
                EndpointEvent::Gone(handle) => self.publications.iter().for_each(|one| one.gone(handle)),
            }
        }
        Ok(())
    }

    /// Refreshes all subscriptions. Returns `true` if one must be refreshed later.
    fn refresh_all(&mut self) -> Result<bool, DdsError> {
        let mut must_retry = false;
        for subscription in &mut self.subscriptions {
            must_retry |= subscription.refresh(&self.participant, &self.waitset)?;
        }
        Ok(must_retry)
    }

    fn publish_graph(&mut self) -> Result<(), DdsError> {
        let readers: Vec<Guid> = self.subscriptions.iter().filter_map(Subscription::guid).collect();
        let writers: Vec<Guid> = self.publications.iter().filter_map(|one| one.guid()).collect();
        match self.graph.publish(readers, writers) {
            // The next change publishes it again.
            Ok(()) | Err(WriteError::Timeout) => Ok(()),
            Err(WriteError::Dds(error)) => Err(error),
        }
    }
}
