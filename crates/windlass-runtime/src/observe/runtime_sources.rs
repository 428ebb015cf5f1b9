//! The parts of a runtime itself, as sources.

use std::sync::Arc;

use windlass_core::observe::{PoolSnapshot, WorkerSnapshot};
use windlass_core::task::TaskRef;

use super::entity::{Cursor, Entity, Page};
use super::sample::Sample;
use super::sources::Observe;
use crate::coroutine;
use crate::dispatch::DispatcherSnapshot;
use crate::runtime::Shared;

/// Calls `observe` with each part of a runtime.
pub(super) fn for_each(shared: &Arc<Shared>, observe: &mut dyn FnMut(&dyn Observe)) {
    observe(&Workers(shared));
    observe(&Tasks(shared));
    observe(&Coroutines);
    observe(&Blocking(shared));
    for dispatcher in shared.private_pools() {
        observe(&Dispatcher(dispatcher.snapshot()));
    }
}

/// The worker threads of the pool.
struct Workers<'a>(&'a Shared);

impl Observe for Workers<'_> {
    fn source(&self) -> &'static str {
        "workers"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        pool_samples(&self.0.pool.snapshot(), take);
        take(Sample::counter("slow_polls", self.0.pool.slow_polls()));
        take(Sample::gauge("timers", self.0.timers().waiting()));
        take(Sample::gauge("io_sources", self.0.io_sources()));
        take(Sample::gauge("unconfined_tasks", self.0.unconfined.len()));
    }

    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        visit_indexed(self.0.pool.snapshot().workers.iter().map(worker), page)
    }
}

/// The tasks that are suspended. A task that ends in its first poll is never one of them, and a
/// task that is queued or runs is one if it was suspended before.
struct Tasks<'a>(&'a Shared);

impl Observe for Tasks<'_> {
    fn source(&self) -> &'static str {
        "tasks"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let suspended = self.0.pool.suspended_len();
        take(Sample::gauge("suspended", suspended));
    }

    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let after = page.after();
        let after = (after.part as usize, after.position as usize);
        let next = self.0.pool.visit_suspended(after, |suspended| {
            page.take(task(&suspended));
            !page.is_full()
        });
        next.map(|(part, position)| Cursor {
            part: part as u64,
            position: position as u64,
        })
    }
}

/// The stacks of coroutines. They are the program's: its runtimes share them.
struct Coroutines;

impl Observe for Coroutines {
    fn source(&self) -> &'static str {
        "coroutines"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        take(Sample::gauge("stacks", coroutine::count_stacks_in_use()));
    }

    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let mut position = page.after().position as usize;
        while !page.is_full() {
            let stack = coroutine::next_stack_in_use(&mut position)?;
            let entity = Entity::new("coroutine", stack.id(), "has a stack")
                .spawned_at(Some(stack.location))
                .count("stack_touched_bytes", stack.peak as u64)
                .count("stack_bytes", stack.size as u64);
            page.take(entity);
        }
        Some(Cursor {
            part: 0,
            position: position as u64,
        })
    }
}

/// The pool of threads that may block, and the io dispatcher, which shares them.
struct Blocking<'a>(&'a Shared);

impl Observe for Blocking<'_> {
    fn source(&self) -> &'static str {
        "blocking"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let blocking = self.0.blocking.snapshot();
        take(Sample::gauge("threads", blocking.threads));
        take(Sample::gauge("idle_threads", blocking.idle));
        take(Sample::gauge("queued_jobs", blocking.queued));
        take(Sample::counter("submitted_jobs", blocking.submitted));
        take(Sample::counter("expired_jobs", blocking.expired));
        take(Sample::gauge("io_tasks", blocking.io_tasks));
        take(Sample::counter("io_turns", blocking.io_turns));
    }

    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

/// A dispatcher with a pool of its own.
struct Dispatcher(DispatcherSnapshot);

impl Observe for Dispatcher {
    fn source(&self) -> &'static str {
        "dispatcher"
    }

    fn label(&self) -> Option<String> {
        Some(self.0.name.clone())
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        if let Some(pool) = &self.0.pool {
            pool_samples(pool, take);
        }
    }

    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let workers = self.0.pool.as_ref().map(|pool| pool.workers.iter());
        visit_indexed(workers.into_iter().flatten().map(worker), page)
    }
}

/// Visits entities that have an index.
fn visit_indexed(entities: impl Iterator<Item = Entity>, page: &mut Page<'_>) -> Option<Cursor> {
    let after = page.after().position;
    for (entity, position) in entities.zip(0..).skip(after as usize) {
        if page.is_full() {
            return Some(Cursor { part: 0, position });
        }
        page.take(entity);
    }
    None
}

fn pool_samples(pool: &PoolSnapshot, take: &mut dyn FnMut(Sample)) {
    let sum = |count: fn(&WorkerSnapshot) -> u64| pool.workers.iter().map(count).sum();
    take(Sample::gauge("workers", pool.workers.len()));
    take(Sample::gauge("awake", pool.unparked));
    take(Sample::gauge("searching", pool.searching));
    take(Sample::gauge("injector_tasks", pool.injector_len));
    for (class, tasks) in ["high", "low", "background"].iter().zip(pool.class_len) {
        take(Sample::gauge("class_tasks", tasks).label("class", *class));
    }
    take(Sample::gauge("suspended_tasks", pool.suspended_tasks));
    for (name, count) in [
        ("polls", sum(|worker| worker.polls)),
        ("completed_tasks", sum(|worker| worker.tasks_completed)),
        ("panicked_tasks", sum(|worker| worker.panics)),
        ("cancelled_tasks", sum(|worker| worker.cancels)),
        ("stolen_tasks", sum(|worker| worker.tasks_stolen)),
        ("stolen_jobs", sum(|worker| worker.forks_stolen)),
        ("overflows", sum(|worker| worker.overflows)),
        ("refused_spawns", pool.inject_queue_overflows),
        ("rescued_tasks", pool.tasks_rescued),
        ("rescued_drivers", pool.driver_rescues),
        ("blocked_without_spare", pool.blocked_without_spare),
    ] {
        take(Sample::counter(name, count));
    }
}

fn worker(worker: &WorkerSnapshot) -> Entity {
    let state = format!("{:?}", worker.state).to_lowercase();
    Entity::new("worker", worker.index.to_string(), state)
        .named(worker.task_name.clone())
        .spawned_at(worker.task_location)
        .count("ring_tasks", worker.ring_len as u64)
        .count("slot_tasks", u64::from(worker.slot_full))
        .count("polls", worker.polls)
        .count("completed_tasks", worker.tasks_completed)
        .count("stolen_tasks", worker.tasks_stolen)
        .count("stolen_jobs", worker.forks_stolen)
        .count("parks", worker.park_events)
        .count("overflows", worker.overflows)
        .count("mean_poll_ns", worker.avg_run.as_nanos() as u64)
        .count("max_poll_ns", worker.max_run.as_nanos() as u64)
}

fn task(task: &TaskRef) -> Entity {
    let header = task.header();
    let meta = header.meta();
    Entity::new(
        "task",
        header.id().to_string(),
        format!("{:?}", header.state()),
    )
    .named(meta.name().map(|name| name.to_string()))
    .spawned_at(Some(meta.location()))
}
