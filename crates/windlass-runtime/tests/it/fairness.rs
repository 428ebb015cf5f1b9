//! Who gets a turn, and when.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use windlass_runtime::task::Class;
use windlass_runtime::{Runtime, task, task::yield_now};
use windlass_sync::CancellationToken;

use crate::support::{Notify, PATIENCE, eventually, hold_worker, join, runtime, spin_for, wait};

type Log = Arc<Mutex<Vec<usize>>>;

fn note(log: &Log, number: usize) {
    log.lock().unwrap().push(number);
}

/// 2W tasks that wake themselves for ever, at least one of them on each worker at the start.
fn keep_all_workers_busy(runtime: &Runtime, workers: usize) {
    let (all_there, passed) = (
        Arc::new(Barrier::new(workers)),
        Arc::new(AtomicUsize::new(0)),
    );
    let spawn = |wait_for_all: bool| {
        let (all_there, passed) = (all_there.clone(), passed.clone());
        let yields_for_ever = async move {
            if wait_for_all {
                // Blocks its worker until every worker has one.
                all_there.wait();
            }
            passed.fetch_add(1, Ordering::SeqCst);
            loop {
                yield_now().await;
            }
        };
        runtime.spawn(yields_for_ever).detach();
    };
    for part in 1..=2 {
        (0..workers).for_each(|_| spawn(part == 1));
        eventually("the tasks that yield for ever run", || {
            passed.load(Ordering::SeqCst) == part * workers
        });
    }
}

#[test]
fn e1_an_external_spawn_runs_within_50_ms() {
    for workers in [1, 2, 8] {
        let runtime = runtime(workers);
        keep_all_workers_busy(&runtime, workers);
        for _ in 0..10 {
            let (sender, receiver) = mpsc::channel();
            let began = Instant::now();
            runtime
                .spawn(async move { sender.send(began.elapsed()).unwrap() })
                .detach();
            let waited = receiver
                .recv_timeout(PATIENCE)
                .expect("the spawned task is starved");
            // Ten times what is promised: this is real time on a machine with other work.
            assert!(
                waited < Duration::from_millis(500),
                "{workers} workers: after {waited:?}"
            );
        }
    }
}

#[test]
fn an_external_wake_reaches_its_task_behind_tasks_that_yield_for_ever() {
    let runtime = runtime(1);
    keep_all_workers_busy(&runtime, 1);
    let notify = Notify::default();
    let waits = notify.clone();
    let handle = runtime.spawn(async move { waits.notified().await });
    eventually("the task waits", || notify.has_waiter());
    notify.notify();
    join("the woken task", handle);
}

#[test]
fn two_tasks_that_wake_each_other_do_not_starve_the_ring() {
    let runtime = runtime(1);
    let (ping, pong) = (Notify::default(), Notify::default());
    let slot_turns = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let player = |mine: &Notify, other: &Notify| {
        let (mine, other) = (mine.clone(), other.clone());
        let (turns, stop) = (slot_turns.clone(), stop.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                mine.notified().await;
                turns.fetch_add(1, Ordering::Relaxed);
                other.notify();
            }
        }
    };
    runtime.spawn(player(&ping, &pong)).detach();
    runtime.spawn(player(&pong, &ping)).detach();
    // One ball: one turn per poll.
    ping.notify();
    let turns = slot_turns.clone();
    let third = runtime.spawn(async move {
        let mut gaps = Vec::new();
        for _ in 0..200 {
            let before = turns.load(Ordering::Relaxed);
            yield_now().await;
            gaps.push(turns.load(Ordering::Relaxed) - before);
        }
        gaps
    });
    let gaps = join("the task in the ring", third);
    stop.store(true, Ordering::Relaxed);
    assert!(
        gaps.iter().sum::<usize>() > 100,
        "the two did not play meanwhile: {gaps:?}"
    );
    let longest = gaps.iter().max();
    assert!(
        longest <= Some(&3),
        "{longest:?} polls from the slot in a row, 3 are allowed"
    );
}

