//! Seeing inside: counters, events, stalls, dumps.

use std::future::pending;
use std::sync::Weak;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use windlass_core::observe::{EventKind, Recording, Stall, WorkerState};
use windlass_runtime::observe::{Cursor, Entity, Observe, Page, Query, Sample};
use windlass_runtime::{Runtime, RuntimeSnapshot, task, task::yield_now};

use crate::support::{
    Gate, Notify, PATIENCE, eventually, expect_panics, hold_worker, in_time, join, runtime,
    spin_for, spin_until, wait,
};

fn submitted(snapshot: &RuntimeSnapshot) -> u64 {
    let inside: u64 = snapshot
        .pool
        .workers
        .iter()
        .map(|worker| worker.tasks_submitted)
        .sum();
    inside + snapshot.pool.tasks_submitted_outside
}

fn completed(snapshot: &RuntimeSnapshot) -> u64 {
    snapshot
        .pool
        .workers
        .iter()
        .map(|worker| worker.tasks_completed)
        .sum()
}

#[test]
fn counters_add_up_after_a_known_workload() {
    expect_panics();
    let runtime = runtime(2);
    let parents: Vec<_> = (0..10)
        .map(|_| {
            runtime.spawn(async {
                let children: Vec<_> = (0..50)
                    .map(|_| windlass_runtime::spawn(yield_now()))
                    .collect();
                for child in children {
                    child.await.unwrap();
                }
            })
        })
        .collect();
    for parent in parents {
        join("a parent", parent);
    }
    let panics: Vec<_> = (0..3)
        .map(|_| runtime.spawn(async { panic!("on purpose") }))
        .collect();
    for task in panics {
        let result: Result<(), _> = wait("a panicking task", task);
        assert!(result.is_err());
    }
    let cancelled: Vec<_> = (0..4).map(|_| runtime.spawn(pending::<()>())).collect();
    for task in cancelled {
        task.abort();
        assert!(wait("a cancelled task", task).is_err());
    }
    eventually("the runtime is idle", || {
        runtime.snapshot().pool.unparked == 0
    });
    let snapshot = runtime.snapshot();
    let sum = |pick: fn(&windlass_core::observe::WorkerSnapshot) -> u64| {
        snapshot.pool.workers.iter().map(pick).sum::<u64>()
    };
    assert_eq!(snapshot.pool.tasks_submitted_outside, 17);
    assert_eq!(submitted(&snapshot), 517);
    assert_eq!(completed(&snapshot), 517);
    assert_eq!((sum(|w| w.panics), sum(|w| w.cancels)), (3, 4));
    // Each child is polled twice.
    assert!(
        sum(|w| w.polls) >= 10 + 1000 + 7,
        "{} polls",
        sum(|w| w.polls)
    );
    // A worker that sleeps has gone to sleep once more than it woke.
    assert_eq!(sum(|w| w.park_events), sum(|w| w.unpark_events) + 2);
    assert!(
        snapshot
            .pool
            .workers
            .iter()
            .all(|worker| worker.state == WorkerState::Parked)
    );
    assert_eq!(
        (snapshot.pool.suspended_tasks, snapshot.pool.injector_len),
        (0, 0)
    );
}

#[test]
fn a_snapshot_shows_what_a_worker_is_in_and_what_is_queued_behind_it() {
    let runtime = runtime(1);
    let (gate, running) = (Gate::default(), Gate::default());
    let (held, says) = (gate.clone(), running.clone());
    let line = line!() + 1;
    let named = task::Builder::new().name("holder");
    let holder = named.spawn_on(runtime.handle(), async move {
        windlass_runtime::spawn(async {}).detach();
        windlass_runtime::spawn(async {}).detach();
        windlass_runtime::spawn(async {}).detach();
        says.open();
        held.wait();
    });
    running.wait();
    for class in [
        task::Class::High,
        task::Class::Low,
        task::Class::Low,
        task::Class::Background,
    ] {
        task::Builder::new()
            .class(class)
            .spawn_on(runtime.handle(), async {})
            .detach();
    }
    runtime.spawn(async {}).detach();
    let pool = runtime.snapshot().pool;
    gate.open();
    let worker = &pool.workers[0];
    assert_eq!(worker.task_name.as_deref(), Some("holder"));
    assert_eq!(
        worker.task_location.map(|location| location.line()),
        Some(line)
    );
    assert_eq!(
        (worker.state, worker.ring_len, worker.slot_full),
        (WorkerState::Running, 2, true)
    );
    assert_eq!((pool.injector_len, pool.class_len), (1, [1, 2, 1]));
    join("the holder", holder);
}

