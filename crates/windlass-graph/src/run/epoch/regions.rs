//! The regions of an epoch, one after another or overlapping.

use windlass_core::sync::clock;

use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{EpochBegin, EpochEnd, Sink};
use crate::run::state::tables::NOT_HERE;
use windlass_plan::compile::{Plan, Region};

impl RunState {
    /// Runs one epoch; returns whether anything ran. A source that waits for room does not count,
    /// unless its reader may not have had its turn: if nothing else runs either, nothing will ever
    /// make room.
    pub(crate) async fn epoch(&mut self) -> Result<bool, Halt> {
        let before = self.ran();
        let start = self.begin_iteration();
        let done = self.regions().await;
        let ended = self.end_iteration(start);
        done.and(ended)?;
        Ok(self.ran() > before)
    }

    /// Returns how many invocations there were that count as something that ran.
    fn ran(&self) -> u64 {
        match self.lanes.has_turns() {
            true => self.calls.ticks(),
            false => self.calls.ticks_not_held(),
        }
    }

    async fn regions(&mut self) -> Result<(), Halt> {
        self.start_epoch().await?;
        match self.tables.overlap.is_possible {
            true => self.regions_overlapping().await?,
            false => {
                let tables = self.tables.clone();
                let plan = &*tables.plan;
                for &place in &plan.order {
                    // Most are run here, without a future to wait for.
                    let component = tables.here[place];
                    if component == NOT_HERE {
                        self.region_in_turn(plan, place).await?;
                    } else if !self.skips(&plan.regions[place]) {
                        self.step_inline(component as usize, 0)?;
                    }
                }
            }
        }
        self.feed_taps();
        self.sinks.trace_health(self.env.epoch);
        Ok(())
    }

    /// Runs a region in its turn: everything before it is committed.
    pub(crate) async fn region_in_turn(&mut self, plan: &Plan, place: usize) -> Result<(), Halt> {
        let region = &plan.regions[place];
        if self.skips(region) {
            return Ok(());
        }
        match region.composite_loop {
            None => self.step(region.components[0], 0).await.map(|_| ()),
            Some(composite) => self.run_loop(place, composite).await,
        }
    }

    /// Whether none of its lanes is due in this epoch.
    pub(crate) fn skips(&self, region: &Region) -> bool {
        self.lanes.has_turns() && !self.is_due(region)
    }

    /// Whether a lane of one of its members is due.
    fn is_due(&self, region: &Region) -> bool {
        let rows = &self.tables.components;
        let mut lanes = region.components.iter().map(|&c| rows[c].lane);
        lanes.any(|lane| self.lanes.lane(lane).is_due())
    }

    /// Runs the invocations that a component's trigger makes; returns how many there were.
    pub(crate) async fn step(&mut self, component: usize, iteration: u64) -> Result<u64, Halt> {
        match self.tables.components[component].pool {
            None => self.step_inline(component, iteration),
            Some(_) => self.step_on_pool(component, iteration).await,
        }
    }

    fn begin_iteration(&mut self) -> u64 {
        let epoch = self.env.epoch + 1;
        self.env_mut().epoch = epoch;
        let start = self.calls.begin_epoch();
        self.sinks.epoch_begin(&EpochBegin { epoch, at: start });
        start
    }

    fn end_iteration(&mut self, start: u64) -> Result<(), Halt> {
        let end = clock::now();
        let epoch = self.env.epoch;
        self.inbox.set_progress(epoch, self.calls.ticks());
        let is_replay = self.env.decisions.is_some();
        let (plan, sinks) = (&self.tables.plan, &mut self.sinks);
        let ended = self
            .lanes
            .end_ticks((start, end), epoch, is_replay, plan, sinks);
        self.sinks.epoch_end(&EpochEnd { epoch, start, end });
        self.sinks.check_recorder();
        ended
    }
}
