//! Topic ids: registered per client (6.5), predefined, and short (6.7).

use std::{collections::BTreeMap, sync::Arc};

use super::settings::{GatewaySettings, PredefinedTopics};
use crate::codec::{ShortTopic, TopicId};

/// Registered topic ids of one client.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicTable {
    /// Names by topic id, from 1.
    entries: Vec<Entry>,
    ids: BTreeMap<Arc<str>, u16>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Arc<str>,
    /// `true` if the client has the id.
    confirmed: bool,
}

impl TopicTable {
    /// Returns a table with the topics of a storage, as far as their ids follow each other.
    pub(super) fn restored(topics: BTreeMap<u16, Arc<str>>) -> Self {
        let mut table = Self::default();
        for (expected, (id, name)) in (1..).zip(topics) {
            if id != expected || table.ids.contains_key(&name) {
                break;
            }
            table.ids.insert(Arc::clone(&name), id);
            table.entries.push(Entry { name, confirmed: false });
        }
        table
    }

    pub(super) fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.entry(id).map(|entry| &entry.name)
    }

    pub(super) fn id(&self, name: &str) -> Option<u16> {
        self.ids.get(name).copied()
    }

    fn entry(&self, id: u16) -> Option<&Entry> {
        self.entries.get(usize::from(id).checked_sub(1)?)
    }

    fn entry_mut(&mut self, id: u16) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(id).checked_sub(1)?)
    }

    /// Returns `true` if the client has the id.
    pub(super) fn is_confirmed(&self, id: u16) -> bool {
        self.entry(id).is_some_and(|entry| entry.confirmed)
    }

    pub(super) fn set_confirmed(&mut self, id: u16, confirmed: bool) {
        if let Some(entry) = self.entry_mut(id) {
            entry.confirmed = confirmed;
        }
    }

    /// Marks all ids as unknown to the client, which may have lost its memory.
    pub(super) fn forget_confirmations(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.confirmed = false);
    }

    /// Returns the id of a name, or assigns the next one if there are less than `max`. Returns `None` if all are in use.
    pub(super) fn assign(&mut self, name: &str, max: usize) -> Option<Assigned> {
        if let Some(id) = self.id(name) {
            return Some(Assigned { id, new: false });
        }
        if self.entries.len() >= max {
            return None;
        }
        let (id, name) = (u16::try_from(self.entries.len() + 1).ok()?, Arc::<str>::from(name));
        self.entries.push(Entry { name: Arc::clone(&name), confirmed: false });
        self.ids.insert(name, id);
        Some(Assigned { id, new: true })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Arc<str>)> {
        (1..).zip(self.entries.iter().map(|entry| &entry.name))
    }
}

/// Result of [`TopicTable::assign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) id: u16,
    pub(super) new: bool,
}

/// Predefined topics of the gateway and of single clients, in both directions.
#[derive(Debug, Default)]
pub(super) struct Predefined {
    all: Topics,
    of_clients: BTreeMap<String, Topics>,
}

#[derive(Debug, Default)]
struct Topics {
    names: PredefinedTopics,
    ids: BTreeMap<Arc<str>, u16>,
}

impl From<&PredefinedTopics> for Topics {
    fn from(names: &PredefinedTopics) -> Self {
        Self { names: names.clone(), ids: names.iter().map(|(id, name)| (Arc::clone(name), *id)).collect() }
    }
}

impl Predefined {
    pub(super) fn new(settings: &GatewaySettings) -> Self {
        let of_clients = settings.predefined_of_clients.iter();
        Self {
            all: Topics::from(&settings.predefined),
            of_clients: of_clients.map(|(client, topics)| (client.clone(), Topics::from(topics))).collect(),
        }
    }

    /// Returns the name of a predefined id. `client` is `None` for a node without a session.
    pub(super) fn name(&self, client: Option<&str>, id: u16) -> Option<&Arc<str>> {
        let own = client.and_then(|client| self.of_clients.get(client)?.names.get(&id));
        own.or_else(|| self.all.names.get(&id))
    }

    /// Returns the predefined id of a name. An id that the client's own table defines otherwise does not count.
    fn id(&self, client: &str, name: &str) -> Option<u16> {
        let own = self.of_clients.get(client);
        let own_id = own.and_then(|topics| topics.ids.get(name));
        let common = || self.all.ids.get(name).filter(|id| own.is_none_or(|topics| !topics.names.contains_key(id)));
        own_id.or_else(common).copied()
    }
}

/// Topic of a message to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outward {
    /// The client has this id.
    Known(TopicId),
    /// The client must be sent this id first.
    Register(Assigned),
    /// All ids are in use.
    Full,
}

impl TopicTable {
    /// Returns the topic id of a name for a message to the client.
    ///
    /// An id that the client has comes first; then names and ids that need no registration.
    pub(super) fn outward(&mut self, client: &str, name: &str, predefined: &Predefined, max: usize) -> Outward {
        if let Some(id) = self.id(name).filter(|id| self.is_confirmed(*id)) {
            return Outward::Known(TopicId::Normal(id));
        }
        if let Some(short) = ShortTopic::from_name(name) {
            return Outward::Known(TopicId::Short(short));
        }
        if let Some(id) = predefined.id(client, name) {
            return Outward::Known(TopicId::Predefined(id));
        }
        self.assign(name, max).map_or(Outward::Full, Outward::Register)
    }
}
