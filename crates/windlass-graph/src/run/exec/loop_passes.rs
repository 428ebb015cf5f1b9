//! Running composite loops: passes over their members until they converge.
//!
//! While a loop runs, what its members publish to each other is committed at once, and what goes to
//! the outside is held (`state/loop_buffer.rs`).

use windlass_core::sync::clock;

use crate::run::result::ErrorCode;
use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{
    LoopDiscard, LoopEnd, LoopInterruption, LoopResidual, PassBegin, PassEnd, Sink,
};
use crate::run::state::loop_buffer::LoopBuffer;
use crate::run::state::tables::nanos;
use windlass_plan::model::{Convergence, LoopKind, LoopPolicy, Overflow, PartialSuccess};

/// Why a loop makes no further pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopStop {
    Converged(&'static str),
    MaxIterations,
    BudgetOverrun,
    Cancelled,
    ComponentError,
}

impl LoopStop {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            LoopStop::Converged(reason) => reason,
            LoopStop::MaxIterations => "max_iterations",
            LoopStop::BudgetOverrun => "budget_overrun",
            LoopStop::Cancelled => "cancelled",
            LoopStop::ComponentError => "component_error",
        }
    }
}

impl RunState {
    /// Runs a loop in its turn: here, or beside the epochs.
    pub(crate) async fn run_loop(&mut self, region: usize, composite: usize) -> Result<(), Halt> {
        let policy = self.tables.plan.graph.loops[composite].policy.clone();
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
        let busy = self.loops.beside().contains(region);
        let wake = self.loops.next_wake(&self.tables.plan, composite);
        let early = wake.is_some_and(|wake| self.loop_now(composite) < wake);
        !busy && (policy.min_interval.is_zero() || !early)
    }

    /// Whether a loop has something to do: a member that runs without a message, or one from
    /// outside.
    pub(crate) fn loop_has_work(&self, composite: usize) -> bool {
        let members = &self.tables.plan.graph.loops[composite].components;
        let first = members
            .first()
            .and_then(|id| self.tables.plan.graph.component(id));
        let Some((first, _)) = first else {
            return false;
        };
        let region = self.tables.plan.region_of[first];
        let members = &self.tables.plan.regions[region].components;
        members.iter().any(|&m| self.triggers.needs_no_message(m))
            || self
                .edges_into(region)
                .into_iter()
                .any(|edge| self.channels[edge].waiting() > 0)
    }

