//! Counters of the bus that follow the totals of a state machine.

use viaduct_bus::Counter;

/// Bus counters that mirror totals counted elsewhere. `K` identifies a total.
pub(crate) struct CounterMirror<K> {
    rows: Vec<Row<K>>,
}

struct Row<K> {
    key: K,
    counter: Counter,
    /// The total at the last [`CounterMirror::sync`].
    seen: u64,
}

impl<K> CounterMirror<K> {
    /// Creates a mirror with one counter per key, opened by `counter`. All totals start at 0.
    pub(crate) fn new(keys: impl IntoIterator<Item = K>, counter: impl Fn(&K) -> Counter) -> Self {
        let rows = keys.into_iter().map(|key| Row { counter: counter(&key), key, seen: 0 });
        Self { rows: rows.collect() }
    }

    /// Adds to each counter the increase of its total since the last call. Returns the keys of the totals that
    /// increased, each with its increase.
    pub(crate) fn sync(&mut self, mut total: impl FnMut(&K) -> u64) -> Vec<(&K, u64)> {
        let mut increases = Vec::new();
        for row in &mut self.rows {
            let now = total(&row.key);
            let increase = now.saturating_sub(row.seen);
            // Two totals that are read one after the other may differ by an event: a decrease is not counted twice.
            row.seen = row.seen.max(now);
            row.counter.add(increase);
            if increase > 0 {
                increases.push((&row.key, increase));
            }
        }
        increases
    }

    /// Resets the known totals to 0, for a state machine that was created anew. The counters keep their values.
    pub(crate) fn restart(&mut self) {
        for row in &mut self.rows {
            row.seen = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use viaduct_bus::Bus;

    use super::*;

    #[test]
    fn counters_add_up_the_increases_of_their_totals() {
        let bus = Bus::new("t");
        let mut mirror = CounterMirror::new(["a", "b"], |name| bus.counter("component", name, None));
        let value = |name| bus.counter("component", name, None).value();
        assert_eq!(mirror.sync(|name| if *name == "a" { 3 } else { 0 }), [(&"a", 3)]);
        assert_eq!(mirror.sync(|name| if *name == "a" { 2 } else { 0 }), []);
        assert_eq!(mirror.sync(|name| if *name == "a" { 5 } else { 1 }), [(&"a", 2), (&"b", 1)]);
        mirror.restart();
        assert_eq!(mirror.sync(|_| 4), [(&"a", 4), (&"b", 4)]);
        assert_eq!((value("a"), value("b")), (9, 5));
    }
}
