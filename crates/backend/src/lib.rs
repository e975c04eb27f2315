//! Backend of a node: a cache of recent V2X messages with an HTTP API and the dashboard.
//!
//! [`cache`] holds the newest V2X messages; [`api`] answers requests about them and serves the dashboard. [`Backend`] joins
//! them: the caller passes each message to [`Backend::insert`] and calls [`Backend::tick`] once a second.
//!
//! Not here: receiving (the component [`ApiServer`] subscribes to bus topics) and storage beyond the memory of the process.

pub mod api;
pub mod cache;
mod component;
mod decoded;
mod figures;
mod live;
mod map_objects;
mod rates;
mod run;
mod settings;
mod sync;

use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use viaduct_bus::clock;
use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_units::{Now, Tai};

pub use component::{ApiServer, KINDS};
pub use settings::{ApiSettings, CacheSettings, LiveSettings, MapSource, SettingsError};

use cache::{MemoryCache, Rejected};
use live::Live;
use map_objects::MapObjects;
use rates::Rates;
use run::Run;

/// A message cache with its live clients and the map objects that the messages describe.
#[derive(Debug)]
pub struct Backend {
    run: Run,
    cache: MemoryCache,
    live: Arc<Live>,
    objects: RwLock<MapObjects>,
    /// Maximum age of a message; `None` if only memory limits it.
    retention: Option<Duration>,
    /// Held while a message enters the cache and is published, so that live clients receive messages in the order of their
    /// sequence numbers.
    intake: Mutex<()>,
    rates: Mutex<Rates>,
}

impl Backend {
    /// Creates an empty backend.
    ///
    /// # Errors
    /// Returns an error if a setting has an invalid value.
    pub fn new(settings: &ApiSettings) -> Result<Arc<Self>, SettingsError> {
        settings.check()?;
        Ok(Arc::new(Self {
            run: Run::started(clock::tai()),
            cache: MemoryCache::new(settings.cache.limits()),
            live: Arc::new(Live::new(settings.live.clients_max, settings.live.queue)),
            objects: RwLock::default(),
            retention: settings.cache.retention(),
            intake: Mutex::new(()),
            rates: Mutex::new(Rates::default()),
        }))
    }

    /// Adds a message to the cache, updates the map object that it describes, and queues it for the live clients. Never waits
    /// for a client.
    ///
    /// # Errors
    /// Returns an error if the cache rejects the message; the cache counts it.
    pub fn insert(&self, message: &V2xMessage) -> Result<(), Rejected> {
        let _intake = sync::lock(&self.intake);
        let entry = self.cache.insert(message)?;
        if MapObjects::describes_object(message) {
            sync::write(&self.objects).update(message);
        }
        self.live.publish(&entry);
        Ok(())
    }

    /// Drops expired messages and map objects, and closes the window of the rates. Call it once a second.
    pub fn tick(&self, now: Now) {
        if let Some(retention) = self.retention {
            let nanos = i64::try_from(retention.as_nanos()).unwrap_or(i64::MAX);
            self.cache.drop_before(Tai::from_nanos(now.tai.nanos().saturating_sub(nanos)));
        }
        sync::write(&self.objects).expire(now.tai);
        sync::lock(&self.rates).tick(now.mono, self.cache.stats().inserted_by_type);
    }

    /// Returns the cache.
    #[must_use]
    pub fn cache(&self) -> &MemoryCache {
        &self.cache
    }

    /// Returns the identity of this run, which distinguishes its sequence numbers from those of an earlier run.
    pub(crate) fn run(&self) -> Run {
        self.run
    }

    /// Returns the live clients.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Returns the events and infrastructure.
    pub(crate) fn objects(&self) -> &RwLock<MapObjects> {
        &self.objects
    }

    /// Returns messages per second over the last tick, by type in the order of the cache's counts.
    pub(crate) fn rates_hz(&self) -> [f64; cache::TYPES] {
        sync::lock(&self.rates).hz()
    }
}
