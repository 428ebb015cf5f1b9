//! Calling components, here and in order; and what is counted and recorded about each call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::component::{
    Call, Component, Env, Failure, Invocation, Origin, Outbox, Received, Reentrant,
};
use crate::run::result::ErrorCode;
use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{CallEnd, LifecycleKind, Sink};
use crate::run::sinks::trace::NONE;
use crate::run::state::triggers::DoorSignal;
use crate::run::state::triggers::ready::ReadyCalls;
use windlass_plan::model::OnError;

/// What is called.
pub(crate) enum Body<'a> {
    Exclusive(&'a mut dyn Component),
    Reentrant(&'a Arc<dyn Reentrant>),
}

/// A call that has ended.
pub(crate) struct FinishedCall {
    pub(crate) call: Call,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Why it failed.
    pub(crate) failed: Option<Box<str>>,
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
) -> Option<Box<str>> {
    let mut invocation = Invocation {
        env,
        component: component as u32,
        inputs,
        out,
        call,
    };
    if let Some(decisions) = &env.decisions
        && let Some(message) = decisions.end_again(&mut invocation)
    {
        return Some(message.into());
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
        failed => outcome(failed).err().map(String::into_boxed_str),
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

impl RunState {
    /// Runs a component here: what each invocation published is committed before the next begins.
    pub(crate) fn step_inline(&mut self, component: usize, iteration: u64) -> Result<u64, Halt> {
        if !self.members.runs(component) {
            return Ok(0);
        }
        let outside = self.door_signal(component);
        let now = self.lanes.time(self.tables.components[component].lane);
        // A member of a loop may publish to itself: what it has got is fixed before it runs.
        if !self.channels.is_in_loop() && self.tables.components[component].plain.is_some() {
            return self.step_plainly(component, now, outside);
        }
        self.step_by_trigger(component, now, outside, iteration)
    }

    /// Asks the trigger of a component which invocations it makes.
    #[inline]
    pub(crate) fn check_trigger(
        &mut self,
        component: usize,
        now: u64,
        outside: DoorSignal,
    ) -> Box<ReadyCalls> {
        self.triggers.check(
            component,
            self.channels.as_mut_slice(),
            now,
            &mut self.sinks.health,
            outside,
        )
    }

    /// Runs the invocations that the trigger of a component makes.
    #[inline(never)]
    fn step_by_trigger(
        &mut self,
        component: usize,
        now: u64,
        outside: DoorSignal,
        iteration: u64,
    ) -> Result<u64, Halt> {
        let mut ready = self.check_trigger(component, now, outside);
        let mut invocations = 0;
        let mut result = Ok(());
        while let Some(mut inputs) = ready.list.pop_front() {
            if result.is_ok() && self.members.may_finish(component) {
                invocations += 1;
                result = self.invoke(component, &mut inputs, iteration);
            } else {
                // The numbers of what follows do not depend on how many were called.
                self.calls.next_number();
            }
            ready.recycle(inputs);
        }
        self.triggers.give_back(ready);
        result.map(|()| invocations)
    }

    /// Runs a component once for each message, straight from the channels.
    fn step_plainly(
        &mut self,
        component: usize,
        now: u64,
        outside: DoorSignal,
    ) -> Result<u64, Halt> {
        let edge_of = |state: &RunState, nth: usize| {
            let edges = state.tables.components[component].plain.as_ref()?;
            edges.get(nth).map(|&edge| edge as usize)
        };
        let mut inputs = self.calls.take_inputs();
        let mut invocations = 0;
        let mut ready = 0;
        let mut result = Ok(());
        let mut nth = 0;
        while let Some(edge) = edge_of(self, nth) {
            nth += 1;
            for _ in 0..self.channels[edge].available(now, &mut self.sinks.health) {
                if self.members.is_held(component) {
                    break;
                }
                if !self.channels[edge].take_into(&mut inputs, now, &mut self.sinks.health) {
                    break;
                }
                ready += 1;
                if result.is_ok() && self.members.may_finish(component) {
                    invocations += 1;
                    result = self.invoke(component, &mut inputs, 0);
                } else {
                    self.calls.next_number();
                }
                inputs.clear();
            }
        }
        if invocations == 0 && outside == (DoorSignal::Door { woken: true }) {
            invocations += 1;
            ready += 1;
            result = self.invoke(component, &mut inputs, 0);
        }
        self.triggers.count_ready(component, ready);
        self.calls.return_inputs(inputs);
        result.map(|()| invocations)
    }

    /// Returns what makes a component run from outside.
    #[inline]
    pub(crate) fn door_signal(&mut self, component: usize) -> DoorSignal {
        if !self.members.has_door(component) {
            return DoorSignal::NoDoor;
        }
        let lane = self.lanes.lane(self.tables.components[component].lane);
        self.members.door_signal(component, lane.follows_clock())
    }

    fn invoke(
        &mut self,
        component: usize,
        inputs: &mut Vec<Received>,
        iteration: u64,
    ) -> Result<(), Halt> {
        let mut out = self.calls.take_outbox();
        self.fill_room(component, &mut out);
        let is_traced = self.sinks.trace.is_on();
        let start = self.calls.start(is_traced);
        let mut finished = FinishedCall {
            call: self.next_call(component, inputs, iteration, start),
            start,
            end: start,
            failed: None,
            worker: NONE,
        };
        if let Some((body, deadline)) = self.members.callee(component) {
            let body = Body::Exclusive(body);
            let (env, given) = (&self.env, &finished.call);
            finished.failed = match deadline {
                None => call(body, env, component, inputs, &mut out, given),
                Some(deadline) => deadline.watched(&mut out, |out| {
                    call(body, env, component, inputs, out, given)
                }),
            };
        }
        finished.end = self.calls.end(start, is_traced);
        let result = self
            .settle(component, &finished, &mut out)
            .and_then(|()| self.commit(&mut out.staged));
        self.calls.return_outbox(out);
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
        let transaction = self.calls.next_number();
        let row = &self.tables.components[component];
        Call {
            transaction,
            iteration,
            cancel_at: match row.max_callback {
                0 => 0,
                limit => start.saturating_add(limit),
            },
            cancel_after: match &self.env.decisions {
                Some(decisions) => decisions.cancelled_after(transaction),
                None => None,
            },
            now: self.lanes.time(row.lane),
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
                let pending = self.channels[edge as usize].in_flight() as usize;
                room = row.max_inflight.saturating_sub(pending);
            }
            if row.holds_off {
                room = room.min(self.channels.free_room(edge));
            }
            out.room.push((edge, room));
        }
    }

    /// Counts and records a call. If it failed, what it published is thrown away.
    pub(crate) fn settle(
        &mut self,
        component: usize,
        finished: &FinishedCall,
        out: &mut Outbox,
    ) -> Result<(), Halt> {
        self.calls.count();
        self.members.look_held(component, out.held);
        let row = &self.tables.components[component];
        let event = CallEnd {
            epoch: self.env.epoch,
            component,
            row,
            finished,
            out,
            held: self.members.is_held(component),
        };
        let lane = self.lanes.lane_mut(row.lane);
        lane.count_call(event.duration(), row.priority);
        self.sinks.call_end(&event);
        for &edge in &out.refused {
            // An edge that holds its source off loses nothing, and counts nothing.
            if self.tables.edges[edge as usize].refuses_early {
                self.channels.count_refused_async(
                    edge as usize,
                    finished.call.transaction,
                    self.env.epoch,
                    &mut self.sinks,
                );
            }
        }
        if self.tables.components[component].is_finite_source {
            let waits = !out.refused.is_empty() && out.staged.is_empty() && !out.finished;
            let was_held = waits && finished.failed.is_none();
            self.calls.count_source(!out.staged.is_empty(), was_held);
        }
        if let Some(message) = &finished.failed {
            return self.failed(component, message.to_string(), out);
        }
        self.members.note_finished(component, out.finished);
        self.channels.write_store(&mut out.state);
        if let Some(buffer) = self.channels.loop_buffer()
            && let Some(report) = out.report.take()
        {
            buffer.set_report(report);
        }
        Ok(())
    }

    /// What an error does: `on_error` says.
    fn failed(&mut self, component: usize, message: String, out: &mut Outbox) -> Result<(), Halt> {
        out.staged.clear();
        out.state.clear();
        if let Some(buffer) = self.channels.loop_buffer() {
            buffer.fail();
        }
        let on_error = match out.forced {
            // The run has to stop, whatever the graph says about errors.
            true => OnError::FailFast,
            false => self.tables.components[component].on_error,
        };
        if out.forced {
            self.members.add_forced(component);
        }
        let fatal = on_error == OnError::FailFast;
        let code = ErrorCode::ComponentExecute;
        self.sinks
            .add_error("execute", code, Some(component), message, fatal);
        match on_error {
            OnError::FailFast => return Err(Halt),
            OnError::Continue => {}
            OnError::Isolate => {
                let mut lifecycle = self.lifecycle();
                lifecycle.report(LifecycleKind::Isolate, component);
                lifecycle.deactivate(component);
            }
        }
        Ok(())
    }
}
