//! Composite loops: passes over their members until they converge.
//!
//! While a loop runs, what its members publish to each other is committed at once, and what goes to the outside
//! is held. When it ends that is committed, or thrown away.

use windlass_core::sync::clock;

use crate::component::{LoopReport, Staged};
use crate::run::machine::{Halt, Machine};
use crate::run::result::ErrorCode;
use crate::run::sinks::trace::{Recorded, TraceName};
use crate::run::state::channels::Channels;
use crate::run::state::tables::nanos;
use windlass_plan::model::{Convergence, LoopKind, LoopPolicy, Overflow, PartialSuccess};
use windlass_value::Payload;

/// What a running loop has published and not committed, and what it knows of its passes.
#[derive(Debug)]
pub(crate) struct LoopBuffer {
    pub(crate) region: usize,
    /// What goes to the outside.
    pub(crate) held: Vec<Staged>,
    /// The last report of this pass.
    pub(crate) report: Option<LoopReport>,
    /// Whether a member has failed.
    pub(crate) failed: bool,
    /// What was published in this pass and in the one before, if somebody compares.
    passes: Option<[Vec<(u32, Payload)>; 2]>,
}

/// What a loop remembers from run to run.
#[derive(Debug, Default)]
pub(crate) struct LoopState {
    last_run: Option<u64>,
    /// How often it has run.
    pub(crate) runs: u64,
}

/// Why a loop stopped going round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Converged(&'static str),
    MaxIterations,
    BudgetOverrun,
    Cancelled,
    ComponentError,
}

impl Stopped {
    fn reason(self) -> &'static str {
        match self {
            Stopped::Converged(reason) => reason,
            Stopped::MaxIterations => "max_iterations",
            Stopped::BudgetOverrun => "budget_overrun",
            Stopped::Cancelled => "cancelled",
            Stopped::ComponentError => "component_error",
        }
    }
}

impl Machine {
    /// Runs a loop in its turn: here, or beside the epochs.
    pub(crate) async fn run_loop(&mut self, region: usize, composite: usize) -> Result<(), Halt> {
        let policy = self.plan.graph.loops[composite].policy.clone();
        if !self.may_run(region, composite, &policy) {
            self.turn_away(region, &policy);
            return Ok(());
        }
        if policy.kind == LoopKind::CoalescedEvent {
            self.drop_inputs(region, 1);
        }
        if policy.kind == LoopKind::AsyncTask {
            self.launch(region, composite);
            return Ok(());
        }
        self.iterate(region, composite).await?;
        self.end_hold()
    }

    fn may_run(&self, region: usize, composite: usize, policy: &LoopPolicy) -> bool {
        let busy = self
            .async_loops
            .iter()
            .any(|async_loop| async_loop.region == region);
        let early = self
            .loop_wake(composite)
            .is_some_and(|wake| self.loop_now(composite) < wake);
        !busy && (policy.min_interval.is_zero() || !early)
    }

    /// When a loop that waits between its runs may run again.
    pub(crate) fn loop_wake(&self, composite: usize) -> Option<u64> {
        let interval = nanos(self.plan.graph.loops[composite].policy.min_interval);
        let last = self.loops[composite].last_run?;
        (interval > 0).then(|| last.saturating_add(interval))
    }

    /// Whether a loop has something to do: a member that runs without a message, or one from outside.
    pub(crate) fn loop_has_work(&self, composite: usize) -> bool {
        let members = &self.plan.graph.loops[composite].components;
        let first = members.first().and_then(|id| self.plan.graph.component(id));
        let Some((first, _)) = first else {
            return false;
        };
        let region = self.plan.region_of[first];
        let members = &self.plan.regions[region].components;
        members.iter().any(|&m| self.triggers[m].needs_no_message())
            || self
                .edges_into(region)
                .into_iter()
                .any(|edge| self.channels[edge].waiting() > 0)
    }

    fn loop_now(&self, composite: usize) -> u64 {
        let members = &self.plan.graph.loops[composite].components;
        let first = members.first().and_then(|id| self.plan.graph.component(id));
        first.map_or(0, |(c, _)| self.lanes[self.plan.nodes[c].lane].now)
    }

    /// The edges that bring messages into a region.
    fn edges_into(&self, region: usize) -> Vec<usize> {
        let edges = self.tables.edges.iter().enumerate();
        let into = edges.filter(|(_, e)| e.region_to == region && e.region_from != region);
        into.map(|(edge, _)| edge).collect()
    }

    /// Inputs that come too early wait, unless the loop's drop policy says otherwise.
    fn turn_away(&mut self, region: usize, policy: &LoopPolicy) {
        match policy.drop_policy {
            None => {}
            Some(Overflow::Overwrite | Overflow::DropOldest) => self.drop_inputs(region, 1),
            Some(_) => self.drop_inputs(region, 0),
        }
    }