#[test]
fn rare_events_are_always_recorded() {
    expect_panics();
    let runtime = Runtime::builder()
        .workers(2)
        .recording(Recording::Rare)
        .build()
        .unwrap();
    eventually("both workers sleep", || {
        runtime.snapshot().pool.unparked == 0
    });
    // Steals.
    let busy = runtime.spawn(async {
        let child = windlass_runtime::spawn(async {});
        spin_until(|| child.is_finished());
    });
    join("the busy task", busy);
    // An overflow: each child holds its worker, so that no thief can keep up.
    let burst = runtime.spawn(async {
        let child = |_| windlass_runtime::spawn(async { spin_for(Duration::from_micros(10)) });
        let children: Vec<_> = (0..2000).map(child).collect();
        for child in children {
            child.await.unwrap();
        }
    });
    join("the burst", burst);
    let _: Result<(), _> = wait("a panic", runtime.spawn(async { panic!("on purpose") }));
    let cancelled = runtime.spawn(pending::<()>());
    cancelled.abort();
    let _ = wait("a cancellation", cancelled);
    eventually("the runtime is idle", || {
        runtime.snapshot().pool.unparked == 0
    });
    let events = runtime.events();
    for kind in [
        EventKind::Steal,
        EventKind::Park,
        EventKind::Unpark,
        EventKind::Overflow,
        EventKind::Cancel,
        EventKind::Panic,
    ] {
        assert!(
            events.iter().any(|event| event.kind == kind),
            "no {kind:?} in {events:?}"
        );
    }
    assert!(events.is_sorted_by_key(|event| event.at), "oldest first");
}

/// `Rare` says "rare events only".
#[test]
fn frequent_events_are_not_recorded_when_only_rare_ones_are_asked_for() {
    let runtime = Runtime::builder()
        .workers(2)
        .recording(Recording::Rare)
        .build()
        .unwrap();
    let parent = runtime.spawn(async {
        for _ in 0..1000 {
            windlass_runtime::spawn(yield_now()).await.unwrap();
        }
    });
    join("the parent", parent);
    let frequent = [EventKind::Spawn, EventKind::Poll, EventKind::Wake];
    let events = runtime.events();
    let count = events
        .iter()
        .filter(|event| frequent.contains(&event.kind))
        .count();
    assert_eq!(count, 0, "spawns, polls and wakes recorded");
}

#[test]
fn full_recording_has_every_spawn_and_poll_of_a_named_task() {
    let runtime = Runtime::builder()
        .workers(1)
        .recording(Recording::Full)
        .build()
        .unwrap();
    let ids = runtime.spawn(async {
        let child = task::Builder::new().name("watched").spawn(async {
            for _ in 0..4 {
                yield_now().await;
            }
        });
        let id = child.id().get();
        child.await.unwrap();
        id
    });
    let id = join("the parent", ids);
    let events = runtime.events();
    let count = |kind| {
        events
            .iter()
            .filter(|e| e.kind == kind && e.argument == id)
            .count()
    };
    assert_eq!((count(EventKind::Spawn), count(EventKind::Poll)), (1, 5));
}

#[test]
fn recording_can_be_switched_at_run_time_and_is_bounded() {
    let runtime = Runtime::builder()
        .workers(1)
        .recording(Recording::Rare)
        .build()
        .unwrap();
    let yields = |count: usize| {
        let task = runtime.spawn(async move {
            for _ in 0..count {
                yield_now().await;
            }
        });
        join("the yielding task", task);
    };
    yields(1000);
    let polls = || {
        runtime
            .events()
            .iter()
            .filter(|e| e.kind == EventKind::Poll)
            .count()
    };
    let rare = polls();
    runtime.set_recording(Recording::Full);
    yields(100_000);
    assert!(polls() > rare + 500, "{} polls recorded", polls());
    let kept = runtime.events().len();
    assert!(kept <= 1024, "one worker keeps 1024 events, not {kept}");
    assert!(runtime.snapshot().pool.workers[0].events_recorded > 90_000);
}

