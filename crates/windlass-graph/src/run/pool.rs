//! Calling components on the threads of a `thread_pool` lane.
//!
//! A lane admits as many invocations as it has workers and places in its queue; what happens to the others its
//! overflow policy says. What the admitted ones publish is committed when all have ended (reentrant), or after
//! each (otherwise: the component itself travels to the worker and back).

use std::sync::Arc;

use serde_json::json;
use windlass_core::sync::clock;
use windlass_core::task::JoinError;

use super::health::{HealthKind, Place};
use super::invoke::{Body, Finished, call};
use super::lane::Workers;
use super::machine::{Halt, Machine};
use super::result::ErrorCode;
use super::trace::TraceName;
use super::trigger::Ready;
use crate::component::{Call, Component, Env, Outbox, Received, Reentrant};
use crate::model::{LaneOverflow, Priority};

/// An invocation on its way to a worker.
struct Job {
    env: Arc<Env>,
    component: usize,
    call: Call,
    inputs: Vec<Received>,
    out: Outbox,
    body: JobBody,
    max_callback: u64,
    workers: Arc<Workers>,
}

enum JobBody {
    Exclusive(Box<dyn Component>),
    Reentrant(Arc<dyn Reentrant>),
}

/// An invocation on its way back.
struct Done {
    finished: Finished,
    inputs: Vec<Received>,
    out: Outbox,
    component: Option<Box<dyn Component>>,
}

impl Job {
    fn run(mut self) -> Done {
        let worker = self.workers.begin();
        let start = clock::now();
        if self.max_callback > 0 {
            self.call.cancel_at = start.saturating_add(self.max_callback);
        }
        let body = match &mut self.body {
            JobBody::Exclusive(component) => Body::Exclusive(component.as_mut()),
            JobBody::Reentrant(body) => Body::Reentrant(body),
        };
        let (inputs, out) = (&mut self.inputs, &mut self.out);
        let failed = call(body, &self.env, self.component, inputs, out, &self.call);
        self.workers.end();
        Done {
            finished: Finished {
                call: self.call,
                start,
                end: clock::now(),
                failed,
                worker,
            },
            inputs: self.inputs,
            out: self.out,
            component: match self.body {
                JobBody::Exclusive(component) => Some(component),
                JobBody::Reentrant(_) => None,
            },
        }
    }
}

impl Machine {
    /// Runs a component on its lane's threads, and waits for them.
    pub(crate) async fn step_on_pool(
        &mut self,
        component: usize,
        iteration: u64,
    ) -> Result<u64, Halt> {
        if !self.members[component].runs() {
            return Ok(0);
        }
        let outside = self.outside_of(component);
        let mut ready = self.ready.take().unwrap_or_default();
        let now = self.lanes[self.facts.components[component].lane].now;
        self.triggers[component].check(
            &mut self.channels,
            now,
            &mut self.health,
            &mut ready,
            outside,
        );
        let result = match self.admit_invocations(component, &mut ready) {
            Ok(()) if ready.list.is_empty() => Ok(0),
            Ok(()) => self.run_batch(component, &mut ready, iteration).await,
            Err(halt) => Err(halt),
        };
        while let Some(inputs) = ready.list.pop_front() {
            ready.recycle(inputs);
        }
        self.ready = Some(ready);
        self.clock = clock::now();
        result
    }

