//! Topic filters with wildcards as a tree of levels, so that few of them are compared with a topic name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::topic::matches;

/// Levels of the tree. A level takes about 800 bytes, and a filter may have hundreds of them.
const DEPTH: usize = 8;

/// A level of the tree and what is below it.
#[derive(Debug, Default)]
pub(super) struct FilterTree {
    /// Next levels, `+` among them.
    next: BTreeMap<Box<str>, FilterTree>,
    /// The filter that ends here.
    filter: Option<Arc<str>>,
    /// The filter that ends with `#` below this level.
    rest: Option<Arc<str>>,
    /// At the last level of the tree: the filters with more levels.
    deep: BTreeSet<Arc<str>>,
}

impl FilterTree {
    pub(super) fn insert(&mut self, filter: &Arc<str>) {
        let mut node = self;
        for (depth, level) in filter.split('/').enumerate() {
            if depth == DEPTH {
                node.deep.insert(Arc::clone(filter));
                return;
            }
            if level == "#" {
                node.rest = Some(Arc::clone(filter));
                return;
            }
            node = node.next.entry(level.into()).or_default();
        }
        node.filter = Some(Arc::clone(filter));
    }

    pub(super) fn remove(&mut self, filter: &str) {
        self.remove_below(filter, filter.split('/').enumerate());
    }

    fn remove_below<'a>(&mut self, filter: &str, mut levels: impl Iterator<Item = (usize, &'a str)>) {
        match levels.next() {
            None => self.filter = None,
            Some((DEPTH, _)) => _ = self.deep.remove(filter),
            Some((_, "#")) => self.rest = None,
            Some((_, level)) => {
                if let Some(next) = self.next.get_mut(level) {
                    next.remove_below(filter, levels);
                    if next.is_empty() {
                        self.next.remove(level);
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.next.is_empty() && self.filter.is_none() && self.rest.is_none() && self.deep.is_empty()
    }

    /// Returns the filters that match a topic name (MQTT 3.1.1, 4.7).
    pub(super) fn matching(&self, name: &str) -> Vec<&Arc<str>> {
        let mut found = Vec::new();
        // Topics that begin with $ match no wildcard at the first level.
        let wildcards = !name.starts_with('$');
        self.collect(name, Some(name), wildcards, &mut found);
        found
    }

    /// Collects the filters that match `name`. The levels from here on are `after`; `None` is the end of the name.
    fn collect<'a>(&'a self, name: &str, after: Option<&str>, wildcards: bool, found: &mut Vec<&'a Arc<str>>) {
        if wildcards {
            found.extend(&self.rest);
        }
        found.extend(self.deep.iter().filter(|filter| matches(filter, name)));
        let Some(after) = after else { return found.extend(&self.filter) };
        let (level, rest) = after.split_once('/').map_or((after, None), |(level, rest)| (level, Some(rest)));
        for key in [Some(level), wildcards.then_some("+")].into_iter().flatten() {
            if let Some(next) = self.next.get(key) {
                next.collect(name, rest, true, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topic::is_topic_filter;

    /// Returns texts of more levels than the tree has, or less.
    fn levels(level: &'static str) -> impl Strategy<Value = String> {
        prop::collection::vec(level, DEPTH - 2..DEPTH + 3).prop_map(|levels| levels.join("/"))
    }

    /// Returns filters with and without `#` at the end.
    fn long_filters() -> impl Strategy<Value = String> {
        (levels("[a+]"), any::<bool>()).prop_map(|(filter, has_rest)| filter + if has_rest { "/#" } else { "" })
    }

    #[test]
    fn a_filter_of_many_levels_takes_few_levels_of_the_tree() {
        let mut tree = FilterTree::default();
        tree.insert(&"+/".repeat(500).into());
        let (mut node, mut depth) = (&tree, 0);
        while let Some(next) = node.next.values().next() {
            (node, depth) = (next, depth + 1);
        }
        assert_eq!((depth, node.deep.len()), (DEPTH, 1));
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_a_comparison_with_each_filter_finds(
            filters in prop::collection::btree_set(prop_oneof!["[ab+#$/]{1,6}".boxed(), long_filters().boxed()], 1..20),
            names in prop::collection::vec(prop_oneof!["[ab$/]{1,6}".boxed(), levels("a").boxed()], 1..10),
        ) {
            let filters: Vec<Arc<str>> = filters.iter().filter(|own| is_topic_filter(own)).map(|own| Arc::from(&**own)).collect();
            let mut tree = FilterTree::default();
            filters.iter().for_each(|filter| tree.insert(filter));
            for kept in (0..=filters.len()).rev() {
                for name in &names {
                    let mut found = tree.matching(name);
                    found.sort();
                    let expected: Vec<_> = filters[..kept].iter().filter(|filter| matches(filter, name)).collect();
                    prop_assert_eq!(found, expected, "{}", name);
                }
                if let Some(last) = kept.checked_sub(1) {
                    tree.remove(&filters[last]);
                }
            }
            prop_assert!(tree.is_empty());
        }
    }
}
