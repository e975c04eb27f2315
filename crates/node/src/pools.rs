//! Number of buffers in the pool of each topic, so that a publisher never finds the pool empty.
//!
//! A buffer is in use from its loan until the last reader releases the message. At most these buffers are in use:
//! - of each reader: the depth of its queue, and the samples that it holds;
//! - of each publisher: the loans that it fills, and the samples that it keeps for late joiners;
//! - of each observer: two.

use std::collections::BTreeSet;

use viaduct_bus::{Durability, LOAN_BYTES_MAX, OBSERVERS_MAX, POOL_BUFFERS_MAX, POOL_BYTES_MAX, PoolSize};
use viaduct_messages::topic;

use crate::component::{Edge, Loans};
use crate::config::{NodeFile, PoolSettings, Problem};
use crate::graph::{Draft, Resolved, outputs, published, setting_key};

/// Maximum number of buffers of one topic that an observer holds: one queued and one that it copies.
const OBSERVER_BUFFERS_MAX: usize = 2;

/// Returns the pools of a node by topic. Reports each entry of a topic that no component publishes, buffers that are
/// too few or too short, and pools that are too large.
pub(crate) fn plan(draft: &mut Draft) -> Vec<(String, PoolSize)> {
    let (mut pools, mut problems) = (Vec::new(), Vec::new());
    for name in topics_with_pools(draft) {
        match Topic::of(name, &draft.node, &draft.components).plan(draft) {
            Ok(Some(size)) => pools.push((name.to_owned(), size)),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    for problem in problems {
        draft.document.report(&problem.key, problem.text);
    }
    pools
}

/// Returns the topics of the file, and those with a publisher that loans buffers.
fn topics_with_pools(draft: &Draft) -> BTreeSet<&str> {
    let in_file = draft.node.topics.keys().map(String::as_str);
    let loaned = outputs(&draft.components).filter(|(_, edge)| edge.loans.is_some());
    in_file.chain(loaned.map(|(_, edge)| edge.pattern.as_str()).filter(|pattern| topic::is_name(pattern))).collect()
}

/// A topic with the publishers and readers that hold its buffers.
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

    /// Returns the size of the topic's pool, or `None` if it has no pool.
    fn plan(&self, draft: &Draft) -> Result<Option<PoolSize>, Problem> {
        let problem = |text| Problem::new(format!("topics.{}", self.name), text);
        topic::check_name(self.name).map_err(|error| problem(error.to_string()))?;
        if self.publishers.is_empty() {
            if draft.is_doubtful {
                return Ok(None);
            }
            let has = published(&draft.components);
            return Err(problem(format!("no component of the node publishes `{}`; it publishes {has}", self.name)));
        }
        if self.settings.is_none() && self.publishers.iter().all(|(_, edge)| edge.loans.is_none()) {
            return Ok(None);
        }
        self.pool(draft.node.memory.huge_pages).map(Some)
    }

    fn pool(&self, huge_pages: bool) -> Result<PoolSize, Problem> {
        let (bytes, sum) = (self.bytes()?, self.sum());
        let buffers = self.settings.and_then(|pool| pool.buffers).unwrap_or(sum.total);
        if buffers < sum.total {
            let are = if buffers == 1 { "buffer is" } else { "buffers are" };
            return Err(Problem::new(self.key("buffers"), format!("{buffers} {are} too few: {sum}")));
        }
        let size = PoolSize { buffers, bytes, huge_pages };
        if size.region_bytes().is_none() {
            let problem = format!(
                "{buffers} buffers of {bytes} bytes are more than a pool can have, which is {POOL_BUFFERS_MAX} buffers \
                 and {POOL_BYTES_MAX} bytes; needed are {sum}"
            );
            return Err(Problem::new(self.key(""), problem));
        }
        Ok(size)
    }

    /// Returns the bytes of a buffer: those of the file, or those that the publishers need.
    fn bytes(&self) -> Result<usize, Problem> {
        let problem = |text| Err(Problem::new(self.key("bytes"), text));
        let loans = self.publishers.iter().filter_map(|(name, edge)| Some((*name, edge.loans?.bytes)));
        let (publisher, needed) = loans.max_by_key(|(_, bytes)| *bytes).unwrap_or_default();
        let bytes = self.settings.and_then(|pool| pool.bytes).unwrap_or(needed);
        match bytes {
            0 if needed == 0 => problem("no publisher declares the length of its messages; set 1 or more".into()),
            _ if bytes < needed => problem(format!("{bytes} bytes are too few: `{publisher}` fills {needed}")),
            _ if bytes > LOAN_BYTES_MAX => problem(format!("{bytes} bytes are more than {LOAN_BYTES_MAX}")),
            _ => Ok(bytes),
        }
    }

    /// Returns the number of buffers that can be in use at the same time.
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

    /// Returns the path of the setting that determines the pool's size: the topic's own key, or else the setting of the
    /// first publisher that loans buffers.
    fn key(&self, below: &str) -> String {
        let loaning = self.publishers.iter().find(|(_, edge)| edge.loans.is_some());
        match loaning.filter(|_| self.settings.is_none()) {
            Some((name, edge)) => setting_key(name, &edge.setting),
            None => format!("topics.{}.pool.{below}", self.name).trim_end_matches('.').to_owned(),
        }
    }
}

/// A number of buffers with its terms, for errors.
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
