//! The sink that traces: it makes records of a run's events while the run goes on.

use std::sync::Arc;

use serde_json::json;
use windlass_core::sync::clock;

use crate::observe::Level;
use crate::run::exec::loop_passes::LoopStop;
use crate::run::options::RunOptions;
use crate::run::sinks::health::{HealthKind, HealthSubject};
use crate::run::sinks::sink::{
    Admission, BatchEnd, CallEnd, Commit, EpochBegin, EpochEnd, LaneTick, LifecycleCall,
    LifecycleKind, LoopDiscard, LoopEnd, PassBegin, PassEnd, Sink, StoreCommit,
};
use crate::run::sinks::trace::{Trace, TraceName, TraceRecord};
use windlass_plan::compile::Plan;
use windlass_record::Digest;

/// The trace while a run goes on.
#[derive(Debug)]
pub(crate) struct TraceSink {
    plan: Arc<Plan>,
    on: bool,
    /// Whether the options ask for the events; otherwise only their hash counts.
    keeps: bool,
    /// Whether an observer gets them when an epoch ends.
    passes_on: bool,
    /// Whether a recording or a replay needs their hash.
    hashes: bool,
    events: Vec<TraceRecord>,
    capacity: usize,
    dropped: u64,
    /// How many events there were, and had been dropped, when the pass of a loop began.
    pass: (usize, u64),
    /// The hash of what depends on no clock.
    digest: Digest,
}

impl TraceSink {
    pub(crate) fn new(plan: &Arc<Plan>, on: bool, options: &RunOptions) -> TraceSink {
        let observer = options.observer.as_ref();
        TraceSink {
            keeps: options.trace,
            passes_on: observer.is_some_and(|observer| observer.wants(Level::Debug)),
            hashes: options.record.is_some(),
            ..TraceSink::empty(plan, on, options.trace_capacity)
        }
    }

    fn empty(plan: &Arc<Plan>, on: bool, capacity: usize) -> TraceSink {
        TraceSink {
            plan: plan.clone(),
            on,
            keeps: false,
            passes_on: false,
            hashes: false,
            events: Vec::new(),
            capacity,
            dropped: 0,
            pass: (0, 0),
            digest: Digest::default(),
        }
    }

    /// Returns a sink for a part of the run that goes on beside it: all events come back.
    pub(crate) fn beside(&self) -> TraceSink {
        TraceSink {
            keeps: self.on,
            ..TraceSink::empty(&self.plan, self.on, self.capacity)
        }
    }

    /// Takes in the events of such a part.
    pub(crate) fn merge(&mut self, other: TraceSink) {
        for event in other.events {
            self.push(event);
        }
        self.dropped += other.dropped;
    }

    /// Whether anything is traced.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Lets it keep a hash of its events, for a replay.
    pub(crate) fn start_hashing(&mut self) {
        self.hashes = true;
    }

    /// Returns the hash of what depends on no clock.
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns how many events found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns an event of a component.
    fn of_component(&self, name: TraceName, epoch: u64, component: usize, at: u64) -> TraceRecord {
        TraceRecord {
            component: component as u32,
            lane: self.plan.nodes[component].lane as u32,
            ..TraceRecord::new(name, epoch, at)
        }
    }

    /// Returns an event of a loop.
    fn of_loop(&self, name: TraceName, epoch: u64, composite: usize, at: u64) -> TraceRecord {
        let mut event = TraceRecord::new(name, epoch, at);
        let id = self.plan.graph.loops[composite].id.as_str();
        event.attributes.push(("loop", id.into()));
        event
    }

