//! Loops that run beside the epochs (`async_task`): each in a machine of its own.
//!
//! The members go there, with their triggers, the channels between them, and what has come for them. The run
//! goes on without them. They come back before anything else happens in an epoch, and what they published to the
//! outside is committed after what was deferred. In simulated time a loop takes no time, so that is the next epoch; in
//! real time it is the first after it has ended, and what comes for it meanwhile waits. New configurations wait for it,
//! too: they may be about its members.

use std::sync::Arc;

use windlass_core::task::JoinHandle;
use windlass_sync::lock::Notify;

use crate::component::Staged;
use crate::record::{BESIDE_SHIFT, TapeKind};
use crate::run::machine::{Halt, Machine, RecordState, Spare, Totals};
use crate::run::result::ErrorCode;
use crate::run::state::channel::Channel;
use crate::run::state::channels::Channels;
use crate::run::state::loops::LoopState;

/// A loop that runs in a task of its own, beside the epochs.
pub(crate) struct AsyncLoop {
    pub(crate) region: usize,
    under_way: JoinHandle<AsyncLoopEnd>,
}

/// What the task of a loop returns: its machine, to be merged, and how the loop ended.
struct AsyncLoopEnd {
    machine: Box<Machine>,
    result: Result<(), Halt>,
}

/// Wakes the run when the task of a loop has ended.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Machine {
    /// Sends a loop off with what has come for it.
    pub(crate) fn launch(&mut self, region: usize, composite: usize) {
        let mut machine = Box::new(self.split_off(region));
        let lane = self.plan.nodes[self.plan.regions[region].components[0]].lane;
        let bell = self.inbox.bell.clone();
        let future = async move {
            let result = machine.iterate(region, composite).await;
            // The run may wait for nothing else.
            let _rings = NotifyOnDrop(bell);
            AsyncLoopEnd { machine, result }
        };
        let under_way = match self.lanes[lane].pools.first() {
            Some(pool) => pool.spawn(future),
            None => windlass_runtime::spawn(future),
        };
        self.async_loops.push(AsyncLoop { region, under_way });
    }

    /// A machine with the members of a region in it.
    fn split_off(&mut self, region: usize) -> Machine {
        let plan = self.plan.clone();
        let mut members: Vec<_> = plan.nodes.iter().map(|_| Default::default()).collect();
        let mut triggers: Vec<_> = plan.nodes.iter().map(|_| Default::default()).collect();
        for &member in &plan.regions[region].components {
            members[member] = std::mem::take(&mut self.members[member]);
            triggers[member] = std::mem::take(&mut self.triggers[member]);
        }
        let mut channels: Vec<Channel> = plan.edges.iter().map(|_| Channel::default()).collect();
        for (edge, row) in self.tables.edges.iter().enumerate() {
            if row.region_to != region {
                continue;
            }
            channels[edge] = if row.region_from == region {
                std::mem::take(&mut self.channels[edge])
            } else {
                let model = &plan.graph.edges[edge];
                let beside = Channel::new(edge, plan.edges[edge].to_port, model);
                let mut beside = beside.holding_off(row.holds_off);
                self.channels[edge].hand_over(&mut beside);
                beside
            };
        }
        let mut loops: Vec<LoopState> = plan
            .graph
            .loops
            .iter()
            .map(|_| Default::default())
            .collect();
        if let Some(composite) = plan.regions[region].composite_loop {
            loops[composite] = std::mem::take(&mut self.loops[composite]);
        }
        self.totals.launched += 1;
        Machine {
            tables: self.tables.clone(),
            env: self.env.clone(),
            members,
            doors: Vec::new(),
            channels: Channels::new(channels, self.lanes.iter().map(|lane| lane.now).collect()),
            triggers,
            lanes: self.lanes.iter().map(|lane| lane.beside()).collect(),
            loops,
            async_loops: Vec::new(),
            taps: Vec::new(),
            inbox: self.inbox.clone(),
            configs: Vec::new(),
            sinks: self.sinks.beside(&plan),
            totals: Totals {
                // A range of its own: numbers must not depend on who is faster.
                transaction: (self.totals.launched << BESIDE_SHIFT) | self.totals.transaction,
                ..Totals::default()
            },
            forced: Vec::new(),
            driver: None,
            memory: Default::default(),
            // The members have it with them.
            watch: None,
            recording: RecordState {
                script: self.recording.script.clone(),
                ..RecordState::default()
            },
            clock: self.clock.beside(),
            spare: Spare::default(),
            plan,
        }
    }

    /// Takes back the loops that were sent off and are to come back now; gives what each published to the outside.
    pub(crate) async fn join_async_loops(&mut self) -> Result<Vec<Vec<Staged>>, Halt> {
        if !self.has_async_loops() {
            return Ok(Vec::new());
        }
        let mut held = Vec::new();
        let all = !self.clock.is_real || self.inbox.is_asked();
        let (back, away) = std::mem::take(&mut self.async_loops)
            .into_iter()
            .partition(|async_loop| all || self.comes_back(async_loop));
        self.async_loops = away;
        self.take_back(back, &mut held).await?;
        // What went between their members has not been seen yet.
        self.feed_taps();
        Ok(held)
    }

    /// Whether a loop has ended; in a replay, whether it came back in this epoch.
    fn comes_back(&self, async_loop: &AsyncLoop) -> bool {
        match &self.recording.joins {
            Some(joins) => joins.contains(&self.plan.regions[async_loop.region].id),
            None => async_loop.under_way.is_finished(),
        }
    }

    /// Whether a loop has ended that is still to be taken back.
    pub(crate) fn has_finished_async_loop(&self) -> bool {
        self.async_loops
            .iter()
            .any(|async_loop| async_loop.under_way.is_finished())
    }

    /// Takes back the loops that were sent off when no epoch follows: what they published is not seen.
    pub(crate) async fn abandon_async_loops(&mut self) -> Result<(), Halt> {
        let mut held = Vec::new();
        let all = std::mem::take(&mut self.async_loops);
        let result = self.take_back(all, &mut held).await;
        for item in held.iter().flatten() {
            self.sinks.counts.publication.composite_discarded += 1;
            self.sinks.counts.asynchronous[item.edge as usize].cancelled += 1;
        }
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
            let back = match async_loop.under_way.await {
                Ok(back) => back,
                Err(error) => {
                    let id = &self.plan.regions[region].id;
                    let message = format!("loop {id} could not run as a task: {error}");
                    result = Err(self.halt("loop", ErrorCode::Runtime, None, message));
                    continue;
                }
            };
            if self.sinks.tape.is_some() && self.clock.is_real {
                self.recording
                    .joined
                    .push(self.plan.regions[region].id.clone());
            }
            held.extend(self.merge(region, *back.machine));
            result = result.and(back.result);
        }
        result
    }

    /// Takes in what a loop has left; gives what it held back.
    fn merge(&mut self, region: usize, mut other: Machine) -> Option<Vec<Staged>> {
        let plan = self.plan.clone();
        for &member in &plan.regions[region].components {
            self.members[member] = std::mem::take(&mut other.members[member]);
            self.triggers[member] = std::mem::take(&mut other.triggers[member]);
            self.sinks.counts.components[member].add(&other.sinks.counts.components[member]);
        }
        let tables = self.tables.clone();
        for (edge, row) in tables.edges.iter().enumerate() {
            if row.region_to == region && row.region_from == region {
                self.channels[edge] = std::mem::take(&mut other.channels[edge]);
                self.sinks.counts.asynchronous[edge].add(&other.sinks.counts.asynchronous[edge]);
            } else if row.region_to == region {
                let beside = std::mem::take(&mut other.channels[edge]);
                self.channels[edge].take_over(beside, &mut self.sinks.health);
            }
        }
        for (lane, beside) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.counts.add(&beside.counts);
        }
        if let Some(composite) = plan.regions[region].composite_loop {
            self.sinks.counts.loops[composite].add(&other.sinks.counts.loops[composite]);
            self.loops[composite] = std::mem::take(&mut other.loops[composite]);
        }
        self.sinks
            .counts
            .publication
            .add(&other.sinks.counts.publication);
        self.sinks.counts.run.isolated += other.sinks.counts.run.isolated;
        self.sinks.counts.run.deactivated += other.sinks.counts.run.deactivated;
        self.totals.ticks += other.totals.ticks;
        let room = self
            .sinks
            .order_capacity
            .saturating_sub(self.sinks.order.len());
        self.sinks
            .order
            .extend(other.sinks.order.into_iter().take(room));
        for event in other.sinks.trace.events {
            self.sinks.trace.push(event);
        }
        self.sinks.trace.dropped += other.sinks.trace.dropped;
        if let Some(TapeKind::Keep(lines)) = other.sinks.tape.map(|tape| tape.open().0) {
            lines.into_iter().for_each(|line| self.write_down(line));
        }
        self.sinks.errors.append(&mut other.sinks.errors);
        self.forced.append(&mut other.forced);
        self.sinks.health.merge(&mut other.sinks.health);
        self.channels
            .store_writes
            .append(&mut other.channels.store_writes);
        self.channels.deferred.append(&mut other.channels.deferred);
        other.channels.loop_buffer.map(|buffer| buffer.held)
    }

    /// Whether a loop is under way.
    pub(crate) fn has_async_loops(&self) -> bool {
        !self.async_loops.is_empty()
    }
}
