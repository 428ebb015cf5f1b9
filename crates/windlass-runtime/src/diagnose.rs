//! Looking inside a runtime: plain data for programs, a dump for people.

use std::io::{self, Write};

use windlass_core::observe::{PoolSnapshot, WorkerSnapshot};

use crate::blocking::BlockingSnapshot;
use crate::coroutine;
use crate::dispatch::DispatcherSnapshot;
use crate::runtime::Shared;

/// A runtime at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RuntimeSnapshot {
    /// The worker pool.
    pub pool: PoolSnapshot,
    /// The blocking pool.
    pub blocking: BlockingSnapshot,
    /// Polls that the watchdog found to be slow.
    pub slow_polls: u64,
    /// Timers that are waited for.
    pub timers: usize,
    /// Sockets and the like that are registered with the driver.
    pub io_sources: usize,
    /// Dispatchers with a pool of their own.
    pub dispatchers: Vec<DispatcherSnapshot>,
    /// Unconfined tasks that have not ended.
    pub unconfined_tasks: usize,
    /// Tasks that run in the tokio guest; none if it was never asked for.
    pub tokio_tasks: Option<usize>,
}

/// Suspended tasks that a dump lists.
const TASKS_IN_DUMP: usize = 64;
/// Stacks of coroutines that a dump lists.
const STACKS_IN_DUMP: usize = 16;
/// Events that a dump lists.
const EVENTS_IN_DUMP: usize = 64;

pub(crate) fn snapshot(shared: &Shared) -> RuntimeSnapshot {
    RuntimeSnapshot {
        pool: shared.pool.snapshot(),
        blocking: shared.blocking.snapshot(),
        slow_polls: shared.pool.slow_polls(),
        timers: shared.timers().waiting(),
        io_sources: shared.io_sources(),
        dispatchers: shared
            .private_pools()
            .iter()
            .map(|pool| pool.snapshot())
            .collect(),
        unconfined_tasks: shared.unconfined.len(),
        tokio_tasks: shared.tokio_tasks(),
    }
}

pub(crate) fn dump(shared: &Shared, out: &mut impl Write) -> io::Result<()> {
    let snapshot = snapshot(shared);
    dump_queues(&snapshot, out)?;
    dump_workers(&snapshot, out)?;
    dump_tasks(shared, out)?;
    dump_stacks(out)?;
    shared.front_ends.dump(out)?;
    dump_events(shared, out)
}

fn dump_queues(snapshot: &RuntimeSnapshot, out: &mut impl Write) -> io::Result<()> {
    let (pool, blocking) = (&snapshot.pool, &snapshot.blocking);
    writeln!(
        out,
        "workers {} (awake {}, searching {})  injector {}  high/low/background {:?}  rescued {} (driver {})",
        pool.workers.len(),
        pool.unparked,
        pool.searching,
        pool.injector_len,
        pool.class_len,
        pool.tasks_rescued,
        pool.driver_rescues,
    )?;
    writeln!(
        out,
        "blocking threads {} (idle {}), queued {}, expired {}",
        blocking.threads, blocking.idle, blocking.queued, blocking.expired,
    )?;
    writeln!(
        out,
        "io dispatcher: tasks {}, turns {}  unconfined tasks {}",
        blocking.io_tasks, blocking.io_turns, snapshot.unconfined_tasks,
    )?;
    for dispatcher in &snapshot.dispatchers {
        dump_dispatcher(dispatcher, out)?;
    }
    writeln!(
        out,
        "timers {}  registered sockets {}",
        snapshot.timers, snapshot.io_sources,
    )?;
    match snapshot.tokio_tasks {
        Some(tasks) => writeln!(out, "tokio guest: {tasks} tasks of its own"),
        None => Ok(()),
    }
}