/// A runtime whose stalls arrive on a channel.
fn watched(workers: usize) -> (Runtime, mpsc::Receiver<Stall>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let runtime = Runtime::builder()
        .workers(workers)
        .stall_threshold(Some(Duration::from_millis(20)))
        .on_stall(move |stall| sender.lock().unwrap().send(stall.clone()).unwrap())
        .build()
        .unwrap();
    (runtime, receiver)
}

#[test]
fn a_stall_is_reported_once_with_name_and_location_while_the_poll_still_hangs() {
    let (runtime, stalls) = watched(1);
    let (gate, held) = (Gate::default(), Gate::default());
    let waits = gate.clone();
    let line = line!() + 1;
    let named = task::Builder::new().name("hangs");
    let hangs = named.spawn_on(runtime.handle(), async move {
        windlass_runtime::spawn(async {}).detach();
        held.open();
        waits.wait();
    });
    let stall = stalls
        .recv_timeout(PATIENCE)
        .expect("the stall is reported while it lasts");
    assert!(!hangs.is_finished());
    assert_eq!((stall.worker, stall.name.as_deref()), (0, Some("hangs")));
    let location = stall.location.expect("a location");
    assert_eq!((location.file(), location.line()), (file!(), line));
    assert_eq!(stall.queued_behind, 1);
    assert!(
        stall.duration >= Duration::from_millis(20),
        "{:?}",
        stall.duration
    );
    let text = stall.to_string();
    assert!(
        text.starts_with("worker 0 has been in one poll for"),
        "{text}"
    );
    assert!(text.contains("task hangs, spawned at"), "{text}");
    // Five more thresholds in the same poll: no second report.
    let again = stalls.recv_timeout(Duration::from_millis(100));
    assert!(again.is_err(), "reported twice: {again:?}");
    assert_eq!(runtime.snapshot().slow_polls, 1);
    gate.open();
    join("the task", hangs);
    assert!(
        runtime
            .events()
            .iter()
            .any(|event| event.kind == EventKind::SlowPoll)
    );
    let longest = runtime.snapshot().pool.workers[0].max_run;
    assert!(
        longest >= Duration::from_millis(100),
        "the longest run is {longest:?}"
    );
    // The next slow poll is a new stall.
    let next = runtime.spawn(async { spin_for(Duration::from_millis(100)) });
    stalls
        .recv_timeout(PATIENCE)
        .expect("another poll, another report");
    join("the next task", next);
}

#[test]
fn a_poll_below_the_threshold_and_an_idle_runtime_are_no_stalls() {
    let (runtime, stalls) = watched(2);
    for _ in 0..10 {
        join(
            "a short task",
            runtime.spawn(async { spin_for(Duration::from_micros(100)) }),
        );
    }
    runtime.spawn(pending::<()>()).detach();
    let none = stalls.recv_timeout(Duration::from_millis(100));
    assert!(none.is_err(), "{none:?}");
}

/// The very first poll of a worker is watched too, when its task was there before the thread.
#[test]
fn a_stall_in_a_workers_first_poll_is_reported() {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let (start, gate) = (Gate::default(), Gate::default());
    let (waits, held) = (start.clone(), gate.clone());
    let runtime = Runtime::builder()
        .workers(1)
        .stall_threshold(Some(Duration::from_millis(20)))
        .on_stall(move |stall| sender.lock().unwrap().send(stall.clone()).unwrap())
        .on_worker_start(move |_| waits.wait())
        .build()
        .unwrap();
    let hangs = runtime.spawn(async move { held.wait() });
    start.open();
    let stall = receiver.recv_timeout(Duration::from_secs(2));
    gate.open();
    join("the task", hangs);
    assert!(
        stall.is_ok(),
        "the poll hung for two seconds and nobody noticed"
    );
}

