//! Loops that run beside the epochs (`async_task`): each in a run state of its own.
//!
//! The members go there, with their triggers, the channels between them, and the messages that wait
//! for them. The run goes on without them. They come back before anything else happens in an epoch,
//! and what they published to the outside is committed after what was deferred. In simulated time a
//! loop takes no time, so that is the next epoch; in real time it is the first after it has ended,
//! and what comes for it meanwhile waits. New configurations wait for it, too: they may be about
//! its members.

use std::sync::Arc;

use windlass_core::task::JoinHandle;
use windlass_sync::lock::Notify;

use crate::component::Staged;
use crate::run::result::ErrorCode;
use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{LoopDiscard, LoopReturn, Sink};

/// The loops that run beside the epochs, and have not come back.
#[derive(Default)]
pub(crate) struct AsyncLoops {
    away: Vec<AsyncLoop>,
    /// How many loops were sent off.
    launched: u64,
    /// In a replay in real time: the regions whose loops come back in this epoch.
    recorded_back: Option<Vec<String>>,
}

/// A loop that runs in a task of its own, beside the epochs.
pub(crate) struct AsyncLoop {
    region: usize,
    under_way: JoinHandle<AsyncLoopEnd>,
}

/// What the task of a loop returns: its state, to be merged, and how the loop ended.
struct AsyncLoopEnd {
    state: Box<RunState>,
    result: Result<(), Halt>,
}

/// Wakes the run when the task of a loop has ended.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl AsyncLoops {
    /// Whether no loop is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.away.is_empty()
    }

    /// Whether the loop of this region is under way.
    pub(crate) fn contains(&self, region: usize) -> bool {
        self.away.iter().any(|away| away.region == region)
    }

    /// Whether a loop has ended that is still to be taken back.
    pub(crate) fn has_finished(&self) -> bool {
        self.away.iter().any(|away| away.under_way.is_finished())
    }

    /// In a replay in real time: says which loops come back in this epoch, by the ids of their
    /// regions.
    pub(crate) fn set_recorded_back(&mut self, regions: Vec<String>) {
        self.recorded_back = Some(regions);
    }

    /// Returns the number of the loop that is sent off next.
    fn next_number(&mut self) -> u64 {
        self.launched += 1;
        self.launched
    }

    /// Takes the loops that come back now: all, or those that have ended; in a replay, those that
    /// came back in this epoch.
    fn take_back(&mut self, all: bool, id: impl Fn(usize) -> String) -> Vec<AsyncLoop> {
        let recorded = &self.recorded_back;
        let comes_back = |away: &AsyncLoop| match recorded {
            Some(regions) => regions.contains(&id(away.region)),
            None => away.under_way.is_finished(),
        };
        let (back, away) = std::mem::take(&mut self.away)
            .into_iter()
            .partition(|away| all || comes_back(away));
        self.away = away;
        back
    }
}

impl RunState {
    /// Sends a loop off with the messages that wait for it.
    pub(crate) fn launch(&mut self, region: usize, composite: usize) {
        let mut state = Box::new(self.split_off(region));
        let plan = &self.tables.plan;
        let lane = plan.nodes[plan.regions[region].components[0]].lane;
        let bell = self.inbox.bell.clone();
        let future = async move {
            let result = state.iterate(region, composite).await;
            // The run may wait for nothing else.
            let _rings = NotifyOnDrop(bell);
            AsyncLoopEnd { state, result }
        };
        let under_way = match self.lanes.pool(lane, Some(0)) {
            Some(pool) => pool.spawn(future),
            None => windlass_runtime::spawn(future),
        };
        self.loops
            .beside_mut()
            .away
            .push(AsyncLoop { region, under_way });
    }

    /// Returns a state with the members of a region in it.
    fn split_off(&mut self, region: usize) -> RunState {
        let tables = self.tables.clone();
        let region_plan = &tables.plan.regions[region];
        let nth = self.loops.beside_mut().next_number();
        RunState {
            env: self.env.clone(),
            members: self.members.split_off(&region_plan.components),
            channels: self.channels.split_off(region, &tables),
            triggers: self.triggers.split_off(&region_plan.components),
            lanes: self.lanes.beside(),
            loops: self.loops.split_off(region_plan.composite_loop),
            calls: self.calls.beside(nth),
            inbox: self.inbox.clone(),
            sinks: self.sinks.beside(),
            tables,
        }
    }

    /// Takes back the loops that were sent off and are to come back now; returns what each
    /// published to the outside.
    pub(crate) async fn join_async_loops(&mut self) -> Result<Vec<Vec<Staged>>, Halt> {
        if self.loops.beside().is_empty() {
            return Ok(Vec::new());
        }
        let mut held = Vec::new();
        let all = !self.lanes.is_real() || self.inbox.is_asked();
        let regions = &self.tables.plan.regions;
        let id = |region: usize| regions[region].id.clone();
        let back = self.loops.beside_mut().take_back(all, id);
        self.take_back(back, &mut held).await?;
        // What went between their members has not been seen yet.
        self.feed_taps();
        Ok(held)
    }

    /// Takes back the loops that were sent off when no epoch follows: what they published is not
    /// seen.
    pub(crate) async fn abandon_async_loops(&mut self) -> Result<(), Halt> {
        let mut held = Vec::new();
        let all = std::mem::take(&mut self.loops.beside_mut().away);
        let result = self.take_back(all, &mut held).await;
        for item in held.iter().flatten() {
            self.channels[item.edge as usize].cancel_async();
        }
        self.sinks.loop_discard(&LoopDiscard {
            epoch: self.env.epoch,
            composite: None,
            items: held.iter().flatten().count() as u64,
        });
        result
    }

    async fn take_back(
        &mut self,
        back: Vec<AsyncLoop>,
        held: &mut Vec<Vec<Staged>>,
    ) -> Result<(), Halt> {
        let mut result = Ok(());
        for async_loop in back {
            let region = async_loop.region;
            let id = self.tables.plan.regions[region].id.clone();
            let back = match async_loop.under_way.await {
                Ok(back) => back,
                Err(error) => {
                    let message = format!("loop {id} could not run as a task: {error}");
                    result = Err(self.sinks.halt("loop", ErrorCode::Runtime, None, message));
                    continue;
                }
            };
            if self.lanes.is_real() {
                self.sinks.loop_return(&LoopReturn { region: &id });
            }
            held.extend(self.merge(region, *back.state));
            result = result.and(back.result);
        }
        result
    }

    /// Takes in what a loop has left; returns what it held back.
    fn merge(&mut self, region: usize, mut other: RunState) -> Option<Vec<Staged>> {
        let tables = self.tables.clone();
        let region_plan = &tables.plan.regions[region];
        let components = &region_plan.components;
        self.members.merge(other.members, components);
        self.triggers.take_from(&mut other.triggers, components);
        let health = &mut self.sinks.health;
        let held = self.channels.merge(other.channels, region, &tables, health);
        self.lanes.merge(&other.lanes);
        self.loops
            .take_from(&mut other.loops, region_plan.composite_loop);
        self.calls.merge(&other.calls);
        self.sinks.merge(other.sinks, region_plan);
        held
    }
}
