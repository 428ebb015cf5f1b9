//! What is due when: the reactor's waits for time.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_core::sync::clock;

use crate::guest::Ending;
use crate::object::Waiter;

/// Waits for time, by when they are due; in a replay by whose they are, because the recording says
/// when.
#[derive(Default)]
pub(super) struct Deadlines {
    waits: BTreeMap<(u64, u64), (Waiter, Ending)>,
    last: u64,
}

impl Deadlines {
    pub(super) fn add(&mut self, time: Duration, waiter: Waiter, ending: Ending) -> (u64, u64) {
        self.last += 1;
        let at = clock::now().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let key = (at, self.last);
        self.waits.insert(key, (waiter, ending));
        key
    }

    pub(super) fn add_for(&mut self, task: u64, waiter: Waiter, ending: Ending) -> (u64, u64) {
        let key = (task, waiter.generation.0);
        self.waits.insert(key, (waiter, ending));
        key
    }

    pub(super) fn remove(&mut self, key: (u64, u64)) -> Option<(Waiter, Ending)> {
        self.waits.remove(&key)
    }

    /// When the first is due.
    pub(super) fn first(&self) -> Option<u64> {
        self.waits.first_key_value().map(|((at, _), _)| *at)
    }

    /// The first, if it is due.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(Waiter, Ending)> {
        let due = self.first().is_some_and(|at| at <= now);
        due.then(|| self.waits.pop_first())
            .flatten()
            .map(|(_, wait)| wait)
    }
}
