//! Calling components on the threads of a lane.
//!
//! A component's turn there is a *flight*: its trigger makes invocations, the lane admits some, and they are sent off
//! (`collect`). When they are back they are counted and committed (`land`). Between the two the run may do something
//! else (`overlap.rs`). Invocations of a reentrant component fly at once, and are committed when all are back. All
//! others fly one after another, and the component with them; what each publishes is committed before that of the
//! next, and nothing that it can see depends on when.
//!
//! A lane of type `thread_pool` admits as many invocations as it has workers and places in its queue; what happens to
//! the others its overflow policy says. Other lanes admit all.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use windlass_core::sync::clock;
use windlass_sync::channel::oneshot;

use crate::component::{Call, Component, Env, Outbox, Received, Reentrant};
use crate::run::exec::invoke::{Body, Finished, call};
use crate::run::exec::threads::{Pool, Workers};
use crate::run::exec::watch::CallDeadline;
use crate::run::machine::{Halt, Machine};
use crate::run::result::ErrorCode;
use crate::run::sinks::health::{Health, HealthKind, HealthSubject};
use crate::run::sinks::trace::{NONE, TraceName};
use crate::run::state::trigger::Ready;
use windlass_plan::model::{LaneKind, LaneOverflow, OnError, Priority};

/// Invocations on their way to a thread, one after another.
pub(crate) struct Job {
    env: Arc<Env>,
    component: usize,
    calls: Vec<(Call, Vec<Received>, Outbox)>,
    body: JobBody,
    max_callback: u64,
    /// What ends one that takes too long.
    deadline: Option<CallDeadline>,
    /// Whether the next is called after one that failed.
    goes_on: bool,
    workers: Option<Arc<Workers>>,
    answer: oneshot::Sender<Done>,
}

enum JobBody {
    Exclusive(Box<dyn Component>),
    Reentrant(Arc<dyn Reentrant>),
}

/// Invocations on their way back.
struct Done {
    called: Vec<Called>,
    component: Option<Box<dyn Component>>,
}

/// One of them.
struct Called {
    finished: Finished,
    inputs: Vec<Received>,
    out: Outbox,
}

/// A component's turn: invocations that are under way.
pub(crate) struct Flight {
    component: usize,
    start: u64,
    size: u64,
    together: bool,
    under_way: Vec<oneshot::Receiver<Done>>,
    /// What is sent when what is under way has been committed.
    rest: VecDeque<(Call, Vec<Received>)>,
}

/// What was collected ahead of its turn.
pub(crate) struct Ahead {
    /// None if nothing was ready.
    flight: Option<Flight>,
    health: Health,
}

impl Job {
    pub(crate) fn run(mut self) {
        let worker = self
            .workers
            .as_ref()
            .map_or(NONE, |workers| workers.begin());
        let mut called = Vec::with_capacity(self.calls.len());
        for (mut given, mut inputs, mut out) in self.calls.drain(..) {
            let start = clock::now();
            if self.max_callback > 0 {
                given.cancel_at = start.saturating_add(self.max_callback);
            }
            let body = match &mut self.body {
                JobBody::Exclusive(component) => Body::Exclusive(component.as_mut()),
                JobBody::Reentrant(body) => Body::Reentrant(body),
            };
            let (env, component) = (&self.env, self.component);
            let failed = match &self.deadline {
                None => call(body, env, component, &mut inputs, &mut out, &given),
                Some(deadline) => deadline.watched(&mut out, |out| {
                    call(body, env, component, &mut inputs, out, &given)
                }),
            };
            let goes_on = (self.goes_on || failed.is_none()) && !out.finished;
            called.push(Called {
                finished: Finished {
                    call: given,
                    start,
                    end: clock::now(),
                    failed,
                    worker,
                },
                inputs,
                out,
            });
            if !goes_on {
                break;
            }
        }
        if let Some(workers) = &self.workers {
            workers.end();
        }
        let component = match self.body {
            JobBody::Exclusive(component) => Some(component),
            JobBody::Reentrant(_) => None,
        };
        // If nobody waits any more, components are dropped here: their destructors are user code.
        let unwanted = self.answer.send(Done { called, component });
        windlass_core::task::contain(|| drop(unwanted));
    }
}