    /// Traces health events that are new.
    pub(crate) fn add_health(&mut self, epoch: u64, events: Vec<(HealthKind, HealthSubject)>) {
        let at = clock::now();
        for (kind, subject) in events {
            let name = TraceName::HealthEvent;
            let mut event = match subject {
                HealthSubject::Channel(edge) => {
                    let to = self.plan.edges[edge as usize].to;
                    let mut event = self.of_component(name, epoch, to, at);
                    event.channel = edge;
                    event
                }
                HealthSubject::Component(component) => {
                    self.of_component(name, epoch, component as usize, at)
                }
                HealthSubject::Lane(lane) => TraceRecord {
                    lane,
                    ..TraceRecord::new(name, epoch, at)
                },
            };
            event.attributes.push(("kind", kind.name().into()));
            self.push(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_call(&mut self, call: &CallEnd<'_>) {
        let (finished, out) = (call.finished, call.out);
        let origin = finished.call.origin;
        let common = TraceRecord {
            worker: finished.worker,
            transaction: finished.call.transaction,
            correlation: origin.map(|origin| origin.root),
            causation: origin.map(|origin| origin.id),
            ..self.of_component(TraceName::ComponentExecute, call.epoch, call.component, 0)
        };
        let event = |name, start| TraceRecord {
            name,
            start,
            ..common.clone()
        };
        self.push(event(TraceName::ComponentExecuteBegin, finished.start));
        for staged in &out.staged {
            let mut publish = event(TraceName::ChannelPublish, staged.at);
            publish.channel = staged.edge;
            self.push(publish);
        }
        let mut span = event(TraceName::ComponentExecute, finished.start);
        span.duration = call.duration();
        if let Some(message) = &finished.failed {
            span.attributes.push(("error", (&**message).into()));
        }
        self.push(span);
        self.push(event(TraceName::ComponentExecuteEnd, finished.end));
        for (name, happened) in [
            (
                TraceName::ComponentTimeoutBudgetExceeded,
                call.is_over_budget(),
            ),
            (
                TraceName::ComponentCancellationRequested,
                call.was_asked_to_cancel(),
            ),
            (
                TraceName::ComponentCancellationObserved,
                out.observed_cancel,
            ),
            (TraceName::ComponentTimeout, out.timed_out),
        ] {
            if happened {
                self.push(event(name, finished.end));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn add_commit(&mut self, commit: &Commit<'_>) {
        let from = self.plan.edges[commit.edge].from;
        let (name, item) = (TraceName::ChannelCommit, commit.item);
        let root = item.root.unwrap_or_else(|| commit.channel.next_id());
        let event = TraceRecord {
            channel: commit.edge as u32,
            transaction: item.transaction,
            causation: item.cause,
            correlation: Some(root),
            ..self.of_component(name, commit.epoch, from, clock::now())
        };
        self.push(event);
    }

    fn push(&mut self, event: TraceRecord) {
        if self.hashes {
            event.add_to(&mut self.digest);
        }
        if !self.keeps && !self.passes_on {
            return;
        }
        if self.events.len() < self.capacity {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the events after the first `place`.
    pub(crate) fn since(&self, place: usize) -> &[TraceRecord] {
        &self.events[place.min(self.events.len())..]
    }

    /// Forgets the events that were only passed on to an observer; returns how many are left.
    pub(crate) fn forget_unwanted(&mut self) -> usize {
        if !self.keeps {
            self.events.clear();
        }
        self.events.len()
    }

    /// Returns the trace with names instead of numbers.
    pub(crate) fn into_trace(self, began: u64) -> Trace {
        Trace {
            events: Trace::resolve_all(&self.events, &self.plan, began).collect(),
            dropped: self.dropped,
        }
    }

    /// How many events there were, kept or not.
    pub(crate) fn count(&self) -> u64 {
        self.events.len() as u64 + self.dropped
    }
}

impl Sink for TraceSink {
    fn epoch_begin(&mut self, event: &EpochBegin) {
        if self.on {
            let name = TraceName::SchedulerIterationBegin;
            self.push(TraceRecord::new(name, event.epoch, event.at));
        }
    }

    fn epoch_end(&mut self, event: &EpochEnd) {
        if self.on {
            let (epoch, start, end) = (event.epoch, event.start, event.end);
            let mut span = TraceRecord::new(TraceName::SchedulerIteration, epoch, start);
            span.duration = end - start;
            self.push(span);
            let name = TraceName::SchedulerIterationEnd;
            self.push(TraceRecord::new(name, epoch, end));
        }
    }

    fn lane_tick(&mut self, event: &LaneTick) {
        if self.on {
            self.push(TraceRecord {
                lane: event.lane as u32,
                duration: event.duration,
                ..TraceRecord::new(event.name, event.epoch, event.at)
            });
        }
    }

    #[inline]
    fn call_end(&mut self, event: &CallEnd<'_>) {
        if self.on {
            self.add_call(event);
        }
    }

    fn batch_end(&mut self, event: &BatchEnd<'_>) {
        if self.on {
            let (name, component) = (TraceName::ThreadPoolBatch, event.component);
            let mut span = self.of_component(name, event.epoch, component, event.start);
            span.duration = event.end - event.start;
            let mut workers = event.workers.to_vec();
            workers.sort_unstable();
            workers.dedup();
            span.attributes.push(("worker_ids", json!(workers)));
            let invocations = event.invocations.into();
            span.attributes.push(("invocations", invocations));
            self.push(span);
        }
    }

    #[inline]
    fn commit(&mut self, event: &Commit<'_>) {
        if self.on {
            self.add_commit(event);
        }
    }

    fn admission(&mut self, event: &Admission) {
        if self.on {
            let from = self.plan.edges[event.edge].from;
            let name = TraceName::AsyncAdmission;
            let mut admission = self.of_component(name, event.epoch, from, clock::now());
            admission.channel = event.edge as u32;
            admission.transaction = event.transaction;
            let accepted = event.accepted.into();
            admission.attributes.push(("accepted", accepted));
            self.push(admission);
        }
    }

    fn store_commit(&mut self, event: &StoreCommit) {
        if self.on {
            let name = TraceName::StateCommit;
            let mut commit = TraceRecord::new(name, event.epoch, clock::now());
            commit.attributes.push(("keys", event.keys.into()));
            self.push(commit);
        }
    }

    fn lifecycle_call(&mut self, event: &LifecycleCall) {
        let name = match event.kind {
            LifecycleKind::Restore => TraceName::ComponentRestore,
            LifecycleKind::Reset => TraceName::ComponentReset,
            LifecycleKind::Snapshot => TraceName::ComponentSnapshot,
            LifecycleKind::ValidateConfig => TraceName::ConfigTransactionValidate,
            LifecycleKind::ApplyConfig => TraceName::ConfigTransactionApply,
            LifecycleKind::RollBackConfig => TraceName::ConfigTransactionRollback,
            LifecycleKind::CommitConfig => TraceName::ConfigTransactionCommit,
            LifecycleKind::Activate | LifecycleKind::Deactivate | LifecycleKind::Isolate => return,
        };
        if self.on {
            let event = self.of_component(name, event.epoch, event.component, clock::now());
            self.push(event);
        }
    }

    fn pass_begin(&mut self, event: &PassBegin) {
        if self.on {
            self.pass = (self.events.len(), self.dropped);
            let name = TraceName::LoopIterationBegin;
            self.push(self.of_loop(name, event.epoch, event.composite, event.at));
        }
    }

    fn pass_end(&mut self, event: &PassEnd) {
        if !self.on {
            return;
        }
        if event.ran == 0 {
            // A pass in which nothing ran is none.
            self.events.truncate(self.pass.0);
            self.dropped = self.pass.1;
            return;
        }
        let (epoch, composite, end) = (event.epoch, event.composite, clock::now());
        let mut span = self.of_loop(TraceName::LoopIteration, epoch, composite, event.start);
        span.duration = end - event.start;
        self.push(span);
        self.push(self.of_loop(TraceName::LoopIterationEnd, epoch, composite, end));
    }

    fn loop_end(&mut self, event: &LoopEnd) {
        if !self.on {
            return;
        }
        let (epoch, composite, at) = (event.epoch, event.composite, clock::now());
        let name = match event.stop {
            LoopStop::Converged(_) => TraceName::LoopConverged,
            LoopStop::MaxIterations => TraceName::LoopMaxIterationsHit,
            LoopStop::BudgetOverrun => TraceName::LoopBudgetOverrun,
            LoopStop::Cancelled => {
                let name = TraceName::LoopCancellationRequested;
                self.push(self.of_loop(name, epoch, composite, at));
                TraceName::LoopCancellationObserved
            }
            LoopStop::ComponentError => TraceName::LoopError,
        };
        let mut end = self.of_loop(name, epoch, composite, at);
        let reason = event.stop.reason().into();
        end.attributes.push(("loop_stop_reason", reason));
        self.push(end);
    }

    fn loop_discard(&mut self, event: &LoopDiscard) {
        if let Some(composite) = event.composite
            && self.on
            && event.items > 0
        {
            let name = TraceName::LoopOutputDiscarded;
            self.push(self.of_loop(name, event.epoch, composite, clock::now()));
        }
    }
}
