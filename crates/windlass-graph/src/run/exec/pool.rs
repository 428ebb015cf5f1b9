//! The pools of lanes: which lanes have threads, and how work gets to them.
//!
//! A lane's threads are a dispatcher of the runtime. Lanes that run in the run's own task get one
//! only if they name attributes (`thread_attributes.rs`). A run that follows the real clock is
//! itself on a thread of its own (`driver_thread.rs`), that of its most urgent lane on the clock;
//! the components of that lane run there.

use std::sync::Arc;

use windlass_core::task::Class;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{Attributes, Dispatcher, DispatcherError};

use crate::run::exec::active_workers::ActiveWorkers;
use crate::run::exec::driver_thread::driver_lane;
use crate::run::exec::flight::Job;
use crate::run::exec::job_queue::{JobQueue, QueueTurn};
use crate::run::exec::thread_attributes::with_attributes;
use windlass_plan::compile::Plan;
use windlass_plan::model::{Lane, LaneKind, Priority};

/// The threads of a lane, or of one of its components.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    dispatcher: Dispatcher,
    pub(crate) width: usize,
    pub(crate) workers: Arc<ActiveWorkers>,
    queue: Arc<JobQueue>,
}

impl Pool {
    fn new(
        plan: &Plan,
        lane: &Lane,
        name: String,
        runtime: &Handle,
    ) -> Result<Pool, DispatcherError> {
        let width = match lane.kind {
            LaneKind::ThreadPool => lane.width(),
            _ => 1,
        };
        let builder = with_attributes(Dispatcher::builder(width).name(name), &plan.graph, lane);
        let class = match lane.priority_class().unwrap_or_default() {
            Priority::High => Class::High,
            Priority::Normal => Class::Normal,
            Priority::Low => Class::Low,
            Priority::Background => Class::Background,
        };
        Ok(Pool {
            dispatcher: builder.build_in(runtime)?.with_class(class),
            width,
            workers: Arc::default(),
            queue: Arc::default(),
        })
    }

    /// Queues a job; a thread takes the first when it is free.
    pub(crate) fn send(&self, priority: usize, job: Job) {
        self.queue.push(priority, job);
        let turn = QueueTurn::new(&self.queue);
        self.dispatcher.spawn(async move { turn.run() }).detach();
    }

    /// Runs something else on these threads.
    pub(crate) fn spawn<F>(&self, future: F) -> windlass_core::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.dispatcher.spawn(future)
    }

    /// Returns how often a job that had been passed over too often went first.
    pub(crate) fn guarded(&self) -> u64 {
        self.queue.guarded()
    }

    /// Returns what each of the threads has, as read back from the system.
    pub(crate) fn attributes(&self) -> Vec<Attributes> {
        self.dispatcher.snapshot().attributes
    }
}

/// The pools of a lane: none, one, or one for each component.
pub(crate) fn pools_of(
    plan: &Plan,
    place: usize,
    runtime: &Handle,
) -> Result<Vec<Pool>, DispatcherError> {
    let lane = &plan.graph.lanes[place];
    if driver_lane(&plan.graph) == Some(place) || !lane.has_threads() {
        return Ok(Vec::new());
    }
    if !has_threads_each(lane) {
        return Ok(vec![Pool::new(plan, lane, thread_name(lane), runtime)?]);
    }
    let components = plan.graph.components.iter();
    let here = components.filter(|component| component.execution.lane == lane.id);
    here.map(|component| {
        let name = format!("{}-{}", thread_name(lane), component.id);
        Pool::new(plan, lane, name, runtime)
    })
    .collect()
}

/// Which of its lane's pools a component runs on, if its lane has some.
pub(crate) fn pool_of(plan: &Plan, component: usize) -> Option<usize> {
    let place = plan.nodes[component].lane;
    let lane = &plan.graph.lanes[place];
    if driver_lane(&plan.graph) == Some(place) || !lane.has_threads() {
        return None;
    }
    let before = plan.nodes[..component].iter().filter(|n| n.lane == place);
    Some(if has_threads_each(lane) {
        before.count()
    } else {
        0
    })
}

fn has_threads_each(lane: &Lane) -> bool {
    lane.kind == LaneKind::IsolatedThread && lane.per_component
}

/// Returns the name of a lane's threads.
pub(crate) fn thread_name(lane: &Lane) -> String {
    let name = lane.thread_name.clone();
    name.unwrap_or_else(|| format!("lane-{}", lane.id))
}
