//! Calling components on the threads of a lane.
//!
//! A component's turn there is a *flight*: its trigger makes invocations, the lane admits some, and
//! they are sent off (`collect`). When they are back they are counted and committed (`land`).
//! Between the two the run may do something else (`overlap.rs`). Invocations of a reentrant
//! component fly at once, and are committed when all are back. All others fly one after another,
//! and the component with them; what each publishes is committed before that of the next, and
//! nothing that it can see depends on when.
//!
//! A lane of type `thread_pool` admits as many invocations as it has workers and places in its
//! queue; what happens to the others its overflow policy says. Other lanes admit all.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::sync::clock;
use windlass_sync::channel::oneshot;

use crate::component::{Call, Component, Env, Outbox, Received, Reentrant};
use crate::run::exec::active_workers::ActiveWorkers;
use crate::run::exec::inline::{Body, FinishedCall, call};
use crate::run::exec::pool::Pool;
use crate::run::exec::timeout::CallDeadline;
use crate::run::result::ErrorCode;
use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::health::{Health, HealthKind, HealthSubject};
use crate::run::sinks::sink::{BatchEnd, CallsAtOnce, Sink};
use crate::run::sinks::trace::NONE;
use crate::run::state::triggers::ready::ReadyCalls;
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
    workers: Option<Arc<ActiveWorkers>>,
    answer: oneshot::Sender<JobResult>,
}

enum JobBody {
    Exclusive(Box<dyn Component>),
    Reentrant(Arc<dyn Reentrant>),
}

/// Invocations on their way back.
struct JobResult {
    called: Vec<CallResult>,
    component: Option<Box<dyn Component>>,
}

/// One of them.
struct CallResult {
    finished: FinishedCall,
    inputs: Vec<Received>,
    out: Outbox,
}

/// A component's turn: invocations that are under way.
pub(crate) struct Flight {
    component: usize,
    start: u64,
    size: u64,
    together: bool,
    under_way: Vec<oneshot::Receiver<JobResult>>,
    /// What is sent when what is under way has been committed.
    rest: VecDeque<(Call, Vec<Received>)>,
}

