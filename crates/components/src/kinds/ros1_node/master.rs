//! Registration with the master.
//!
//! The master forgets everything when it is restarted, and does not report it. The node therefore asks for the process ID of the
//! master every second, and registers again if it has changed or the master was absent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use viaduct_bus::Counter;
use viaduct_node::Stop;
use viaduct_ros::xmlrpc::Value;

use super::Identity;
use super::publication::Publication;
use super::rpc::{self, CallError};
use super::subscription::Subscription;

/// Period of the question for the master's process ID.
const PERIOD: Duration = Duration::from_secs(1);
/// Time limit for unregistering at the end.
const UNREGISTER_TIME_MAX: Duration = Duration::from_secs(1);
/// Stands for a type that is not known yet.
const ANY_TYPE: &str = "*";

/// The registration of a node.
pub(super) struct Registration {
    /// Name of the component, for log lines.
    component: String,
    identity: Arc<Identity>,
    subscriptions: Arc<[Arc<Subscription>]>,
    publications: Arc<[Arc<Publication>]>,
    /// Process ID of the master, or `None` if it is absent.
    master: Option<i32>,
    /// `true` if everything is registered with this master.
    is_complete: bool,
    /// `true` for each subscription that is registered.
    subscribed: Vec<bool>,
    /// The registered type of each publication.
    published: Vec<Option<String>>,
    /// `true` if the absence of the master is logged.
    logged: bool,
    /// Registrations with a master, the first one included.
    registered: Counter,
}

impl Registration {
    pub(super) fn new(
        component: String,
        identity: Arc<Identity>,
        subscriptions: Arc<[Arc<Subscription>]>,
        publications: Arc<[Arc<Publication>]>,
        registered: Counter,
    ) -> Self {
        Self {
            component,
            identity,
            subscribed: vec![false; subscriptions.len()],
            published: vec![None; publications.len()],
            subscriptions,
            publications,
            master: None,
            is_complete: false,
            logged: false,
            registered,
        }
    }

    /// Keeps the node registered until the component stops.
    pub(super) async fn run(mut self, mut stop: Stop) -> Result<(), Infallible> {
        let mut tick = interval(PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let publications = Arc::clone(&self.publications);
        loop {
            tokio::select! {
                () = stop.asked() => break,
                _ = tick.tick() => {}
                () = any_new_type(&publications) => {}
            }
            let done = tokio::select! {
                () = stop.asked() => break,
                done = self.step() => done,
            };
            match done {
                Ok(()) => self.complete(),
                Err(error) => self.lose(&error),
            }
        }
        // The master may be absent, and it forgets a node that does not answer.
        let _ = tokio::time::timeout(UNREGISTER_TIME_MAX, self.unregister()).await;
        Ok(())
    }

    /// Asks for the master and registers what is not registered yet.
    async fn step(&mut self) -> Result<(), CallError> {
        let master = self.call("getPid", Vec::new()).await?.as_int().ok_or(CallError::Result)?;
        if self.master != Some(master) {
            self.forget();
            self.master = Some(master);
        }
        for index in 0..self.subscriptions.len() {
            self.subscribe(index).await?;
        }
        for index in 0..self.publications.len() {
            self.publish(index).await?;
        }
        Ok(())
    }

    async fn subscribe(&mut self, index: usize) -> Result<(), CallError> {
        let (Some(subscription), Some(false)) = (self.subscriptions.get(index), self.subscribed.get(index)) else {
            return Ok(());
        };
        let params = vec![subscription.topic().into(), ANY_TYPE.into(), self.identity.api.as_str().into()];
        let publishers = self.call("registerSubscriber", params).await?;
        subscription.add_publishers(texts(&publishers).ok_or(CallError::Result)?);
        self.subscribed[index] = true;
        Ok(())
    }

    async fn publish(&mut self, index: usize) -> Result<(), CallError> {
        let Some(publication) = self.publications.get(index) else { return Ok(()) };
        let type_name = publication.type_name();
        if type_name == self.published[index] {
            return Ok(());
        }
        if self.published[index].take().is_some() {
            let params = vec![publication.topic().into(), self.identity.api.as_str().into()];
            self.call("unregisterPublisher", params).await?;
        }
        if let Some(type_name) = type_name {
            let params = vec![publication.topic().into(), type_name.as_str().into(), self.identity.api.as_str().into()];
            self.call("registerPublisher", params).await?;
            self.published[index] = Some(type_name);
        }
        Ok(())
    }

    /// Records that everything is registered.
    fn complete(&mut self) {
        if !std::mem::replace(&mut self.is_complete, true) {
            self.registered.increment();
            self.logged = false;
            tracing::info!(component = self.component, master = self.identity.master, "registered with the ROS master");
        }
    }

    fn lose(&mut self, error: &CallError) {
        self.forget();
        if !std::mem::replace(&mut self.logged, true) {
            let Identity { master, .. } = &*self.identity;
            tracing::warn!(component = self.component, master, %error, "no answer from the ROS master; retrying");
        }
    }

    /// Regards nothing as registered. The connections to publishers remain: they work without a master.
    fn forget(&mut self) {
        self.master = None;
        self.is_complete = false;
        self.subscribed.fill(false);
        self.published.fill(None);
    }

    async fn unregister(&self) {
        let api = || Value::from(self.identity.api.as_str());
        for (subscription, _) in self.subscriptions.iter().zip(&self.subscribed).filter(|(_, registered)| **registered)
        {
            let _ = self.call("unregisterSubscriber", vec![subscription.topic().into(), api()]).await;
        }
        for (publication, _) in self.publications.iter().zip(&self.published).filter(|(_, name)| name.is_some()) {
            let _ = self.call("unregisterPublisher", vec![publication.topic().into(), api()]).await;
        }
    }

    /// Calls a method of the master. The first parameter of each is the name of the node.
    async fn call(&self, method: &str, params: Vec<Value>) -> Result<Value, CallError> {
        let mut all = vec![Value::from(self.identity.name.as_str())];
        all.extend(params);
        rpc::call(&self.identity.master, method, all).await
    }
}

/// Waits until the type of a publication becomes known or changes.
async fn any_new_type(publications: &[Arc<Publication>]) {
    if publications.is_empty() {
        return std::future::pending().await;
    }
    let waits = publications.iter().map(|publication| Box::pin(publication.new_type()));
    futures_util::future::select_all(waits).await;
}

/// Returns the elements of an array of strings.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}