#[test]
fn yield_now_on_one_worker_is_first_in_first_out() {
    const TASKS: usize = 5;
    let runtime = runtime(1);
    let log = Log::default();
    let writes = log.clone();
    let root = runtime.spawn(async move {
        let spawn = |number| {
            let log = writes.clone();
            windlass_runtime::spawn(async move {
                for _ in 0..20 {
                    note(&log, number);
                    yield_now().await;
                }
            })
        };
        let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    join("the tasks that yield", root);
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 20 * TASKS);
    let mut first_round = log[..TASKS].to_vec();
    assert!(
        log.chunks(TASKS).all(|round| round == first_round),
        "not the same order: {log:?}"
    );
    first_round.sort_unstable();
    assert_eq!(first_round, [0, 1, 2, 3, 4], "each has one turn per round");
}

#[test]
fn a_loop_over_a_cancelled_token_gives_way_to_others() {
    let runtime = runtime(1);
    let token = CancellationToken::new();
    token.cancel();
    let other_ran = Arc::new(AtomicBool::new(false));
    let (seen, sets) = (other_ran.clone(), other_ran.clone());
    let greedy = runtime.spawn(async move {
        windlass_runtime::spawn(async move { sets.store(true, Ordering::Relaxed) }).detach();
        let mut rounds = 0u64;
        while !seen.load(Ordering::Relaxed) {
            token.cancelled().await;
            rounds += 1;
        }
        rounds
    });
    let rounds = join("the loop over what is always ready", greedy);
    assert!(rounds >= 128, "the budget of a poll is 128, not {rounds}");
    assert!(runtime.snapshot().pool.workers[0].budget_exhaustions > 0);
}

#[test]
fn a_loop_over_finished_join_handles_gives_way_to_others() {
    let runtime = runtime(1);
    let turns = Arc::new(AtomicUsize::new(0));
    let counts = turns.clone();
    let greedy = runtime.spawn(async move {
        let finished: Vec<_> = (0..1000)
            .map(|n| windlass_runtime::spawn(async move { n }))
            .collect();
        while !finished.iter().all(|handle| handle.is_finished()) {
            yield_now().await;
        }
        let counter = counts.clone();
        let counting = windlass_runtime::spawn(async move {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        let before = counts.load(Ordering::Relaxed);
        for (n, handle) in finished.into_iter().enumerate() {
            assert_eq!(handle.await.unwrap(), n);
        }
        counting.abort();
        counts.load(Ordering::Relaxed) - before
    });
    let turns_of_the_other = join("the loop over finished handles", greedy);
    assert!(
        turns_of_the_other >= 7,
        "1000 joins are 7 budgets, not {turns_of_the_other}"
    );
    assert!(runtime.snapshot().pool.workers[0].budget_exhaustions >= 7);
}

/// Spawns tasks of the given classes while the only worker is held; gives the order of running.
fn order_of(runtime: &Runtime, classes: &[Class]) -> Vec<Class> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (gate, _holder) = hold_worker(runtime);
    let spawn = |class: &Class| {
        let (log, class) = (log.clone(), *class);
        let notes = async move { log.lock().unwrap().push(class) };
        task::Builder::new()
            .class(class)
            .spawn_on(runtime.handle(), notes)
    };
    let tasks: Vec<_> = classes.iter().map(spawn).collect();
    gate.open();
    for task in tasks {
        join("a task of some class", task);
    }
    let log = log.lock().unwrap();
    log.clone()
}

#[test]
fn classes_run_in_their_order_and_not_in_that_of_spawning() {
    use Class::{Background, High, Low, Normal};
    let runtime = runtime(1);
    let spawned = [Background, Low, Normal, Background, High, Normal, Low, High];
    let expected = [High, High, Normal, Normal, Low, Low, Background, Background];
    assert_eq!(order_of(&runtime, &spawned), expected);
}

#[test]
fn after_63_high_tasks_one_normal_task_runs() {
    let runtime = runtime(1);
    let spawned = [vec![Class::Normal; 5], vec![Class::High; 200]].concat();
    let order = order_of(&runtime, &spawned);
    let is_normal = |index: &usize| order[*index] == Class::Normal;
    let normals: Vec<usize> = (0..order.len()).filter(is_normal).collect();
    assert_eq!(normals[..3], [63, 127, 191], "of {order:?}");
}

#[test]
fn a_low_task_behind_an_endless_stream_of_normal_ones_is_run_when_it_is_old() {
    let runtime = runtime(1);
    keep_all_workers_busy(&runtime, 1);
    let began = Instant::now();
    let low = task::Builder::new()
        .class(Class::Low)
        .spawn_on(runtime.handle(), async move { began.elapsed() });
    let waited = join("the low task", low);
    // Its bound is 100 ms; ten times that, because this is real time.
    assert!(waited < Duration::from_secs(1), "it waited {waited:?}");
    assert!(
        waited > Duration::from_millis(50),
        "it did not wait for the others: {waited:?}"
    );
    let aged = runtime.snapshot().pool.workers[0].aging_interventions;
    assert_eq!(aged, 1, "the intervention is counted");
}

/// The age of a queued task counts from its spawn, however long the runtime was idle before.
#[test]
fn a_low_task_spawned_after_a_long_idle_time_is_not_taken_for_an_old_one() {
    let runtime = runtime(1);
    eventually("the runtime is idle", || {
        runtime.snapshot().pool.unparked == 0
    });
    // Not synchronisation: the passing of idle time is what is tested.
    thread::sleep(Duration::from_millis(400));
    let log = Log::default();
    let writes = log.clone();
    let root = runtime.spawn(async move {
        let low = writes.clone();
        let low = task::Builder::new()
            .class(Class::Low)
            .spawn(async move { note(&low, 0) });
        let spawn = |number| {
            let log = writes.clone();
            windlass_runtime::spawn(async move {
                note(&log, number);
                spin_for(Duration::from_micros(20));
            })
        };
        let normal: Vec<_> = (1..=200).map(spawn).collect();
        for task in normal {
            task.await.unwrap();
        }
        low.await.unwrap();
    });
    wait("all tasks", root).unwrap();
    let position = log.lock().unwrap().iter().position(|number| *number == 0);
    let aged = runtime.snapshot().pool.workers[0].aging_interventions;
    assert_eq!(
        (position, aged),
        (Some(200), 0),
        "(its place in the order, interventions)"
    );
}

#[test]
fn tasks_behind_a_blocked_worker_run_although_all_others_are_busy_for_ever() {
    let runtime = runtime(2);
    let turns = Arc::new(AtomicUsize::new(0));
    let counts = turns.clone();
    runtime
        .spawn(async move {
            loop {
                counts.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        })
        .detach();
    let ran = Arc::new(AtomicUsize::new(0));
    let (gate, runs) = (crate::support::Gate::default(), ran.clone());
    let held = gate.clone();
    let blocked = runtime.spawn(async move {
        // The endless one has its turns, so it is on the other worker.
        let before = turns.load(Ordering::SeqCst);
        crate::support::spin_until(|| turns.load(Ordering::SeqCst) > before + 10);
        for _ in 0..5 {
            let runs = runs.clone();
            windlass_runtime::spawn(async move {
                runs.fetch_add(1, Ordering::SeqCst);
            })
            .detach();
        }
        held.wait();
    });
    eventually("the children have run", || ran.load(Ordering::SeqCst) == 5);
    gate.open();
    join("the blocked task", blocked);
}

#[test]
fn what_is_local_has_its_turns_beside_an_injector_that_is_never_empty() {
    // Polls so long that the injector is looked at before each of them.
    const LONG: Duration = Duration::from_millis(2);
    let runtime = runtime(1);
    let log: Log = Arc::default();
    let turns = Arc::new(AtomicUsize::new(0));
    // Two that stand in line with those of all workers after each turn: one of them always does.
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (log, turns) = (log.clone(), turns.clone());
            runtime.spawn(poll_fn(move |cx| {
                spin_for(LONG);
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                if turn == 40 {
                    let (log, turns) = (log.clone(), turns.clone());
                    let local = async move { note(&log, turns.load(Ordering::Relaxed)) };
                    windlass_runtime::spawn(local).detach();
                }
                if turn >= 80 {
                    return Poll::Ready(());
                }
                windlass_core::context::note_long_turn();
                cx.waker().wake_by_ref();
                Poll::Pending
            }))
        })
        .collect();
    for task in tasks {
        join("a long task", task);
    }
    let log = log.lock().unwrap();
    assert!(log.first().is_some_and(|turn| *turn <= 45), "{log:?}");
}
