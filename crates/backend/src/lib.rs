//! The back-end of a node: what it received lately, over HTTP.
//!
//! [`cache`] holds the newest V2X messages; [`api`] answers about them and shows the dashboard. [`Backend`] joins them:
//! whoever feeds it calls [`Backend::insert`] for each message and [`Backend::tick`] once a second.

pub mod api;
pub mod cache;
mod component;
mod decoded;
mod live;
mod rates;
mod run;
mod settings;
mod sync;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use viaduct_bus::clock;
use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_units::{Now, Tai};

pub use component::{ApiServer, KINDS};
pub use settings::{ApiSettings, CacheSettings, LiveSettings, MapSource, SettingsError};

use cache::{Cache as _, MemoryCache, Rejected};
use live::Live;
use rates::Rates;
use run::Run;

/// The cache, and those who wait for what enters it.
#[derive(Debug)]
pub struct Backend {
    run: Run,
    cache: MemoryCache,
    live: Arc<Live>,
    /// How long a message is kept at most.
    retention: Option<Duration>,
    /// Held while a message enters the cache and is published, so that live clients get them in the order of their
    /// sequence numbers.
    intake: Mutex<()>,
    rates: Mutex<Rates>,
}

impl Backend {
    /// A back-end without messages.
    ///
    /// # Errors
    /// A setting that has a wrong value.
    pub fn new(settings: &ApiSettings) -> Result<Arc<Self>, SettingsError> {
        settings.check()?;
        Ok(Arc::new(Self {
            run: Run::started(clock::tai()),
            cache: MemoryCache::new(settings.cache.limits()),
            live: Arc::new(Live::new(settings.live.clients_max, settings.live.queue)),
            retention: settings.cache.retention(),
            intake: Mutex::new(()),
            rates: Mutex::new(Rates::default()),
        }))
    }

    /// Takes a message into the cache and hands it to the live clients. Never waits for a client.
    ///
    /// # Errors
    /// Why the message is not taken; the cache counts it.
    pub fn insert(&self, message: &V2xMessage) -> Result<(), Rejected> {
        let _intake = sync::lock(&self.intake);
        let entry = self.cache.insert(message)?;
        self.live.publish(&entry);
        Ok(())
    }

    /// Drops what is too old, and closes the window of the rates. To be called once a second.
    pub fn tick(&self, now: Now) {
        if let Some(retention) = self.retention {
            let nanos = i64::try_from(retention.as_nanos()).unwrap_or(i64::MAX);
            self.cache.drop_before(Tai::from_nanos(now.tai.nanos().saturating_sub(nanos)));
        }
        sync::lock(&self.rates).tick(now.mono, self.cache.stats().inserted_by_type);
    }

    /// The messages.
    #[must_use]
    pub fn cache(&self) -> &MemoryCache {
        &self.cache
    }

    /// What tells the sequence numbers of this cache from those of an earlier one.
    pub(crate) fn run(&self) -> Run {
        self.run
    }

    /// Those who wait for messages.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Messages per second over the last tick, by type in the order of the cache's counts.
    pub(crate) fn rates_hz(&self) -> [f64; cache::TYPES] {
        sync::lock(&self.rates).hz()
    }
}