#[test]
fn a_stall_hook_that_panics_does_not_end_the_watch() {
    expect_panics();
    let calls = Arc::new(Mutex::new(0));
    let counts = calls.clone();
    let runtime = Runtime::builder()
        .workers(1)
        .stall_threshold(Some(Duration::from_millis(10)))
        .on_stall(move |_| {
            *counts.lock().unwrap() += 1;
            std::panic::panic_any(crate::support::Bomb);
        })
        .build()
        .unwrap();
    for expected in 1..=2 {
        let calls = calls.clone();
        let hangs = runtime.spawn(async move {
            spin_until(|| calls.lock().is_ok_and(|calls| *calls >= expected));
        });
        join("the hanging task", hangs);
    }
    assert_eq!(runtime.snapshot().slow_polls, 2);
}

#[test]
fn a_dump_shows_workers_suspended_tasks_and_events() {
    let runtime = runtime(2);
    let notify = Notify::default();
    let waits = notify.clone();
    let line = line!() + 1;
    let named = task::Builder::new().name("waiting for godot");
    let waiter = named.spawn_on(runtime.handle(), async move {
        waits.notified().await;
    });
    eventually("the task waits and all sleep", || {
        notify.has_waiter() && runtime.snapshot().pool.unparked == 0
    });
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).unwrap();
    let dump = String::from_utf8(dump).unwrap();
    assert!(
        dump.starts_with("workers 2 (awake 0, searching 0)"),
        "{dump}"
    );
    let parked = dump
        .lines()
        .filter(|line| line.contains(" Parked "))
        .count();
    assert_eq!(parked, 2, "a line per worker: {dump}");
    let task = dump
        .lines()
        .find(|line| line.contains("waiting for godot"))
        .expect("the task");
    let suspended = dump
        .lines()
        .skip_while(|line| *line != "suspended tasks:")
        .find(|line| line.contains("waiting for godot"))
        .unwrap_or_else(|| panic!("only {task:?} in {dump}"));
    assert!(suspended.contains("IDLE"), "{suspended}");
    assert!(
        suspended.contains(&format!("{}:{line}:", file!())),
        "{suspended}"
    );
    assert!(dump.lines().any(|line| line.contains(" Park ")), "{dump}");
    notify.notify();
    join("the waiter", waiter);
}

#[test]
fn a_dump_of_very_many_tasks_is_cut_short() {
    let runtime = runtime(1);
    (0..1000).for_each(|_| runtime.spawn(pending::<()>()).detach());
    eventually("they wait", || {
        runtime.snapshot().pool.suspended_tasks == 1000
    });
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).unwrap();
    let dump = String::from_utf8(dump).unwrap();
    assert!(
        dump.contains("... and more") && dump.lines().count() < 250,
        "{dump}"
    );
}

#[test]
fn a_dump_passes_the_writers_error_on() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = runtime(1).debug_dump(&mut Broken).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn debug_never_blocks_while_workers_and_jobs_are_stuck() {
    let runtime = Arc::new(runtime(1));
    let (gate, holder) = hold_worker(&runtime);
    let (waits, started) = (gate.clone(), Gate::default());
    let says = started.clone();
    let job = runtime.spawn_blocking(move || {
        says.open();
        waits.wait();
    });
    started.wait();
    let looks = runtime.clone();
    let (text, dump) = in_time("Debug, snapshot and dump", move || {
        let mut dump = Vec::new();
        looks.debug_dump(&mut dump).unwrap();
        (
            format!("{looks:?} {:?} {:?}", looks.handle(), looks.snapshot()),
            dump,
        )
    });
    assert!(text.starts_with("Runtime { pool: Pool {"), "{text}");
    assert!(!dump.is_empty());
    let handles = format!("{holder:?} {job:?} {:?}", holder.abort_handle());
    assert!(
        handles.contains(file!().rsplit('/').next().unwrap()) || handles.contains("support.rs")
    );
    gate.open();
    join("the holder", holder);
    join("the job", job);
}

#[test]
fn the_longest_and_the_mean_run_follow_the_polls() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        for _ in 0..2000 {
            spin_for(Duration::from_micros(20));
            yield_now().await;
        }
    });
    join("the task", task);
    let worker = &runtime.snapshot().pool.workers[0];
    let (mean, longest) = (worker.avg_run, worker.max_run);
    assert!(
        mean >= Duration::from_micros(15) && mean < Duration::from_millis(1),
        "{mean:?}"
    );
    assert!(longest >= Duration::from_micros(20), "{longest:?}");
    // 1 ms / 20 us = 50 polls; less on a machine that takes longer for them.
    let interval = worker.injector_interval;
    assert!(
        (1..=60).contains(&interval),
        "the interval is {interval} polls"
    );
}

