//! The events that a run reports, and the trait of what takes them.
//!
//! A run calls an event of [`Sinks`], which passes it on to every sink by static calls: a sink that
//! has nothing to do with an event costs nothing. What a sink needs of the run is in the event.
//! Health is also raised directly, because a channel may raise it at every message; so it remembers
//! which epoch has begun. Metrics and losses take no events: they are read off counts and parts at
//! the end. What observers get at the end of an epoch is read off the other sinks, too: differences
//! of counts.
//!
//! Rejected: a list of `dyn Sink`. It costs a virtual call per sink and message, and which sinks
//! there are does not change.

use crate::component::{Outbox, Staged};
use crate::run::exec::inline::FinishedCall;
use crate::run::exec::loop_passes::LoopStop;
use crate::run::sinks::Sinks;
use crate::run::sinks::trace::TraceName;
use crate::run::state::channel::Channel;
use crate::run::state::lanes::Lanes;
use crate::run::state::members::Members;
use crate::run::state::tables::ComponentRow;
use windlass_plan::model::{Config, EdgeKind};

/// The first epoch is about to begin.
pub(crate) struct RunBegin<'a> {
    pub(crate) graph: &'a str,
}

/// An epoch begins, on the real clock.
pub(crate) struct EpochBegin {
    pub(crate) epoch: u64,
    pub(crate) at: u64,
}

/// An epoch has seen what it will see of the world outside.
pub(crate) struct EpochInputs<'a> {
    pub(crate) epoch: u64,
    pub(crate) lanes: &'a Lanes,
    pub(crate) members: &'a Members,
}

/// An epoch has ended, on the real clock.
pub(crate) struct EpochEnd {
    pub(crate) epoch: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Something about a tick of a lane with a rate.
pub(crate) struct LaneTick {
    pub(crate) epoch: u64,
    pub(crate) lane: usize,
    pub(crate) name: TraceName,
    pub(crate) at: u64,
    pub(crate) duration: u64,
}

/// An invocation has ended.
pub(crate) struct CallEnd<'a> {
    pub(crate) epoch: u64,
    pub(crate) component: usize,
    pub(crate) row: &'a ComponentRow,
    pub(crate) finished: &'a FinishedCall,
    pub(crate) out: &'a Outbox,
    /// Whether the component does not want to be called for now.
    pub(crate) held: bool,
}

impl CallEnd<'_> {
    #[inline]
    pub(crate) fn duration(&self) -> u64 {
        self.finished.end - self.finished.start
    }

    /// Whether it took longer than its budget.
    #[inline]
    pub(crate) fn is_over_budget(&self) -> bool {
        self.row.budget > 0 && self.duration() > self.row.budget
    }

    /// Whether it was asked to cancel.
    #[inline]
    pub(crate) fn was_asked_to_cancel(&self) -> bool {
        let limit = self.row.max_callback;
        self.out.observed_cancel || (limit > 0 && self.duration() > limit)
    }
}

/// The invocations that a lane's workers ran together have ended.
pub(crate) struct BatchEnd<'a> {
    pub(crate) epoch: u64,
    pub(crate) component: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) workers: &'a [u32],
    pub(crate) invocations: u64,
}

/// So many invocations of a component were under way at once.
pub(crate) struct CallsAtOnce {
    pub(crate) component: usize,
    pub(crate) invocations: u64,
}

/// A message is about to become visible.
pub(crate) struct Commit<'a> {
    pub(crate) epoch: u64,
    pub(crate) edge: usize,
    pub(crate) kind: EdgeKind,
    pub(crate) item: &'a Staged,
    /// The channel that takes it next.
    pub(crate) channel: &'a Channel,
}

/// A message waits for the next epoch.
pub(crate) struct Deferral {
    pub(crate) kind: EdgeKind,
}

/// The items of a publish were refused.
pub(crate) struct CommitRefusal {
    pub(crate) items: usize,
}

/// An async edge has taken a message, or not.
pub(crate) struct Admission {
    pub(crate) epoch: u64,
    pub(crate) edge: usize,
    pub(crate) transaction: u64,
    pub(crate) accepted: bool,
}