    /// Drops what has come from outside, but for the newest `but` of each edge.
    fn drop_inputs(&mut self, region: usize, but: usize) {
        for edge in self.edges_into(region) {
            self.channels[edge].drop_unread(but, &mut self.sinks.health);
        }
    }

    /// Goes round; what goes to the outside stays held.
    pub(crate) async fn iterate(&mut self, region: usize, composite: usize) -> Result<(), Halt> {
        let policy = self.plan.graph.loops[composite].policy.clone();
        let compares = policy.convergence == Some(Convergence::StableState);
        self.channels.loop_buffer = Some(LoopBuffer {
            region,
            held: Vec::new(),
            report: None,
            failed: false,
            passes: compares.then(Default::default),
        });
        let begun = clock::now();
        let passes = match policy.kind {
            LoopKind::Transaction => 1,
            _ => policy.max_iterations.max(1),
        };
        let mut stopped = Stopped::MaxIterations;
        for pass in 0..passes {
            if pass > 0 && self.is_loop_cancelled(composite, pass) {
                stopped = Stopped::Cancelled;
                break;
            }
            let ran = self.pass(region, composite, pass).await;
            let failed = ran.is_err()
                || self
                    .channels
                    .loop_buffer
                    .as_ref()
                    .is_some_and(|buffer| buffer.failed);
            if failed {
                self.end_loop(composite, &policy, Stopped::ComponentError)?;
                return ran.map(|_| ());
            }
            match ran {
                Ok(0) if pass == 0 => {
                    // Nobody had anything to do: it did not run at all.
                    return Ok(());
                }
                Ok(0) => {
                    // Nobody will have, however often it goes round.
                    stopped = Stopped::Converged(Convergence::StableState.name());
                    break;
                }
                _ => {}
            }
            self.sinks.counts.loops[composite].iterations += 1;
            if let Some(converged) = self.convergence(composite, &policy, pass) {
                stopped = converged;
                break;
            }
            if self.is_over_budget(composite, &policy, pass, begun) {
                stopped = Stopped::BudgetOverrun;
                break;
            }
        }
        self.end_loop(composite, &policy, stopped)
    }

    /// Whether the run was asked to stop; in a replay, whether it was then.
    fn is_loop_cancelled(&mut self, composite: usize, pass: u64) -> bool {
        if self.recording.script.is_some() {
            let cancelled = self.played_loop_stop(composite, pass) == Some(false);
            if cancelled {
                self.record_loop(composite, pass, false);
            }
            return cancelled;
        }
        let cancelled = self.env.stop.is_cancelled();
        if cancelled {
            self.record_loop(composite, pass, false);
        }
        cancelled
    }

    /// Whether a loop has used up its time; in a replay, whether it had then.
    fn is_over_budget(
        &mut self,
        composite: usize,
        policy: &LoopPolicy,
        pass: u64,
        begun: u64,
    ) -> bool {
        if self.recording.script.is_some() {
            let over = self.played_loop_stop(composite, pass) == Some(true);
            if over {
                self.record_loop(composite, pass, true);
            }
            return over;
        }
        let over = !policy.budget.is_zero() && clock::now() - begun > nanos(policy.budget);
        if over {
            self.record_loop(composite, pass, true);
        }
        over
    }

    /// One pass over the members; gives how many invocations there were.
    async fn pass(&mut self, region: usize, composite: usize, pass: u64) -> Result<u64, Halt> {
        let start = clock::now();
        let before = (self.sinks.trace.events.len(), self.sinks.trace.dropped);
        if self.sinks.trace.on {
            self.note_loop(composite, TraceName::LoopIterationBegin, start, 0);
        }
        if let Some(buffer) = &mut self.channels.loop_buffer {
            buffer.report = None;
            if let Some([this, last]) = &mut buffer.passes {
                std::mem::swap(this, last);
                this.clear();
            }
        }
        let plan = self.plan.clone();
        let mut ran = 0;
        for &member in &plan.regions[region].components {
            ran += self.step(member, pass).await?;
        }
        if self.sinks.trace.on && ran > 0 {
            let end = clock::now();
            self.note_loop(composite, TraceName::LoopIteration, start, end - start);
            self.note_loop(composite, TraceName::LoopIterationEnd, end, 0);
        } else if self.sinks.trace.on {
            self.sinks.trace.events.truncate(before.0);
            self.sinks.trace.dropped = before.1;
        }
        Ok(ran)
    }