#[test]
fn a_thousand_tasks_are_visited_page_by_page() {
    let runtime = runtime(2);
    let names = ["tick", "tock"];
    for nth in 0..1000 {
        let named = task::Builder::new().name(names[nth % 2]);
        named.spawn_on(runtime.handle(), pending::<()>()).detach();
    }
    eventually("they wait", || {
        runtime.snapshot().pool.suspended_tasks == 1000
    });
    let visit = |query: Query| {
        let (mut query, mut pages, mut ids) = (query, 0, Vec::new());
        loop {
            pages += 1;
            let before = ids.len();
            let handle = runtime.handle();
            let next = handle.entities("tasks", &query, |task| ids.push(task.id));
            assert!(ids.len() - before <= query.limit);
            match next {
                Some(next) => query = query.after(next),
                None => break,
            }
        }
        ids.sort_unstable();
        ids.dedup();
        (pages, ids.len())
    };
    assert_eq!(visit(Query::first(1000)), (2, 1000));
    let (pages, tasks) = visit(Query::first(7));
    assert_eq!(tasks, 1000);
    assert!((143..=145).contains(&pages), "{pages} pages");
    assert_eq!(visit(Query::first(7).containing("tock")).1, 500);
    assert_eq!(visit(Query::first(7).containing("no such task")), (1, 0));
    assert_eq!(visit(Query::first(0)), (1, 0));

    let snapshot = runtime.snapshot();
    let tasks = snapshot.sources("tasks").next().expect("tasks");
    assert_eq!(tasks.sample("suspended"), Some(1000.0));
    assert!(tasks.entities.len() == 64 && tasks.has_more);
    let task = &tasks.entities[0];
    assert_eq!(task.kind, "task");
    assert!(task.state.starts_with("IDLE"), "{task}");
    let location = task.spawned_at.expect("it was spawned somewhere");
    assert_eq!(location.file(), file!());
}

#[test]
fn sources_that_are_gone_are_not_observed() {
    struct Pond(&'static str, u64);
    impl Observe for Pond {
        fn source(&self) -> &'static str {
            "pond"
        }
        fn label(&self) -> Option<String> {
            Some(self.0.to_owned())
        }
        fn samples(&self, take: &mut dyn FnMut(Sample)) {
            take(Sample::counter("fish", self.1).label("kind", "carp"));
        }
        fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
            for position in page.after().position..self.1 {
                if page.is_full() {
                    return Some(Cursor { part: 0, position });
                }
                page.take(Entity::new(
                    "fish",
                    format!("{}{position}", self.0),
                    "swims",
                ));
            }
            None
        }
    }
    let runtime = runtime(1);
    let ponds = [Arc::new(Pond("north", 3)), Arc::new(Pond("south", 2))];
    for pond in &ponds {
        let pond: Weak<dyn Observe> = Arc::<Pond>::downgrade(pond);
        runtime.handle().add_observed(pond);
    }
    let fish = |snapshot: &RuntimeSnapshot| -> f64 {
        snapshot
            .sources("pond")
            .filter_map(|pond| pond.sample("fish"))
            .sum()
    };
    assert_eq!(fish(&runtime.snapshot()), 5.0);
    // Pages go over both.
    let (mut query, mut ids) = (Query::first(2), Vec::new());
    while let Some(next) = runtime
        .handle()
        .entities("pond", &query, |fish| ids.push(fish.id))
    {
        query = query.after(next);
    }
    assert_eq!(ids, ["north0", "north1", "north2", "south0", "south1"]);
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).unwrap();
    let dump = String::from_utf8_lossy(&dump).into_owned();
    let line = "pond of north: fish{kind=\"carp\"} 3\n  fish north0 swims\n";
    assert!(dump.contains(line), "{dump}");
    drop(ponds);
    assert_eq!(fish(&runtime.snapshot()), 0.0);
}
