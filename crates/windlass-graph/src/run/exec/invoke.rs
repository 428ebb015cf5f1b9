//! Calling components, here and in order; and what is counted and recorded about each call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_core::sync::clock;

use crate::component::{
    Call, Component, Env, Failure, Invocation, Origin, Outbox, Received, Reentrant,
};
use crate::run::machine::{Halt, Machine};
use crate::run::result::ErrorCode;
use crate::run::sinks::trace::{NONE, Recorded, TraceName};
use crate::run::state::trigger::From;
use windlass_plan::model::OnError;

/// What is called.
pub(crate) enum Body<'a> {
    Exclusive(&'a mut dyn Component),
    Reentrant(&'a Arc<dyn Reentrant>),
}

/// A call that has ended.
pub(crate) struct Finished {
    pub(crate) call: Call,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Why it failed.
    pub(crate) failed: Option<String>,
    /// The lane's worker, or `NONE`.
    pub(crate) worker: u32,
}

/// Calls a component; a panic is a failure like any other.
pub(crate) fn call(
    body: Body<'_>,
    env: &Env,
    component: usize,
    inputs: &mut Vec<Received>,
    out: &mut Outbox,
    call: &Call,
) -> Option<String> {
    let mut invocation = Invocation {
        env,
        component: component as u32,
        inputs,
        out,
        call,
    };
    if let Some(script) = &env.script
        && let Some(message) = script.end_again(&mut invocation)
    {
        return Some(message);
    }
    let called = match body {
        Body::Exclusive(body) => {
            env.under_way.begin(component);
            let called = catch_unwind(AssertUnwindSafe(|| body.execute(&mut invocation)));
            env.under_way.end(component);
            called
        }
        Body::Reentrant(body) => {
            env.under_way.begin_shared(component);
            let called = catch_unwind(AssertUnwindSafe(|| body.execute(&mut invocation)));
            env.under_way.end_shared(component);
            called
        }
    };
    match called {
        Ok(Ok(())) => None,
        failed => outcome(failed).err(),
    }
}

/// What came of a call of user code, which may have panicked.
pub(crate) fn outcome<T>(
    called: Result<Result<T, Failure>, Box<dyn std::any::Any + Send>>,
) -> Result<T, String> {
    match called {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(failure.message().to_owned()),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            // Its destructor is user code.
            windlass_core::task::contain(|| drop(panic));
            Err(match text {
                Some(text) => format!("panicked: {text}"),
                None => "panicked".to_owned(),
            })
        }
    }
}

impl Machine {
    /// Runs a component here: what each invocation published is committed before the next begins.
    pub(crate) fn step_inline(&mut self, component: usize, iteration: u64) -> Result<u64, Halt> {
        if !self.members[component].runs() {
            return Ok(0);
        }
        let outside = self.outside_of(component);
        let now = self.lanes[self.tables.components[component].lane].now;
        // A member of a loop may publish to itself: what it has got is fixed before it runs.
        if self.channels.loop_buffer.is_none() && self.tables.components[component].plain.is_some()
        {
            return self.step_plainly(component, now, outside);
        }
        self.step_by_trigger(component, now, outside, iteration)
    }

    /// Runs a component for whatever its trigger makes of what has come.
    #[inline(never)]
    fn step_by_trigger(
        &mut self,
        component: usize,
        now: u64,
        outside: From,
        iteration: u64,
    ) -> Result<u64, Halt> {
        let mut ready = self.spare.ready.take().unwrap_or_default();
        self.triggers[component].check(
            self.channels.as_mut_slice(),
            now,
            &mut self.sinks.health,
            &mut ready,
            outside,
        );
        let mut invocations = 0;
        let mut result = Ok(());
        while let Some(mut inputs) = ready.list.pop_front() {
            if result.is_ok() && self.members[component].may_finish() {
                invocations += 1;
                result = self.invoke(component, &mut inputs, iteration);
            } else {
                // The numbers of what follows do not depend on how many were called.
                self.totals.transaction += 1;
            }
            ready.recycle(inputs);
        }
        self.spare.ready = Some(ready);
        result.map(|()| invocations)
    }