    /// Leaves as many as the lane admits.
    fn admit_invocations(&mut self, component: usize, ready: &mut Ready) -> Result<(), Halt> {
        let place = self.facts.components[component].lane;
        let lane = &self.plan.graph.lanes[place];
        let room = lane.width().saturating_add(lane.queue_capacity);
        let beyond = ready.list.len().saturating_sub(room);
        if beyond == 0 {
            return Ok(());
        }
        let counts = &mut self.lanes[place].counts;
        counts.rejected += beyond as u64;
        if self.facts.components[component].priority >= Priority::Low as usize {
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
                Some(message) => Place::Channel(message.edge),
                None => Place::Component(component as u32),
            };
            self.health.raise(HealthKind::SchedulerReject, place);
            ready.recycle(rejected);
        }
        Ok(())
    }

    async fn run_batch(
        &mut self,
        component: usize,
        ready: &mut Ready,
        iteration: u64,
    ) -> Result<u64, Halt> {
        let start = clock::now();
        let size = ready.list.len() as u64;
        let facts = self.facts.clone();
        let facts = &facts.components[component];
        let width = self.lanes[facts.lane].pool.as_ref().map_or(1, |p| p.width) as u64;
        let counts = &mut self.lanes[facts.lane].counts;
        counts.in_flight = counts.in_flight.max(size);
        counts.queue_depth = counts.queue_depth.max(size.saturating_sub(width));
        let body = self.members[component].reentrant.clone();
        let mut workers = Vec::new();
        match body.filter(|_| facts.reentrant) {
            Some(body) => {
                self.run_together(component, ready, iteration, &body, &mut workers)
                    .await?;
            }
            None => {
                self.run_one_by_one(component, ready, iteration, &mut workers)
                    .await?;
            }
        }
        let most = self.lanes[facts.lane].pool.as_ref();
        let most = most.map_or(0, |pool| pool.workers.most_active());
        self.lanes[facts.lane].counts.active = most;
        if self.trace.on {
            let mut span = self.recorded(TraceName::ThreadPoolBatch, component, start);
            span.duration = clock::now() - start;
            workers.sort_unstable();
            workers.dedup();
            span.attributes.push(("worker_ids", json!(workers)));
            span.attributes.push(("invocations", size.into()));
            self.trace.push(span);
        }
        Ok(size)
    }

    /// All at once; committed together.
    async fn run_together(
        &mut self,
        component: usize,
        ready: &mut Ready,
        iteration: u64,
        body: &Arc<dyn Reentrant>,
        workers: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        let mut under_way = Vec::with_capacity(ready.list.len());
        while let Some(inputs) = ready.list.pop_front() {
            let body = JobBody::Reentrant(body.clone());
            let job = self.job(component, inputs, iteration, body);
            under_way.push(self.send(component, job));
        }
        let at_once = under_way.len() as u64;
        let mut done = Vec::with_capacity(under_way.len());
        for handle in under_way {
            done.push(self.came_back(component, handle.await)?);
        }
        let width = self.lanes[self.facts.components[component].lane]
            .pool
            .as_ref();
        let width = width.map_or(1, |pool| pool.width) as u64;
        let counts = &mut self.counts.components[component];
        counts.max_in_flight = counts.max_in_flight.max(at_once.min(width));
        if !self.facts.components[component].in_order {
            done.sort_by_key(|done: &Done| done.finished.end);
        }
        let mut result = Ok(());
        for done in &mut done {
            workers.push(done.finished.worker);
            let settled = self.settle(component, &done.finished, &mut done.out);
            result = result.and(settled);
        }
        if result.is_ok() {
            for done in &mut done {
                self.commit(&mut done.out.staged)?;
            }
        }
        for done in done {
            ready.recycle(done.inputs);
        }
        result
    }

    /// One after another, each committed before the next begins.
    async fn run_one_by_one(
        &mut self,
        component: usize,
        ready: &mut Ready,
        iteration: u64,
        workers: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        while let Some(inputs) = ready.list.pop_front() {
            let Some(body) = self.members[component].component.take() else {
                break;
            };
            let job = self.job(component, inputs, iteration, JobBody::Exclusive(body));
            let done = self.send(component, job).await;
            let mut done = self.came_back(component, done)?;
            self.members[component].component = done.component.take();
            workers.push(done.finished.worker);
            self.settle(component, &done.finished, &mut done.out)?;
            self.commit(&mut done.out.staged)?;
            ready.recycle(done.inputs);
            if !self.members[component].may_finish() {
                break;
            }
        }
        Ok(())
    }

    fn job(
        &mut self,
        component: usize,
        inputs: Vec<Received>,
        iteration: u64,
        body: JobBody,
    ) -> Job {
        let mut out = Outbox::default();
        self.fill_room(component, &mut out);
        let call = self.next_call(component, &inputs, iteration, 0);
        let facts = &self.facts.components[component];
        let pool = self.lanes[facts.lane].pool.as_ref();
        Job {
            env: self.env.clone(),
            component,
            workers: pool.map_or_else(Arc::default, |pool| pool.workers.clone()),
            max_callback: facts.max_callback,
            call,
            inputs,
            out,
            body,
        }
    }

    fn send(&self, component: usize, job: Job) -> windlass_core::task::JoinHandle<Done> {
        let lane = self.facts.components[component].lane;
        match &self.lanes[lane].pool {
            Some(pool) => pool.dispatcher.spawn(async move { job.run() }),
            None => windlass_runtime::spawn(async move { job.run() }),
        }
    }

    fn came_back(&mut self, component: usize, done: Result<Done, JoinError>) -> Result<Done, Halt> {
        done.map_err(|error| {
            let message = format!("its lane could not run it: {error}");
            self.halt("execute", ErrorCode::Runtime, Some(component), message)
        })
    }
}