fn dump_dispatcher(dispatcher: &DispatcherSnapshot, out: &mut impl Write) -> io::Result<()> {
    let Some(pool) = &dispatcher.pool else {
        return Ok(());
    };
    let sum = |count: fn(&WorkerSnapshot) -> u64| pool.workers.iter().map(count).sum::<u64>();
    writeln!(
        out,
        "dispatcher {}: workers {} (awake {}), injector {}, suspended {}, polls {}, completed {}",
        dispatcher.name,
        pool.workers.len(),
        pool.unparked,
        pool.injector_len,
        pool.suspended_tasks,
        sum(|worker| worker.polls),
        sum(|worker| worker.tasks_completed),
    )
}

fn dump_workers(snapshot: &RuntimeSnapshot, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>6} {:<9} {:>4} {:>4} {:>12} {:>12} {:>9} {:>9} {:>8} {:>8} {:>10} {:>10}  in or last in",
        "worker",
        "state",
        "ring",
        "slot",
        "polls",
        "completed",
        "stolen",
        "jobs st.",
        "parks",
        "overfl.",
        "mean run",
        "max run",
    )?;
    for worker in &snapshot.pool.workers {
        let task = match (&worker.task_name, worker.task_location) {
            (Some(name), Some(location)) => format!("{name} ({location})"),
            (None, Some(location)) => location.to_string(),
            (Some(name), None) => name.clone(),
            _ => "-".into(),
        };
        writeln!(
            out,
            "{:>6} {:<9} {:>4} {:>4} {:>12} {:>12} {:>9} {:>9} {:>8} {:>8} {:>10} {:>10}  {task}",
            worker.index,
            format!("{:?}", worker.state),
            worker.ring_len,
            u8::from(worker.slot_full),
            worker.polls,
            worker.tasks_completed,
            worker.tasks_stolen,
            worker.forks_stolen,
            worker.park_events,
            worker.overflows,
            format!("{:.1?}", worker.avg_run),
            format!("{:.1?}", worker.max_run),
        )?;
    }
    Ok(())
}

fn dump_tasks(shared: &Shared, out: &mut impl Write) -> io::Result<()> {
    let tasks = shared.pool.suspended(TASKS_IN_DUMP + 1);
    writeln!(out, "suspended tasks:")?;
    for task in tasks.iter().take(TASKS_IN_DUMP) {
        let header = task.header();
        let name = header.meta().name().map_or("(unnamed)", |name| name);
        writeln!(
            out,
            "  {} {name} {:?}, spawned at {}",
            header.id(),
            header.state(),
            header.meta().location(),
        )?;
    }
    if tasks.len() > TASKS_IN_DUMP {
        writeln!(out, "  ... and more")?;
    }
    Ok(())
}

/// Whose stacks are how deep. They are the process's: runtimes share them.
fn dump_stacks(out: &mut impl Write) -> io::Result<()> {
    let mut stacks = coroutine::stacks_in_use(usize::MAX);
    if stacks.is_empty() {
        return Ok(());
    }
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.peak));
    writeln!(
        out,
        "coroutine stacks in use {}, the deepest (KiB ever touched of KiB):",
        stacks.len()
    )?;
    for stack in stacks.iter().take(STACKS_IN_DUMP) {
        writeln!(
            out,
            "  {:>6} of {:>7} {}, spawned at {}",
            stack.peak >> 10,
            stack.size >> 10,
            stack.id(),
            stack.location,
        )?;
    }
    Ok(())
}

fn dump_events(shared: &Shared, out: &mut impl Write) -> io::Result<()> {
    let events = shared.pool.events();
    writeln!(
        out,
        "latest events of {} (ns, worker, kind, argument):",
        events.len()
    )?;
    for event in events.iter().rev().take(EVENTS_IN_DUMP).rev() {
        let argument = match event.task() {
            Some(task) => task.to_string(),
            None => event.argument.to_string(),
        };
        writeln!(
            out,
            "  {:>15} {:>3} {:<9} {argument}",
            event.at,
            event.worker,
            format!("{:?}", event.kind),
        )?;
    }
    Ok(())
}