    /// Runs a component once for each message, straight from the channels.
    fn step_plainly(&mut self, component: usize, now: u64, outside: From) -> Result<u64, Halt> {
        let edge_of = |machine: &Machine, nth: usize| {
            let edges = machine.tables.components[component].plain.as_ref()?;
            edges.get(nth).map(|&edge| edge as usize)
        };
        let mut inputs = std::mem::take(&mut self.spare.inputs);
        let mut invocations = 0;
        let mut ready = 0;
        let mut result = Ok(());
        let mut nth = 0;
        while let Some(edge) = edge_of(self, nth) {
            nth += 1;
            for _ in 0..self.channels[edge].available(now, &mut self.sinks.health) {
                if self.members[component].held {
                    break;
                }
                if !self.channels[edge].take_into(&mut inputs, now, &mut self.sinks.health) {
                    break;
                }
                ready += 1;
                if result.is_ok() && self.members[component].may_finish() {
                    invocations += 1;
                    result = self.invoke(component, &mut inputs, 0);
                } else {
                    self.totals.transaction += 1;
                }
                inputs.clear();
            }
        }
        if invocations == 0 && outside == (From::Door { woken: true }) {
            invocations += 1;
            ready += 1;
            result = self.invoke(component, &mut inputs, 0);
        }
        self.sinks.counts.plain_ready[component] += ready;
        self.spare.inputs = inputs;
        result.map(|()| invocations)
    }

    fn invoke(
        &mut self,
        component: usize,
        inputs: &mut Vec<Received>,
        iteration: u64,
    ) -> Result<(), Halt> {
        let mut out = self.spare.outbox.take().unwrap_or_default();
        out.clear();
        self.fill_room(component, &mut out);
        let start = if self.sinks.trace.on {
            clock::now()
        } else {
            self.clock.latest
        };
        let mut finished = Finished {
            call: self.next_call(component, inputs, iteration, start),
            start,
            end: start,
            failed: None,
            worker: NONE,
        };
        let member = &mut self.members[component];
        if let Some(body) = member.component.as_deref_mut() {
            let body = Body::Exclusive(body);
            let (env, given) = (&self.env, &finished.call);
            finished.failed = match &member.deadline {
                None => call(body, env, component, inputs, &mut out, given),
                Some(deadline) => deadline.watched(&mut out, |out| {
                    call(body, env, component, inputs, out, given)
                }),
            };
        }
        let end = match self.sinks.trace.on {
            true => clock::now(),
            false => self.clock.near.now(),
        };
        self.clock.latest = end.max(start);
        finished.end = self.clock.latest;
        let result = self
            .settle(component, &finished, &mut out)
            .and_then(|()| self.commit(&mut out.staged));
        self.spare.outbox = Some(out);
        result
    }

    /// Numbers a call.
    pub(crate) fn next_call(
        &mut self,
        component: usize,
        inputs: &[Received],
        iteration: u64,
        start: u64,
    ) -> Call {
        self.totals.transaction += 1;
        let row = &self.tables.components[component];
        Call {
            transaction: self.totals.transaction,
            iteration,
            cancel_at: match row.max_callback {
                0 => 0,
                limit => start.saturating_add(limit),
            },
            cancel_after: match self.recording.script.is_some() {
                true => self.played_cancel(),
                false => None,
            },
            now: self.lanes[row.lane].now,
            origin: Origin::of(inputs),
        }
    }

    /// Says how much room there is on the edges that may say no.
    #[inline]
    pub(crate) fn fill_room(&self, component: usize, out: &mut Outbox) {
        for &edge in &self.tables.components[component].limited {
            let row = &self.tables.edges[edge as usize];
            let mut room = usize::MAX;
            if row.refuses_early {
                let pending = self.sinks.counts.asynchronous[edge as usize].in_flight as usize;
                room = row.max_inflight.saturating_sub(pending);
            }
            if row.holds_off {
                let deferred = self
                    .channels
                    .deferred
                    .iter()
                    .filter(|item| item.edge == edge);
                let free = self.channels[edge as usize].room();
                room = room.min(free.saturating_sub(deferred.count()));
            }
            out.room.push((edge, room));
        }
    }

    /// Counts and records a call. If it failed, what it published is thrown away.
    pub(crate) fn settle(
        &mut self,
        component: usize,
        finished: &Finished,
        out: &mut Outbox,
    ) -> Result<(), Halt> {
        self.totals.ticks += 1;
        if self.sinks.order.len() < self.sinks.order_capacity {
            self.sinks.order.push(component as u32);
        }
        self.count_call(component, finished, out);
        if self.members[component].has_door {
            self.members[component].look_held(out.held);
        }
        if self.sinks.tape.is_some() {
            self.record_call(component, finished, out);
        }
        if self.sinks.trace.on {
            self.trace_call(component, finished, out);
        }
        for &edge in &out.refused {
            // An edge that holds its source off loses nothing, and counts nothing.
            if self.tables.edges[edge as usize].refuses_early {
                self.channels.count_refused_async(
                    edge as usize,
                    finished.call.transaction,
                    &self.tables,
                    &mut self.sinks,
                );
            }
        }
        if self.tables.components[component].is_finite_source {
            self.totals.source_publishes += u64::from(!out.staged.is_empty());
            let waits = !out.refused.is_empty() && out.staged.is_empty() && !out.finished;
            self.totals.held_ticks += u64::from(waits && finished.failed.is_none());
        }
        if let Some(message) = &finished.failed {
            return self.failed(component, message.clone(), out);
        }
        let member = &mut self.members[component];
        member.finished |= out.finished;
        self.sinks.counts.publication.staged += out.staged.len() as u64;
        self.sinks.counts.components[component].unconnected_publish += u64::from(out.unconnected);
        if !out.state.is_empty() {
            self.channels.store_writes.append(&mut out.state);
        }
        if let Some(buffer) = &mut self.channels.loop_buffer
            && out.report.is_some()
        {
            buffer.report = out.report.take();
        }
        Ok(())
    }