    /// Whether the pass that has ended was the last one.
    fn convergence(&mut self, composite: usize, policy: &LoopPolicy, pass: u64) -> Option<Stopped> {
        let buffer = self.channels.loop_buffer.as_ref()?;
        if let Some(report) = &buffer.report {
            if report.residual.is_some() {
                self.sinks.counts.loops[composite].residual = report.residual;
            }
            let threshold = policy.residual_threshold;
            let small = threshold.zip(report.residual).is_some_and(|(t, r)| r <= t);
            if small {
                return Some(Stopped::Converged("residual_threshold"));
            }
            if report.converged {
                return Some(Stopped::Converged("component_report"));
            }
        }
        match policy.convergence? {
            Convergence::StableState => {
                let [this, last] = buffer.passes.as_ref()?;
                (pass > 0 && this == last)
                    .then_some(Stopped::Converged(Convergence::StableState.name()))
            }
            single => Some(Stopped::Converged(single.name())),
        }
    }

    /// Counts how a loop ended, and throws away what must not be seen.
    fn end_loop(
        &mut self,
        composite: usize,
        policy: &LoopPolicy,
        stopped: Stopped,
    ) -> Result<(), Halt> {
        let now = self.loop_now(composite);
        self.loops[composite].last_run = Some(now);
        self.loops[composite].runs += 1;
        let counts = &mut self.sinks.counts.loops[composite];
        counts.runs += 1;
        counts.stop_reason = Some(stopped.reason());
        let event = match stopped {
            Stopped::Converged(_) => {
                counts.converged += 1;
                TraceName::LoopConverged
            }
            Stopped::MaxIterations => {
                counts.max_iterations_hit += 1;
                TraceName::LoopMaxIterationsHit
            }
            Stopped::BudgetOverrun => {
                counts.budget_overrun += 1;
                TraceName::LoopBudgetOverrun
            }
            Stopped::Cancelled => {
                counts.cancellation_requested += 1;
                counts.cancellation_observed += 1;
                TraceName::LoopCancellationObserved
            }
            Stopped::ComponentError => {
                counts.error += 1;
                TraceName::LoopError
            }
        };
        if self.sinks.trace.on {
            let at = clock::now();
            if stopped == Stopped::Cancelled {
                self.note_loop(composite, TraceName::LoopCancellationRequested, at, 0);
            }
            let mut event = self.loop_event(composite, event, at, 0);
            let reason = stopped.reason().into();
            event.attributes.push(("loop_stop_reason", reason));
            self.sinks.trace.push(event);
        }
        if stopped == Stopped::ComponentError {
            self.discard_held(composite);
            return Ok(());
        }
        let unconverged = !matches!(stopped, Stopped::Converged(_));
        if policy.kind == LoopKind::SolverIteration && unconverged {
            match policy.partial_success {
                Some(PartialSuccess::CommitOutputs) => {}
                None | Some(PartialSuccess::DiscardOutputs) => self.discard_held(composite),
                Some(PartialSuccess::FailRun) => {
                    self.discard_held(composite);
                    let id = &self.plan.graph.loops[composite].id;
                    let message = format!(
                        "loop {id} did not converge ({}): raise max_iterations or budget_ms, or choose another partial_success",
                        stopped.reason()
                    );
                    return Err(self.halt("loop", ErrorCode::Runtime, None, message));
                }
            }
        }
        Ok(())
    }

    fn discard_held(&mut self, composite: usize) {
        let Some(buffer) = &mut self.channels.loop_buffer else {
            return;
        };
        let discarded = buffer.held.len() as u64;
        buffer.held.clear();
        self.sinks.counts.publication.composite_discarded += discarded;
        self.sinks.counts.loops[composite].output_discarded += discarded;
        if discarded > 0 && self.sinks.trace.on {
            let at = clock::now();
            self.note_loop(composite, TraceName::LoopOutputDiscarded, at, 0);
        }
    }

    /// The loop is over: what it held becomes visible.
    pub(crate) fn end_hold(&mut self) -> Result<(), Halt> {
        match self.channels.loop_buffer.take() {
            Some(mut buffer) => self.commit(&mut buffer.held),
            None => Ok(()),
        }
    }

    fn note_loop(&mut self, composite: usize, name: TraceName, at: u64, duration: u64) {
        let event = self.loop_event(composite, name, at, duration);
        self.sinks.trace.push(event);
    }

    fn loop_event(&self, composite: usize, name: TraceName, at: u64, duration: u64) -> Recorded {
        let mut event = Recorded {
            duration,
            ..Recorded::new(name, self.env.epoch, at)
        };
        let id = self.plan.graph.loops[composite].id.as_str();
        event.attributes.push(("loop", id.into()));
        event
    }
}

impl Channels {
    /// Keeps what a member publishes to the outside.
    pub(crate) fn hold_back(&mut self, item: Staged) {
        if let Some(buffer) = &mut self.loop_buffer {
            buffer.held.push(item);
        }
    }

    /// Remembers what a pass has published, if somebody compares.
    pub(crate) fn remember_pass(&mut self, items: &[Staged]) {
        if let Some(LoopBuffer {
            passes: Some([this, _]),
            ..
        }) = &mut self.loop_buffer
        {
            this.extend(items.iter().map(|item| (item.edge, item.payload.clone())));
        }
    }
}
