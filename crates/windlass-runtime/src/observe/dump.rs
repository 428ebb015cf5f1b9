//! A snapshot as text, for people.

use std::io::{self, Write};

use windlass_core::observe::{Event, WorkerSnapshot};

use super::entity::Entity;
use super::snapshot::{RuntimeSnapshot, SourceSnapshot};
use crate::dispatch::DispatcherSnapshot;

/// Stacks of coroutines that a dump lists.
const STACKS_IN_DUMP: usize = 16;
/// Events that a dump lists.
const EVENTS_IN_DUMP: usize = 64;

/// Writes a snapshot and the latest of these events.
pub(crate) fn dump(
    snapshot: &RuntimeSnapshot,
    events: &[Event],
    out: &mut impl Write,
) -> io::Result<()> {
    dump_queues(snapshot, out)?;
    dump_workers(snapshot, out)?;
    for source in &snapshot.sources {
        match source.source {
            // The lines above say it in fewer words.
            "workers" | "blocking" | "dispatcher" => {}
            "tasks" => {
                writeln!(out, "suspended tasks:")?;
                dump_entities(source, out)?;
            }
            "coroutines" => dump_stacks(source, out)?,
            _ => dump_source(source, out)?,
        }
    }
    dump_events(events, out)
}

/// Writes a line with the samples of a source, and a line for each of its first entities.
fn dump_source(source: &SourceSnapshot, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", source.source)?;
    if let Some(label) = &source.label {
        write!(out, " of {label}")?;
    }
    for (nth, sample) in source.samples.iter().enumerate() {
        write!(out, "{} {sample}", if nth == 0 { ":" } else { "," })?;
    }
    writeln!(out)?;
    dump_entities(source, out)
}

fn dump_entities(source: &SourceSnapshot, out: &mut impl Write) -> io::Result<()> {
    for entity in &source.entities {
        writeln!(out, "  {entity}")?;
    }
    match source.has_more {
        true => writeln!(out, "  ... and more"),
        false => Ok(()),
    }
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
    )
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

/// Writes which of the first stacks are how deep. They are the program's: runtimes share them.
fn dump_stacks(source: &SourceSnapshot, out: &mut impl Write) -> io::Result<()> {
    let stacks = source.sample("stacks").unwrap_or_default();
    if stacks == 0.0 {
        return Ok(());
    }
    let kib = |entity: &Entity, name: &str| {
        let found = entity.counts.iter().find(|count| count.0 == name);
        found.map_or(0, |count| count.1 >> 10)
    };
    let mut deepest: Vec<&Entity> = source.entities.iter().collect();
    deepest.sort_by_key(|entity| std::cmp::Reverse(kib(entity, "stack_touched_bytes")));
    writeln!(
        out,
        "coroutine stacks in use {stacks}, the deepest of the first (KiB ever touched of KiB):"
    )?;
    for entity in deepest.iter().take(STACKS_IN_DUMP) {
        write!(
            out,
            "  {:>6} of {:>7} {}",
            kib(entity, "stack_touched_bytes"),
            kib(entity, "stack_bytes"),
            entity.id,
        )?;
        match entity.spawned_at {
            Some(location) => writeln!(out, ", spawned at {location}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn dump_events(events: &[Event], out: &mut impl Write) -> io::Result<()> {
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