/// What was collected ahead of its turn.
pub(crate) struct EarlyFlight {
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
            called.push(CallResult {
                finished: FinishedCall {
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
        // If the run no longer waits, components are dropped here: their destructors are user code.
        let unwanted = self.answer.send(JobResult { called, component });
        windlass_core::task::contain(|| drop(unwanted));
    }
}

impl RunState {
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

    /// As `collect`, ahead of the component's turn: what its trigger and its lane have to say waits
    /// for that, too.
    pub(crate) fn collect_ahead(&mut self, component: usize) -> Result<EarlyFlight, Halt> {
        let mut health = self.sinks.health.ahead(&self.tables.plan);
        std::mem::swap(&mut self.sinks.health, &mut health);
        let flight = self.collect(component, 0);
        std::mem::swap(&mut self.sinks.health, &mut health);
        flight.map(|flight| EarlyFlight { flight, health })
    }

    /// The turn of what was collected ahead of it.
    pub(crate) async fn land_ahead(&mut self, mut ahead: EarlyFlight) -> Result<(), Halt> {
        self.sinks.health.merge(&mut ahead.health);
        match ahead.flight {
            Some(flight) => self.land(flight).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends off the invocations that a component's trigger makes; returns none if it makes none.
    pub(crate) fn collect(
        &mut self,
        component: usize,
        iteration: u64,
    ) -> Result<Option<Flight>, Halt> {
        if !self.members.runs(component) {
            return Ok(None);
        }
        let outside = self.door_signal(component);
        let now = self.lanes.time(self.tables.components[component].lane);
        let mut ready = self.check_trigger(component, now, outside);
        let admitted = self.admit_invocations(component, &mut ready);
        let flight = admitted.map(|()| match ready.list.is_empty() {
            true => None,
            false => Some(self.take_off(component, &mut ready, iteration)),
        });
        self.triggers.give_back(ready);
        flight
    }

    /// Leaves as many as the lane admits.
    fn admit_invocations(&mut self, component: usize, ready: &mut ReadyCalls) -> Result<(), Halt> {
        let place = self.tables.components[component].lane;
        let lane = &self.tables.plan.graph.lanes[place];
        if lane.kind != LaneKind::ThreadPool {
            return Ok(());
        }
        let room = lane.width().saturating_add(lane.queue_capacity);
        let beyond = ready.list.len().saturating_sub(room);
        if beyond == 0 {
            return Ok(());
        }
        let is_low = self.tables.components[component].priority >= Priority::Low as usize;
        let counted = self.lanes.lane_mut(place);
        counted.count_rejected(beyond as u64, is_low);
        if lane.overflow == LaneOverflow::FailFast {
            let message = format!(
                "lane {} admits {room} invocations, and {} were ready: raise queue_capacity or max_threads, or choose another overflow policy",
                lane.id,
                ready.list.len()
            );
            return Err(self
                .sinks
                .halt("admit", ErrorCode::Runtime, Some(component), message));
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
                Some(message) => HealthSubject::Channel(message.route.edge),
                None => HealthSubject::Component(component as u32),
            };
            self.sinks.health.raise(HealthKind::SchedulerReject, place);
            ready.recycle(rejected);
        }
        Ok(())
    }

    fn take_off(&mut self, component: usize, ready: &mut ReadyCalls, iteration: u64) -> Flight {
        let size = ready.list.len() as u64;
        let tables = self.tables.clone();
        let row = &tables.components[component];
        if let Some(pool) = self.pool(component) {
            let width = pool.width as u64;
            self.lanes.lane_mut(row.lane).count_flight(size, width);
        }
        let reentrant = self.members.reentrant(component).cloned();
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

    /// Numbers what is ready. All of it, so that the numbers of what follows do not depend on how
    /// many are called.
    fn numbered(
        &mut self,
        component: usize,
        ready: &mut ReadyCalls,
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
    ) -> Option<oneshot::Receiver<JobResult>> {
        let body = self.members.take_component(component)?;
        Some(self.send(component, calls, JobBody::Exclusive(body)))
    }

    /// Sends invocations to the lane's threads; if it has none, they are called here and now.
    fn send(
        &self,
        component: usize,
        calls: Vec<(Call, Vec<Received>, Outbox)>,
        body: JobBody,
    ) -> oneshot::Receiver<JobResult> {
        let (answer, answered) = oneshot::channel();
        let row = &self.tables.components[component];
        let pool = self.pool(component);
        let job = Job {
            env: self.env.clone(),
            component,
            calls,
            body,
            max_callback: row.max_callback,
            deadline: self.members.deadline(component),
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
        let end = self.calls.catch_up();
        let lane = self.tables.components[component].lane;
        let pool = self.pool(component);
        let pool = pool.map(|pool| (pool.workers.most_active(), pool.guarded()));
        if let Some((most, guarded)) = pool {
            self.lanes.lane_mut(lane).set_pool_counts(most, guarded);
        }
        if self.lanes.lane(lane).kind() == LaneKind::ThreadPool {
            self.sinks.batch_end(&BatchEnd {
                epoch: self.env.epoch,
                component,
                start: flight.start,
                end,
                workers: &workers,
                invocations: flight.size,
            });
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
        self.sinks.calls_at_once(&CallsAtOnce {
            component,
            invocations: flight.size.min(width),
        });
        if !self.tables.components[component].in_order {
            match self.env.decisions.as_deref() {
                Some(decisions) => {
                    called.sort_by_key(|c: &CallResult| {
                        decisions.position(c.finished.call.transaction)
                    });
                }
                None => called.sort_by_key(|called: &CallResult| called.finished.end),
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
            self.triggers.recycle(called.inputs);
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
                self.triggers.recycle(called.inputs);
            }
            result?;
            if !self.members.may_finish(component) {
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

    /// Takes back the component of a flight whose outputs are not committed: an earlier region has
    /// ended the run.
    pub(crate) async fn recall(&mut self, ahead: EarlyFlight) {
        let Some(flight) = ahead.flight else { return };
        for under_way in flight.under_way {
            // What went wrong there happened after the end.
            if let Ok(done) = under_way.await
                && let Some(body) = done.component
            {
                self.members.return_component(flight.component, body);
            }
        }
    }

    async fn back(
        &mut self,
        component: usize,
        under_way: oneshot::Receiver<JobResult>,
    ) -> Result<JobResult, Halt> {
        match under_way.await {
            Ok(mut done) => {
                if let Some(body) = done.component.take() {
                    self.members.return_component(component, body);
                }
                Ok(done)
            }
            Err(_) => {
                let message = "its lane could not run it: the threads have ended".to_owned();
                Err(self
                    .sinks
                    .halt("execute", ErrorCode::Runtime, Some(component), message))
            }
        }
    }

    /// The threads that a component runs on, if its lane has some.
    fn pool(&self, component: usize) -> Option<&Pool> {
        let row = &self.tables.components[component];
        self.lanes.pool(row.lane, row.pool)
    }
}