    fn count_call(&mut self, component: usize, finished: &Finished, out: &Outbox) {
        let row = &self.tables.components[component];
        let duration = finished.end - finished.start;
        let counts = &mut self.sinks.counts.components[component];
        counts.execution += 1;
        counts.last_duration_ns = duration;
        counts.max_duration_ns = counts.max_duration_ns.max(duration);
        counts.max_in_flight = counts.max_in_flight.max(1);
        if row.budget > 0 && duration > row.budget {
            counts.budget_overrun += 1;
            counts.timeout_budget_exceeded += 1;
        }
        let asked = row.max_callback > 0 && duration > row.max_callback;
        counts.cancellation_requested += u64::from(asked || out.observed_cancel);
        counts.cancellation_observed += u64::from(out.observed_cancel);
        counts.timeout += u64::from(out.timed_out);
        let lane = &mut self.lanes[row.lane];
        lane.tick_used += duration;
        lane.counts.completed += 1;
        lane.counts.last_callback_ns = duration;
        lane.counts.completed_by_priority[row.priority] += 1;
    }

    fn trace_call(&mut self, component: usize, finished: &Finished, out: &Outbox) {
        let tables = self.tables.clone();
        let row = &tables.components[component];
        let origin = finished.call.origin;
        let event = |machine: &Machine, name, at| Recorded {
            worker: finished.worker,
            transaction: finished.call.transaction,
            correlation: origin.map(|origin| origin.root),
            causation: origin.map(|origin| origin.id),
            ..machine.recorded(name, component, at)
        };
        let begin = event(self, TraceName::ComponentExecuteBegin, finished.start);
        self.sinks.trace.push(begin);
        for staged in &out.staged {
            let mut publish = event(self, TraceName::ChannelPublish, staged.at);
            publish.channel = staged.edge;
            self.sinks.trace.push(publish);
        }
        let mut span = event(self, TraceName::ComponentExecute, finished.start);
        let duration = finished.end - finished.start;
        span.duration = duration;
        if let Some(message) = &finished.failed {
            span.attributes.push(("error", message.as_str().into()));
        }
        self.sinks.trace.push(span);
        let end = event(self, TraceName::ComponentExecuteEnd, finished.end);
        self.sinks.trace.push(end);
        let budget = row.budget > 0 && duration > row.budget;
        let asked = row.max_callback > 0 && duration > row.max_callback;
        for (name, happened) in [
            (TraceName::ComponentTimeoutBudgetExceeded, budget),
            (
                TraceName::ComponentCancellationRequested,
                asked || out.observed_cancel,
            ),
            (
                TraceName::ComponentCancellationObserved,
                out.observed_cancel,
            ),
            (TraceName::ComponentTimeout, out.timed_out),
        ] {
            if happened {
                let event = event(self, name, finished.end);
                self.sinks.trace.push(event);
            }
        }
    }

    /// What an error does: `on_error` says.
    fn failed(&mut self, component: usize, message: String, out: &mut Outbox) -> Result<(), Halt> {
        self.sinks.counts.components[component].error += 1;
        self.sinks.counts.publication.error_discarded += out.staged.len() as u64;
        out.staged.clear();
        out.state.clear();
        if let Some(buffer) = &mut self.channels.loop_buffer {
            buffer.failed = true;
        }
        let on_error = match out.forced {
            // The run has to stop, whatever the graph says about errors.
            true => OnError::FailFast,
            false => self.tables.components[component].on_error,
        };
        if out.forced {
            self.forced.push(component);
        }
        let fatal = on_error == OnError::FailFast;
        let code = ErrorCode::ComponentExecute;
        self.add_error("execute", code, Some(component), message, fatal);
        match on_error {
            OnError::FailFast => return Err(Halt),
            OnError::Continue => {}
            OnError::Isolate => {
                self.sinks.counts.run.isolated += 1;
                self.deactivate(component);
            }
        }
        Ok(())
    }
}
