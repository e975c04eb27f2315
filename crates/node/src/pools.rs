//! How many buffers the pool of each topic needs, so that a publisher never finds it empty.
//!
//! A buffer is in use from when it is lent until its last reader lets go of the message. A reader holds as many as its
//! queue is deep, and those that it works on; a publisher those that it fills, and those that it keeps for late readers;
//! and observers look on.

use std::collections::BTreeSet;

use viaduct_bus::{Durability, LOAN_BYTES_MAX, OBSERVERS_MAX, POOL_BUFFERS_MAX, POOL_BYTES_MAX, PoolSize};
use viaduct_messages::topic;

use crate::component::{Edge, Loans};
use crate::config::{ConfigError, NodeFile, PoolSettings};
use crate::graph::{Resolved, Source, outputs, setting_key};

/// Buffers of one topic that an observer holds at most: one queued and one that it looks at.
const OBSERVER_BUFFERS_MAX: usize = 2;

/// The pools of a node by topic.
///
/// # Errors
/// An entry of a topic that nobody publishes, buffers that are too few or too short, or a pool that is too large.
pub(crate) fn plan(
    source: &Source<'_>,
    node: &NodeFile,
    components: &[Resolved],
) -> Result<Vec<(String, PoolSize)>, ConfigError> {
    let in_file = node.topics.keys().map(String::as_str);
    let loaned = outputs(components).filter(|(_, edge)| edge.loans.is_some()).map(|(_, edge)| edge.pattern.as_str());
    let names: BTreeSet<&str> = in_file.chain(loaned.filter(|pattern| topic::is_name(pattern))).collect();
    let mut pools = Vec::new();
    for name in names {
        let topic = Topic::of(name, node, components);
        topic.check_published(source, components)?;
        if topic.has_pool() {
            pools.push((name.to_owned(), topic.pool(source, node.memory.huge_pages)?));
        }
    }
    Ok(pools)
}

/// A topic with all that hold its buffers.
struct Topic<'a> {
    name: &'a str,
    settings: Option<&'a PoolSettings>,
    publishers: Vec<(&'a str, &'a Edge)>,
    readers: Vec<(&'a str, &'a Edge)>,
}

impl<'a> Topic<'a> {
    fn of(name: &'a str, node: &'a NodeFile, components: &'a [Resolved]) -> Self {
        let inputs = components.iter().flat_map(|one| one.settings.edges.inputs.iter().map(|edge| (&*one.name, edge)));
        Self {
            name,
            settings: node.topics.get(name).and_then(|topic| topic.pool.as_ref()),
            publishers: outputs(components).filter(|(_, edge)| topic::overlap(&edge.pattern, name)).collect(),
            readers: inputs.filter(|(_, edge)| topic::overlap(&edge.pattern, name)).collect(),
        }
    }

    fn check_published(&self, source: &Source<'_>, components: &[Resolved]) -> Result<(), ConfigError> {
        let refuse = |problem| Err(source.error(format!("topics.{}", self.name), problem));
        if let Err(error) = topic::check_name(self.name) {
            return refuse(error.to_string());
        }
        if !self.publishers.is_empty() {
            return Ok(());
        }
        let topics: Vec<&str> = outputs(components).map(|(_, edge)| edge.pattern.as_str()).collect();
        let has = if topics.is_empty() { "nothing".to_owned() } else { format!("`{}`", topics.join("`, `")) };
        refuse(format!("no component of the node publishes `{}`; it publishes {has}", self.name))
    }

    fn has_pool(&self) -> bool {
        self.settings.is_some() || self.publishers.iter().any(|(_, edge)| edge.loans.is_some())
    }

    fn pool(&self, source: &Source<'_>, huge_pages: bool) -> Result<PoolSize, ConfigError> {
        let (octets, sum) = (self.octets(source)?, self.sum());
        let buffers = self.settings.and_then(|pool| pool.buffers).unwrap_or(sum.total);
        if buffers < sum.total {
            let are = if buffers == 1 { "buffer is" } else { "buffers are" };
            return Err(source.error(self.key("buffers"), format!("{buffers} {are} too few: {sum}")));
        }
        let size = PoolSize { buffers, bytes: octets, huge_pages };
        if size.region_bytes().is_none() {
            let problem = format!(
                "{buffers} buffers of {octets} octets are more than a pool has, which is {POOL_BUFFERS_MAX} buffers and \
                 {POOL_BYTES_MAX} octets; needed are {sum}"
            );
            return Err(source.error(self.key(""), problem));
        }
        Ok(size)
    }

    /// Octets of a buffer: as the file says, or as the publishers need.
    fn octets(&self, source: &Source<'_>) -> Result<usize, ConfigError> {
        let refuse = |problem| Err(source.error(self.key("octets"), problem));
        let loans = self.publishers.iter().filter_map(|(name, edge)| Some((*name, edge.loans?.octets)));
        let (publisher, needed) = loans.max_by_key(|(_, octets)| *octets).unwrap_or_default();
        let octets = self.settings.and_then(|pool| pool.octets).unwrap_or(needed);
        match octets {
            0 if needed == 0 => {
                refuse("no publisher says how long its messages are; a number from 1 on is needed".into())
            }
            _ if octets < needed => refuse(format!("{octets} octets are too few: `{publisher}` fills {needed}")),
            _ if octets > LOAN_BYTES_MAX => refuse(format!("{octets} octets are more than {LOAN_BYTES_MAX}")),
            _ => Ok(octets),
        }
    }

    /// All buffers that can be in use at a time.
    fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for (name, edge) in &self.readers {
            let (queued, held) = (edge.qos.depth(), edge.held);
            sum.add(queued.saturating_add(held), format!("{queued} queued and {held} held by `{name}`"));
        }
        for (name, edge) in &self.publishers {
            let filling = edge.loans.map_or(1, |loans: Loans| loans.filling);
            match edge.qos.durability {
                Durability::Volatile => sum.add(filling, format!("{filling} filling in `{name}`")),
                Durability::TransientLocal => {
                    let kept = edge.qos.depth();
                    sum.add(filling.saturating_add(kept), format!("{filling} filling and {kept} kept in `{name}`"));
                }
            }
        }
        let observed = OBSERVERS_MAX * OBSERVER_BUFFERS_MAX;
        sum.add(observed, format!("{observed} for observers"));
        sum
    }

    /// Path of what says a pool's size: its own key, or the first publisher's setting.
    fn key(&self, below: &str) -> String {
        let loaning = self.publishers.iter().find(|(_, edge)| edge.loans.is_some());
        match loaning.filter(|_| self.settings.is_none()) {
            Some((name, edge)) => setting_key(name, &edge.setting),
            None => format!("topics.{}.pool.{below}", self.name).trim_end_matches('.').to_owned(),
        }
    }
}

/// A number of buffers, term by term.
#[derive(Default)]
struct Sum {
    total: usize,
    terms: Vec<String>,
}

impl Sum {
    fn add(&mut self, buffers: usize, term: String) {
        self.total = self.total.saturating_add(buffers);
        self.terms.push(term);
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.terms.join(", "), self.total)
    }
}
