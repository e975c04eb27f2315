//! Counters of the bus that follow those of a machine.

use viaduct_bus::Counter;
use viaduct_node::Context;

use crate::counter_mirror::CounterMirror;

/// Counters that mirror the totals of the machine `M`.
pub(crate) struct MachineCounters<M> {
    mirror: CounterMirror<Total<M>>,
}

/// A total of the machine: name and reason of its counter, and the function that reads it.
struct Total<M> {
    name: &'static str,
    reason: Option<&'static str>,
    read: Box<dyn Fn(&M) -> u64 + Send>,
}

/// The totals of a machine.
pub(crate) struct Totals<M>(Vec<Total<M>>);

impl<M> MachineCounters<M> {
    /// Creates the counters of the totals that `declare` adds.
    pub(crate) fn new<C: Send + 'static>(context: &Context<C>, declare: impl FnOnce(&mut Totals<M>)) -> Self {
        let mut totals = Totals(Vec::new());
        declare(&mut totals);
        let counter = |total: &Total<M>| -> Counter {
            match total.reason {
                Some(reason) => context.counter_for(total.name, reason),
                None => context.counter(total.name),
            }
        };
        Self { mirror: CounterMirror::new(totals.0, counter) }
    }

    /// Adds what the machine has counted since the last call.
    pub(crate) fn sync(&mut self, machine: &M) {
        self.mirror.sync(|total| (total.read)(machine));
    }
}

impl<M> Totals<M> {
    /// Adds a counter.
    pub(crate) fn one(&mut self, name: &'static str, read: impl Fn(&M) -> u64 + Send + 'static) {
        self.0.push(Total { name, reason: None, read: Box::new(read) });
    }

    /// Adds a counter for each of several reasons.
    pub(crate) fn each<R: Copy + Send + 'static>(
        &mut self,
        name: &'static str,
        reasons: &[R],
        label: impl Fn(R) -> &'static str,
        read: impl Fn(&M, R) -> u64 + Copy + Send + 'static,
    ) {
        for reason in reasons.iter().copied() {
            let total =
                Total { name, reason: Some(label(reason)), read: Box::new(move |machine| read(machine, reason)) };
            self.0.push(total);
        }
    }
}