impl Machine {
    /// Runs a component on its lane's threads, and waits for them.
    pub(crate) async fn step_on_pool(
        &mut self,
        component: usize,
        iteration: u64,
    ) -> Result<u64, Halt> {
        match self.collect(component, iteration)? {
            Some(flight) => self.land(flight).await,
            None => Ok(0),
        }
    }

    /// As `collect`, ahead of the component's turn: what its trigger and its lane have to say waits for that, too.
    pub(crate) fn collect_ahead(&mut self, component: usize) -> Result<Ahead, Halt> {
        let mut health = Health::new(&self.plan, false);
        health.epoch = self.sinks.health.epoch;
        std::mem::swap(&mut self.sinks.health, &mut health);
        let flight = self.collect(component, 0);
        std::mem::swap(&mut self.sinks.health, &mut health);
        flight.map(|flight| Ahead { flight, health })
    }

    /// The turn of what was collected ahead of it.
    pub(crate) async fn land_ahead(&mut self, mut ahead: Ahead) -> Result<(), Halt> {
        self.sinks.health.merge(&mut ahead.health);
        match ahead.flight {
            Some(flight) => self.land(flight).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends off what a component's trigger makes of what has come; none if that is nothing.
    pub(crate) fn collect(
        &mut self,
        component: usize,
        iteration: u64,
    ) -> Result<Option<Flight>, Halt> {
        if !self.members[component].runs() {
            return Ok(None);
        }
        let outside = self.outside_of(component);
        let mut ready = self.spare.ready.take().unwrap_or_default();
        let now = self.lanes[self.tables.components[component].lane].now;
        self.triggers[component].check(
            self.channels.as_mut_slice(),
            now,
            &mut self.sinks.health,
            &mut ready,
            outside,
        );
        let admitted = self.admit_invocations(component, &mut ready);
        let flight = admitted.map(|()| match ready.list.is_empty() {
            true => None,
            false => Some(self.take_off(component, &mut ready, iteration)),
        });
        while let Some(inputs) = ready.list.pop_front() {
            ready.recycle(inputs);
        }
        self.spare.ready = Some(ready);
        flight
    }

    /// Leaves as many as the lane admits.
    fn admit_invocations(&mut self, component: usize, ready: &mut Ready) -> Result<(), Halt> {
        let place = self.tables.components[component].lane;
        let lane = &self.plan.graph.lanes[place];
        if lane.kind != LaneKind::ThreadPool {
            return Ok(());
        }
        let room = lane.width().saturating_add(lane.queue_capacity);
        let beyond = ready.list.len().saturating_sub(room);
        if beyond == 0 {
            return Ok(());
        }
        let counts = &mut self.lanes[place].counts;
        counts.rejected += beyond as u64;
        if self.tables.components[component].priority >= Priority::Low as usize {
            counts.low_priority_rejected += beyond as u64;
        }
        if lane.overflow == LaneOverflow::FailFast {
            let message = format!(
                "lane {} admits {room} invocations, and {} were ready: raise queue_capacity or max_threads, or choose another overflow policy",
                lane.id,
                ready.list.len()
            );
            return Err(self.halt("admit", ErrorCode::Runtime, Some(component), message));
        }
        let keeps_newest = matches!(
            lane.overflow,
            LaneOverflow::Overwrite | LaneOverflow::DropOldest
        );
        for _ in 0..beyond {
            let rejected = if keeps_newest {
                ready.list.pop_front()
            } else {
                ready.list.pop_back()
            };
            let Some(rejected) = rejected else { break };
            let place = match rejected.first() {
                Some(message) => HealthSubject::Channel(message.edge),
                None => HealthSubject::Component(component as u32),
            };
            self.sinks.health.raise(HealthKind::SchedulerReject, place);
            ready.recycle(rejected);
        }
        Ok(())
    }

    fn take_off(&mut self, component: usize, ready: &mut Ready, iteration: u64) -> Flight {
        let size = ready.list.len() as u64;
        let tables = self.tables.clone();
        let row = &tables.components[component];
        if let Some(pool) = self.pool(component) {
            let width = pool.width as u64;
            let counts = &mut self.lanes[row.lane].counts;
            counts.in_flight = counts.in_flight.max(size);
            counts.queue_depth = counts.queue_depth.max(size.saturating_sub(width));
        }
        let reentrant = self.members[component].reentrant.clone();
        let reentrant = reentrant.filter(|_| row.reentrant && row.overlaps_itself);
        let mut flight = Flight {
            component,
            start: clock::now(),
            size,
            together: reentrant.is_some(),
            under_way: Vec::new(),
            rest: VecDeque::new(),
        };
        match reentrant {
            Some(body) => {
                for call in self.numbered(component, ready, iteration) {
                    let body = JobBody::Reentrant(body.clone());
                    let calls = self.with_room(component, [call]);
                    flight.under_way.push(self.send(component, calls, body));
                }
            }
            None => {
                let mut calls = self.numbered(component, ready, iteration);
                if !row.limited.is_empty() {
                    // How much room an async edge has depends on what was committed before.
                    flight.rest = calls.drain(1..).collect();
                }
                let calls = self.with_room(component, calls);
                flight
                    .under_way
                    .extend(self.send_exclusive(component, calls));
            }
        }
        flight
    }

    /// Numbers what is ready. All of it, so that the numbers of what follows do not depend on how many are called.
    fn numbered(
        &mut self,
        component: usize,
        ready: &mut Ready,
        iteration: u64,
    ) -> Vec<(Call, Vec<Received>)> {
        let mut calls = Vec::with_capacity(ready.list.len());
        while let Some(inputs) = ready.list.pop_front() {
            let call = self.next_call(component, &inputs, iteration, 0);
            calls.push((call, inputs));
        }
        calls
    }

    fn with_room(
        &self,
        component: usize,
        calls: impl IntoIterator<Item = (Call, Vec<Received>)>,
    ) -> Vec<(Call, Vec<Received>, Outbox)> {
        let with_room = |(call, inputs)| {
            let mut out = Outbox::default();
            self.fill_room(component, &mut out);
            (call, inputs, out)
        };
        calls.into_iter().map(with_room).collect()
    }

    fn send_exclusive(
        &mut self,
        component: usize,
        calls: Vec<(Call, Vec<Received>, Outbox)>,
    ) -> Option<oneshot::Receiver<Done>> {
        let body = self.members[component].component.take()?;
        Some(self.send(component, calls, JobBody::Exclusive(body)))
    }

    /// Sends invocations to the lane's threads; if it has none, they are called here and now.
    fn send(
        &self,
        component: usize,
        calls: Vec<(Call, Vec<Received>, Outbox)>,
        body: JobBody,
    ) -> oneshot::Receiver<Done> {
        let (answer, answered) = oneshot::channel();
        let row = &self.tables.components[component];
        let pool = self.pool(component);
        let job = Job {
            env: self.env.clone(),
            component,
            calls,
            body,
            max_callback: row.max_callback,
            deadline: self.members[component].deadline.clone(),
            goes_on: row.on_error == OnError::Continue,
            workers: pool.map(|pool| pool.workers.clone()),
            answer,
        };
        match pool {
            Some(pool) => pool.send(row.priority, job),
            None => job.run(),
        }
        answered
    }

    /// Waits for a flight, and commits what came of it; gives how many invocations there were.
    pub(crate) async fn land(&mut self, mut flight: Flight) -> Result<u64, Halt> {
        let component = flight.component;
        let mut workers = Vec::new();
        match flight.together {
            true => self.land_together(&mut flight, &mut workers).await?,
            false => self.land_one_by_one(&mut flight, &mut workers).await?,
        }
        self.clock.latest = clock::now();
        let lane = self.tables.components[component].lane;
        let pool = self.pool(component);
        let pool = pool.map(|pool| (pool.workers.most_active(), pool.guarded()));
        if let Some((most, guarded)) = pool {
            let counts = &mut self.lanes[lane].counts;
            counts.active = most;
            counts.starvation_guard = guarded;
        }
        if self.sinks.trace.on && self.plan.graph.lanes[lane].kind == LaneKind::ThreadPool {
            let mut span = self.recorded(TraceName::ThreadPoolBatch, component, flight.start);
            span.duration = self.clock.latest - flight.start;
            workers.sort_unstable();
            workers.dedup();
            span.attributes.push(("worker_ids", json!(workers)));
            span.attributes.push(("invocations", flight.size.into()));
            self.sinks.trace.push(span);
        }
        Ok(flight.size)
    }

    /// All are back before the first is committed.
    async fn land_together(
        &mut self,
        flight: &mut Flight,
        workers: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        let component = flight.component;
        let mut called = Vec::with_capacity(flight.under_way.len());
        for under_way in flight.under_way.drain(..) {
            called.extend(self.back(component, under_way).await?.called);
        }
        let width = self.pool(component).map_or(1, |pool| pool.width) as u64;
        let counts = &mut self.sinks.counts.components[component];
        counts.max_in_flight = counts.max_in_flight.max(flight.size.min(width));
        if !self.tables.components[component].in_order {
            match self.recording.script.as_deref() {
                Some(script) => {
                    called.sort_by_key(|c: &Called| script.position(c.finished.call.transaction));
                }
                None => called.sort_by_key(|called: &Called| called.finished.end),
            }
        }
        let mut result = Ok(());
        for called in &mut called {
            workers.push(called.finished.worker);
            let settled = self.settle(component, &called.finished, &mut called.out);
            result = result.and(settled);
        }
        for mut called in called {
            if result.is_ok() {
                result = self.commit(&mut called.out.staged);
            }
            self.recycle(called.inputs);
        }
        result
    }

    /// Each is committed before the next.
    async fn land_one_by_one(
        &mut self,
        flight: &mut Flight,
        workers: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        let component = flight.component;
        while let Some(under_way) = flight.under_way.pop() {
            let done = self.back(component, under_way).await?;
            let mut result = Ok(());
            for mut called in done.called {
                if result.is_ok() {
                    workers.push(called.finished.worker);
                    result = self
                        .settle(component, &called.finished, &mut called.out)
                        .and_then(|()| self.commit(&mut called.out.staged));
                }
                self.recycle(called.inputs);
            }
            result?;
            if !self.members[component].may_finish() {
                break;
            }
            if let Some(next) = flight.rest.pop_front() {
                let calls = self.with_room(component, [next]);
                flight
                    .under_way
                    .extend(self.send_exclusive(component, calls));
            }
        }
        Ok(())
    }

    /// Takes back the component of a flight whose outputs nobody wants: an earlier region has ended the run.
    pub(crate) async fn recall(&mut self, ahead: Ahead) {
        let Some(flight) = ahead.flight else { return };
        for under_way in flight.under_way {
            // What went wrong there happened after the end.
            if let Ok(done) = under_way.await
                && done.component.is_some()
            {
                self.members[flight.component].component = done.component;
            }
        }
    }

    async fn back(
        &mut self,
        component: usize,
        under_way: oneshot::Receiver<Done>,
    ) -> Result<Done, Halt> {
        match under_way.await {
            Ok(mut done) => {
                if done.component.is_some() {
                    self.members[component].component = done.component.take();
                }
                Ok(done)
            }
            Err(_) => {
                let message = "its lane could not run it: the threads have ended".to_owned();
                Err(self.halt("execute", ErrorCode::Runtime, Some(component), message))
            }
        }
    }

    fn recycle(&mut self, inputs: Vec<Received>) {
        if let Some(ready) = &mut self.spare.ready {
            ready.recycle(inputs);
        }
    }

    /// The threads that a component runs on, if its lane has some.
    fn pool(&self, component: usize) -> Option<&Pool> {
        let row = &self.tables.components[component];
        self.lanes[row.lane].pools.get(row.pool?)
    }
}