    fn loop_now(&self, composite: usize) -> u64 {
        let members = &self.tables.plan.graph.loops[composite].components;
        let first = members
            .first()
            .and_then(|id| self.tables.plan.graph.component(id));
        first.map_or(0, |(c, _)| self.lanes.time(self.tables.plan.nodes[c].lane))
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

    /// Drops the messages that wait at edges into the region, but for the newest `but` of each
    /// edge.
    fn drop_inputs(&mut self, region: usize, but: usize) {
        for edge in self.edges_into(region) {
            self.channels[edge].drop_unread(but, &mut self.sinks.health);
        }
    }

    /// Goes round; what goes to the outside stays held.
    pub(crate) async fn iterate(&mut self, region: usize, composite: usize) -> Result<(), Halt> {
        let policy = self.tables.plan.graph.loops[composite].policy.clone();
        let compares = policy.convergence == Some(Convergence::StableState);
        self.channels.begin_loop(LoopBuffer::new(region, compares));
        let begun = clock::now();
        let passes = match policy.kind {
            LoopKind::Transaction => 1,
            _ => policy.max_iterations.max(1),
        };
        let mut stop = LoopStop::MaxIterations;
        for pass in 0..passes {
            if pass > 0 && self.is_loop_cancelled(composite, pass) {
                stop = LoopStop::Cancelled;
                break;
            }
            let ran = self.pass(region, composite, pass).await;
            let failed =
                ran.is_err() || self.channels.loop_buffer().is_some_and(|b| b.has_failed());
            if failed {
                self.end_loop(composite, &policy, LoopStop::ComponentError)?;
                return ran.map(|_| ());
            }
            match ran {
                Ok(0) if pass == 0 => {
                    // No member had anything to do: the loop did not run at all.
                    return Ok(());
                }
                Ok(0) => {
                    // No member will have, in however many passes.
                    stop = LoopStop::Converged(Convergence::StableState.name());
                    break;
                }
                _ => {}
            }
            if let Some(converged) = self.convergence(composite, &policy, pass) {
                stop = converged;
                break;
            }
            if self.is_over_budget(composite, &policy, pass, begun) {
                stop = LoopStop::BudgetOverrun;
                break;
            }
        }
        self.end_loop(composite, &policy, stop)
    }

    /// Whether the run was asked to stop; in a replay, whether it was then.
    fn is_loop_cancelled(&mut self, composite: usize, pass: u64) -> bool {
        let cancelled = match self.env.decisions.is_some() {
            true => self.recorded_loop_stop(composite, pass) == Some(false),
            false => self.env.stop.is_cancelled(),
        };
        if cancelled {
            self.report_interruption(composite, pass, false);
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
        let over = match self.env.decisions.is_some() {
            true => self.recorded_loop_stop(composite, pass) == Some(true),
            false => !policy.budget.is_zero() && clock::now() - begun > nanos(policy.budget),
        };
        if over {
            self.report_interruption(composite, pass, true);
        }
        over
    }

    /// In a replay: returns whether a loop was stop after this pass, and whether by its budget.
    fn recorded_loop_stop(&self, composite: usize, pass: u64) -> Option<bool> {
        let id = &self.tables.plan.graph.loops[composite].id;
        let run = self.loops.runs(composite);
        self.env.decisions.as_ref()?.stopped(id, run, pass)
    }

    /// One pass over the members; gives how many invocations there were.
    async fn pass(&mut self, region: usize, composite: usize, pass: u64) -> Result<u64, Halt> {
        let start = clock::now();
        let epoch = self.env.epoch;
        self.sinks.pass_begin(&PassBegin {
            epoch,
            composite,
            at: start,
        });
        if let Some(buffer) = self.channels.loop_buffer() {
            buffer.begin_pass();
        }
        let plan = self.tables.plan.clone();
        let mut ran = 0;
        for &member in &plan.regions[region].components {
            ran += self.step(member, pass).await?;
        }
        let buffer = self.channels.loop_buffer();
        let failed = buffer.is_some_and(|buffer| buffer.has_failed());
        self.sinks.pass_end(&PassEnd {
            epoch,
            composite,
            start,
            ran,
            failed,
        });
        Ok(ran)
    }

    /// Whether the pass that has ended was the last one.
    fn convergence(
        &mut self,
        composite: usize,
        policy: &LoopPolicy,
        pass: u64,
    ) -> Option<LoopStop> {
        let buffer = self.channels.loop_buffer()?;
        if let Some(report) = buffer.report() {
            if let Some(residual) = report.residual {
                self.sinks.loop_residual(&LoopResidual {
                    composite,
                    residual,
                });
            }
            let threshold = policy.residual_threshold;
            let small = threshold.zip(report.residual).is_some_and(|(t, r)| r <= t);
            if small {
                return Some(LoopStop::Converged("residual_threshold"));
            }
            if report.converged {
                return Some(LoopStop::Converged("component_report"));
            }
        }
        match policy.convergence? {
            Convergence::StableState => (pass > 0 && buffer.is_stable())
                .then_some(LoopStop::Converged(Convergence::StableState.name())),
            single => Some(LoopStop::Converged(single.name())),
        }
    }

    /// Counts how a loop ended, and throws away what must not be seen.
    fn end_loop(
        &mut self,
        composite: usize,
        policy: &LoopPolicy,
        stop: LoopStop,
    ) -> Result<(), Halt> {
        let now = self.loop_now(composite);
        self.loops.note_run(composite, now);
        self.sinks.loop_end(&LoopEnd {
            epoch: self.env.epoch,
            composite,
            stop,
        });
        if stop == LoopStop::ComponentError {
            self.discard_held(composite);
            return Ok(());
        }
        let unconverged = !matches!(stop, LoopStop::Converged(_));
        if policy.kind == LoopKind::SolverIteration && unconverged {
            match policy.partial_success {
                Some(PartialSuccess::CommitOutputs) => {}
                None | Some(PartialSuccess::DiscardOutputs) => self.discard_held(composite),
                Some(PartialSuccess::FailRun) => {
                    self.discard_held(composite);
                    let id = &self.tables.plan.graph.loops[composite].id;
                    let message = format!(
                        "loop {id} did not converge ({}): raise max_iterations or budget_ms, or choose another partial_success",
                        stop.reason()
                    );
                    return Err(self.sinks.halt("loop", ErrorCode::Runtime, None, message));
                }
            }
        }
        Ok(())
    }

    fn discard_held(&mut self, composite: usize) {
        let Some(buffer) = self.channels.loop_buffer() else {
            return;
        };
        let discarded = buffer.discard();
        self.sinks.loop_discard(&LoopDiscard {
            epoch: self.env.epoch,
            composite: Some(composite),
            items: discarded,
        });
    }

    /// The loop is over: what it held becomes visible.
    pub(crate) fn end_hold(&mut self) -> Result<(), Halt> {
        match self.channels.end_loop() {
            Some(mut held) => self.commit(&mut held),
            None => Ok(()),
        }
    }

    /// Reports that a loop is stopped by something that is not in the graph.
    fn report_interruption(&mut self, composite: usize, pass: u64, budget: bool) {
        self.sinks.loop_interruption(&LoopInterruption {
            composite,
            run: self.loops.runs(composite),
            pass,
            budget,
        });
    }
}
