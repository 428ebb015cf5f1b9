//! The state of a run: everything that it owns.
//!
//! One task owns the state and does everything in order. Only the calls of components on
//! `thread_pool` lanes happen elsewhere: they get what they need by value, and bring back what they
//! ask for. A composite loop that runs beside the epochs (`async_task`) gets a state of its own
//! with its members in it (`exec/async_loop.rs`).
//!
//! Each part owns its data and says what can be done with it. What needs several parts is here only
//! if it is short; otherwise it is in `driver.rs` (the whole run), `epoch/` (an epoch: the store
//! and new configurations are committed, what was deferred becomes visible, each region runs and
//! what it published is committed) and `exec/` (invocations).

use std::sync::Arc;

use crate::component::{Env, Staged};
use crate::run::epoch::EpochTime;
use crate::run::exec::calls::Calls;
use crate::run::exec::overlap::Overlap;
use crate::run::lifecycle::Lifecycle;
use crate::run::options::RunOptions;
use crate::run::outside::control::Inbox;
use crate::run::sinks::{RunView, Sinks};
use crate::run::state::channels::Channels;
use crate::run::state::lanes::Lanes;
use crate::run::state::loops::Loops;
use crate::run::state::members::Members;
use crate::run::state::store::Store;
use crate::run::state::tables::Tables;
use crate::run::state::triggers::Triggers;
use windlass_plan::compile::Plan;

/// Everything that a run owns.
pub(crate) struct RunState {
    /// What does not change.
    pub(super) tables: Arc<Tables>,
    /// What invocations see.
    pub(super) env: Arc<Env>,
    pub(super) members: Members,
    pub(super) channels: Channels,
    pub(super) triggers: Triggers,
    pub(super) lanes: Lanes,
    pub(super) loops: Loops,
    pub(super) calls: Calls,
    /// What the run is asked from outside.
    pub(super) inbox: Arc<Inbox>,
    pub(super) sinks: Sinks,
}

/// The run has to end; why is in its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halt;

impl RunState {
    pub(crate) fn new(
        plan: Arc<Plan>,
        members: Members,
        lanes: Lanes,
        inbox: Arc<Inbox>,
        overlap: Overlap,
        options: &RunOptions,
        tracing: bool,
    ) -> RunState {
        let tables = Tables::new(
            &plan,
            overlap,
            |c| members.is_preemptible(c),
            |c| members.is_finite_source(c),
        );
        let store = match &options.restore {
            Some(snapshot) => snapshot.store.clone(),
            None => Store::default(),
        };
        RunState {
            env: Arc::new(Env {
                plan: plan.clone(),
                store: Arc::new(store),
                stop: options.stop.clone(),
                under_way: inbox.under_way.clone(),
                epoch: 0,
                tracing,
                decisions: None,
            }),
            members,
            channels: Channels::new(&plan, &tables),
            triggers: Triggers::new(&plan),
            lanes,
            loops: Loops::new(&plan),
            calls: Calls::new(),
            inbox,
            sinks: Sinks::new(&plan, options, tracing),
            tables: Arc::new(tables),
        }
    }

    /// Returns what invocations see, to be changed; those that are still out keep what they have.
    pub(crate) fn env_mut(&mut self) -> &mut Env {
        Arc::make_mut(&mut self.env)
    }

    /// Commits what a component has published; the list is empty afterwards.
    #[inline]
    pub(crate) fn commit(&mut self, staged: &mut Vec<Staged>) -> Result<(), Halt> {
        let now = EpochTime {
            epoch: self.env.epoch,
            lane_times: self.lanes.times(),
        };
        self.channels
            .commit(staged, now, &self.tables, &mut self.sinks)
    }

    /// Commits what was deferred in the epoch before.
    pub(crate) fn commit_deferred(&mut self) -> Result<(), Halt> {
        let now = EpochTime {
            epoch: self.env.epoch,
            lane_times: self.lanes.times(),
        };
        self.channels
            .commit_deferred(now, &self.tables, &mut self.sinks)
    }

    /// Gives taps what they have room for.
    pub(crate) fn feed_taps(&mut self) {
        let (taps, channels) = self.channels.taps();
        taps.feed(channels);
    }

    /// Calls components outside of invocations.
    pub(crate) fn lifecycle(&mut self) -> Lifecycle<'_> {
        Lifecycle {
            tables: &self.tables,
            epoch: self.env.epoch,
            under_way: &self.env.under_way,
            members: &mut self.members,
            sinks: &mut self.sinks,
        }
    }

    /// Returns what reports read, and the sinks that report.
    pub(crate) fn view(&mut self) -> (RunView<'_>, &mut Sinks) {
        let view = RunView {
            env: &self.env,
            members: &self.members,
            channels: &self.channels,
            triggers: &self.triggers,
            lanes: &self.lanes,
            calls: &self.calls,
            inbox: &self.inbox,
        };
        (view, &mut self.sinks)
    }
}
