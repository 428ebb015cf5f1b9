//! The start of an epoch: the store, new configurations, the lanes' clocks, and what was deferred.

use std::sync::Arc;

use windlass_core::sync::clock;

use crate::run::machine::{Halt, Machine};
use crate::run::sinks::trace::{Recorded, TraceName};

impl Machine {
    /// Does everything of an epoch that comes before its regions, in this order.
    pub(crate) async fn start_epoch(&mut self) -> Result<(), Halt> {
        // First of all: everything else may concern what a loop has taken along.
        let mut held = self.join_async_loops().await?;
        self.look_outside();
        self.commit_store();
        self.commit_config()?;
        self.add_taps();
        self.take_steps();
        self.record_epoch();
        self.tick_lanes();
        self.channels
            .set_lane_times(self.lanes.iter().map(|lane| lane.now));
        self.show_previous_ticks();
        self.channels
            .commit_deferred(&self.tables, &mut self.sinks)?;
        held.iter_mut().try_for_each(|held| self.commit(held))
    }

    /// What was written to the store becomes visible.
    pub(crate) fn commit_store(&mut self) {
        if self.channels.store_writes.is_empty() {
            return;
        }
        let mut writes = std::mem::take(&mut self.channels.store_writes);
        let count = writes.len();
        self.set_env(|env| {
            let store = Arc::make_mut(&mut env.store);
            for (key, value) in writes.drain(..) {
                store.set(&key, value);
            }
        });
        self.channels.store_writes = writes;
        self.sinks.counts.run.store_commits += 1;
        if self.sinks.trace.on {
            let mut event = Recorded::new(TraceName::StateCommit, self.env.epoch, clock::now());
            event.attributes.push(("keys", count.into()));
            self.sinks.trace.push(event);
        }
    }

    fn show_previous_ticks(&mut self) {
        for &edge in &self.tables.previous_tick {
            let now = self.lanes[self.tables.edges[edge].reader_lane].now;
            self.channels[edge].begin_epoch(now, &mut self.sinks.health);
        }
    }
}