/// Values of the state store became visible.
pub(crate) struct StoreCommit {
    pub(crate) epoch: u64,
    pub(crate) keys: usize,
}

/// A component was called outside of invocations, or is about to be.
pub(crate) struct LifecycleCall {
    pub(crate) epoch: u64,
    pub(crate) component: usize,
    pub(crate) kind: LifecycleKind,
}

/// What is done with a component outside of invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifecycleKind {
    Activate,
    Deactivate,
    /// It is deactivated because it failed.
    Isolate,
    Restore,
    Reset,
    Snapshot,
    ValidateConfig,
    ApplyConfig,
    RollBackConfig,
    CommitConfig,
}

/// A transaction with new configurations begins.
pub(crate) struct ConfigBegin<'a> {
    pub(crate) changes: &'a [(String, Config)],
}

/// A transaction with new configurations holds.
pub(crate) struct ConfigEnd;

/// A pass of a loop begins.
pub(crate) struct PassBegin {
    pub(crate) epoch: u64,
    pub(crate) composite: usize,
    pub(crate) at: u64,
}

/// A pass of a loop has ended well.
pub(crate) struct PassEnd {
    pub(crate) epoch: u64,
    pub(crate) composite: usize,
    pub(crate) start: u64,
    /// How many invocations there were.
    pub(crate) ran: u64,
    /// Whether a member has failed.
    pub(crate) failed: bool,
}

/// A loop has found how far it is from converging.
pub(crate) struct LoopResidual {
    pub(crate) composite: usize,
    pub(crate) residual: f64,
}

/// A loop is stopped by the clock, or because the run is to stop.
pub(crate) struct LoopInterruption {
    pub(crate) composite: usize,
    /// Which run of the loop, from 0.
    pub(crate) run: u64,
    /// After which pass, from 0.
    pub(crate) pass: u64,
    /// Whether its time was over; otherwise the run was asked to stop.
    pub(crate) budget: bool,
}

/// A loop has ended.
pub(crate) struct LoopEnd {
    pub(crate) epoch: u64,
    pub(crate) composite: usize,
    pub(crate) stop: LoopStop,
}

/// What a loop held back is thrown away. None: the run has ended before it could be committed.
pub(crate) struct LoopDiscard {
    pub(crate) epoch: u64,
    pub(crate) composite: Option<usize>,
    pub(crate) items: u64,
}

/// A loop that ran beside the epochs in real time has come back.
pub(crate) struct LoopReturn<'a> {
    pub(crate) region: &'a str,
}

macro_rules! sink {
    ($( $event:ident($Event:ty), )*) => {
        /// Takes the events of a run. An event that a sink does not implement does nothing there.
        pub(crate) trait Sink {
            $(
                #[inline]
                fn $event(&mut self, _event: &$Event) {}
            )*
        }

        impl Sink for Sinks {
            $(
                #[inline]
                fn $event(&mut self, event: &$Event) {
                    self.counts.$event(event);
                    self.history.$event(event);
                    self.health.$event(event);
                    if let Some(recorder) = &mut self.recorder {
                        recorder.$event(event);
                    }
                    self.trace.$event(event);
                    if let Some(feed) = &mut self.observer_feed {
                        feed.$event(event);
                    }
                }
            )*
        }
    };
}

sink! {
    run_begin(RunBegin<'_>),
    epoch_begin(EpochBegin),
    epoch_inputs(EpochInputs<'_>),
    epoch_end(EpochEnd),
    lane_tick(LaneTick),
    call_end(CallEnd<'_>),
    batch_end(BatchEnd<'_>),
    calls_at_once(CallsAtOnce),
    commit(Commit<'_>),
    deferral(Deferral),
    commit_refusal(CommitRefusal),
    admission(Admission),
    store_commit(StoreCommit),
    lifecycle_call(LifecycleCall),
    config_begin(ConfigBegin<'_>),
    config_end(ConfigEnd),
    pass_begin(PassBegin),
    pass_end(PassEnd),
    loop_residual(LoopResidual),
    loop_interruption(LoopInterruption),
    loop_end(LoopEnd),
    loop_discard(LoopDiscard),
    loop_return(LoopReturn<'_>),
}
