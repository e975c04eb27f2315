//! Topic filters with wildcards as a tree of levels, so that few of them are compared with a topic name.

use std::{collections::BTreeMap, sync::Arc};

/// A level of the tree and what is below it.
#[derive(Debug, Default)]
pub(super) struct FilterTree {
    /// Next levels, `+` among them.
    next: BTreeMap<Box<str>, FilterTree>,
    /// The filter that ends here.
    filter: Option<Arc<str>>,
    /// The filter that ends with `#` below this level.
    rest: Option<Arc<str>>,
}

impl FilterTree {
    pub(super) fn insert(&mut self, filter: &Arc<str>) {
        let mut node = self;
        for level in filter.split('/') {
            if level == "#" {
                node.rest = Some(Arc::clone(filter));
                return;
            }
            node = node.next.entry(level.into()).or_default();
        }
        node.filter = Some(Arc::clone(filter));
    }

    pub(super) fn remove(&mut self, filter: &str) {
        self.remove_below(filter.split('/'));
    }

    fn remove_below<'a>(&mut self, mut levels: impl Iterator<Item = &'a str>) {
        match levels.next() {
            None => self.filter = None,
            Some("#") => self.rest = None,
            Some(level) => {
                if let Some(next) = self.next.get_mut(level) {
                    next.remove_below(levels);
                    if next.is_empty() {
                        self.next.remove(level);
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.next.is_empty() && self.filter.is_none() && self.rest.is_none()
    }

    /// Returns the filters that match a topic name (MQTT 3.1.1, 4.7).
    pub(super) fn matching(&self, name: &str) -> Vec<&Arc<str>> {
        let mut found = Vec::new();
        // Topics that begin with $ match no wildcard at the first level.
        let wildcards = !name.starts_with('$');
        self.collect(Some(name), wildcards, &mut found);
        found
    }

    /// Collects the filters that match the levels of `name` from here on; `None` is the end of the name.
    fn collect<'a>(&'a self, name: Option<&str>, wildcards: bool, found: &mut Vec<&'a Arc<str>>) {
        if wildcards {
            found.extend(&self.rest);
        }
        let Some(name) = name else { return found.extend(&self.filter) };
        let (level, rest) = name.split_once('/').map_or((name, None), |(level, rest)| (level, Some(rest)));
        for key in [Some(level), wildcards.then_some("+")].into_iter().flatten() {
            if let Some(next) = self.next.get(key) {
                next.collect(rest, true, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topic::{is_topic_filter, matches};

    proptest! {
        #[test]
        fn the_tree_finds_what_a_comparison_with_each_filter_finds(
            filters in prop::collection::btree_set("[ab+#$/]{1,6}", 1..20),
            names in prop::collection::vec("[ab$/]{1,6}", 1..10),
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
