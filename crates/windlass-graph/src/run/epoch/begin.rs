//! The start of an epoch: the store, new configurations, the lanes' clocks, and what was deferred.

use std::sync::Arc;

use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{EpochInputs, Sink, StoreCommit};

impl RunState {
    /// Does everything of an epoch that comes before its regions, in this order.
    pub(crate) async fn start_epoch(&mut self) -> Result<(), Halt> {
        // First of all: everything else may concern what a loop has taken along.
        let mut held = self.join_async_loops().await?;
        self.members.look_outside();
        self.commit_store();
        for transaction in self.inbox.take_transactions() {
            self.lifecycle().commit_config(transaction)?;
        }
        let (taps, channels) = self.channels.taps();
        taps.add(self.inbox.take_taps(), channels);
        if self.lanes.has_turns() && self.env.decisions.is_none() {
            self.lanes.take_steps(self.inbox.take_steps());
        }
        self.sinks.epoch_inputs(&EpochInputs {
            epoch: self.env.epoch,
            lanes: &self.lanes,
            members: &self.members,
        });
        self.tick_lanes();
        self.show_previous_ticks();
        self.commit_deferred()?;
        held.iter_mut().try_for_each(|held| self.commit(held))
    }

    /// Makes what was written to the store visible.
    pub(crate) fn commit_store(&mut self) {
        let writes = self.channels.store_writes();
        if writes.is_empty() {
            return;
        }
        let count = writes.len();
        // As `env_mut`, while the writes are borrowed.
        let store = Arc::make_mut(&mut Arc::make_mut(&mut self.env).store);
        for (key, value) in writes.drain(..) {
            store.set(&key, value);
        }
        self.sinks.store_commit(&StoreCommit {
            epoch: self.env.epoch,
            keys: count,
        });
    }

    /// Begins a tick of every lane that is due.
    fn tick_lanes(&mut self) {
        for place in 0..self.lanes.times().len() {
            if !self.lanes.lane(place).is_due() {
                continue;
            }
            let nearest = match self.lanes.is_real() {
                true => None,
                false => self.nearest_wake(place),
            };
            self.lanes
                .begin_tick(place, nearest, self.env.epoch, &mut self.sinks);
        }
    }

    /// The values of the epoch before become visible on edges that say so.
    fn show_previous_ticks(&mut self) {
        for &edge in &self.tables.previous_tick {
            let now = self.lanes.time(self.tables.edges[edge].reader_lane);
            self.channels[edge].begin_epoch(now, &mut self.sinks.health);
        }
    }
}
