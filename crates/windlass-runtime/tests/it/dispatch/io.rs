//! The io dispatcher: tasks that block now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::{Runtime, coroutine, time};

use super::here;
use crate::support::{Drops, Gate, eventually, join, runtime, wait};

#[test]
fn tasks_that_block_do_not_hold_up_the_workers() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let io = Dispatcher::io();
    let gate = Gate::default();
    let inside = Arc::new(AtomicUsize::new(0));
    let blocked: Vec<_> = (0..20)
        .map(|_| {
            let (gate, inside) = (gate.clone(), inside.clone());
            io.spawn(async move {
                inside.fetch_add(1, Ordering::SeqCst);
                gate.wait();
                here()
            })
        })
        .collect();
    eventually("twenty block at once", || {
        inside.load(Ordering::SeqCst) == 20
    });
    assert_eq!(join("the worker is free", runtime.spawn(async { 1 })), 1);
    gate.open();
    for handle in blocked {
        assert!(join("each ends", handle).contains("-blocking-"));
    }
}

#[test]
fn no_more_of_them_have_a_turn_at_once_than_was_said() {
    let runtime = Runtime::builder()
        .workers(1)
        .max_io_threads(3)
        .build()
        .expect("a runtime");
    let io = Dispatcher::io_of(runtime.handle());
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handles: Vec<_> = (0..30)
        .map(|_| {
            let (inside, most) = (inside.clone(), most.clone());
            io.spawn(async move {
                for _ in 0..3 {
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    windlass_runtime::task::yield_now().await;
                }
            })
        })
        .collect();
    for handle in handles {
        join("each ends", handle);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    // Blocking closures have their own limit.
    let gate = Gate::default();
    let jobs: Vec<_> = (0..6)
        .map(|_| {
            let (gate, inside) = (gate.clone(), inside.clone());
            runtime.spawn_blocking(move || {
                inside.fetch_add(1, Ordering::SeqCst);
                gate.wait();
            })
        })
        .collect();
    eventually("six jobs run", || inside.load(Ordering::SeqCst) == 6);
    gate.open();
    for job in jobs {
        join("each ends", job);
    }
}

#[test]
fn its_threads_come_when_they_are_needed_and_go() {
    let runtime = Runtime::builder()
        .workers(1)
        .thread_keep_alive(Duration::from_millis(20))
        .build()
        .expect("a runtime");
    let io = Dispatcher::io_of(runtime.handle());
    assert_eq!(runtime.snapshot().blocking.threads, 0);
    let task = io.spawn(async {
        time::sleep(Duration::from_millis(100)).await;
        here()
    });
    eventually("a thread comes and goes while the task waits", || {
        runtime.snapshot().blocking.threads == 0 && runtime.snapshot().blocking.io_turns == 1
    });
    assert_eq!(runtime.snapshot().blocking.io_tasks, 1);
    assert!(join("another goes on with it", task).contains("-blocking-"));
    eventually("it is forgotten", || {
        runtime.snapshot().blocking.io_tasks == 0
    });
}

#[test]
fn a_thread_with_a_coroutine_stays_and_the_coroutine_stays_on_it() {
    let runtime = Runtime::builder()
        .workers(1)
        .thread_keep_alive(Duration::from_millis(10))
        .build()
        .expect("a runtime");
    let io = Dispatcher::io_of(runtime.handle());
    let handles: Vec<_> = (0..10)
        .map(|_| {
            io.spawn_coroutine(|| {
                let home = thread::current().id();
                for _ in 0..3 {
                    coroutine::yield_now();
                    assert_eq!(thread::current().id(), home);
                    coroutine::wait(time::sleep(Duration::from_millis(30)));
                    assert_eq!(thread::current().id(), home);
                }
                here()
            })
        })
        .collect();
    for handle in handles {
        assert!(join("it ends at home", handle).contains("-blocking-"));
    }
    eventually("then they go", || runtime.snapshot().blocking.threads == 0);
}

#[test]
fn a_task_that_waits_past_its_deadline_is_not_run() {
    let runtime = Runtime::builder()
        .workers(1)
        .max_io_threads(1)
        .build()
        .expect("a runtime");
    let io = Dispatcher::io_of(runtime.handle());
    let gate = Gate::default();
    let held = gate.clone();
    let blocking = io.spawn(async move { held.wait() });
    eventually("it blocks", || runtime.snapshot().blocking.threads == 1);
    let drops = Drops::default();
    let guard = drops.guard();
    let late = io.spawn_within(Duration::from_millis(1), async move {
        drop(guard);
        unreachable!("it is too late");
    });
    let soon = io.spawn_within(Duration::from_secs(60), async { 1 });
    thread::sleep(Duration::from_millis(10));
    gate.open();
    join("the thread is free", blocking);
    let error: windlass_core::task::JoinError = match wait("it expires", late) {
        Ok(()) => unreachable!("it was not run"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), windlass_runtime::task::JoinErrorKind::Expired);
    assert_eq!(drops.count(), 1);
    assert_eq!(join("the other runs", soon), 1);
    assert_eq!(runtime.snapshot().blocking.expired, 1);
}

#[test]
fn a_shutdown_ends_its_tasks_and_coroutines() {
    let runtime = runtime(1);
    let io = Dispatcher::io_of(runtime.handle());
    let drops = Drops::default();
    let begun = Arc::new(AtomicUsize::new(0));
    let mut handles = Vec::new();
    for number in 0..40 {
        let (guard, begun) = (drops.guard(), begun.clone());
        handles.push(if number % 2 == 0 {
            io.spawn(async move {
                let _guard = guard;
                begun.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            })
        } else {
            io.spawn_coroutine(move || {
                let _guard = guard;
                begun.fetch_add(1, Ordering::SeqCst);
                coroutine::wait(std::future::pending::<()>());
            })
        });
    }
    eventually("all have begun", || begun.load(Ordering::SeqCst) == 40);
    let began = Instant::now();
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(drops.count(), 40);
    for handle in handles {
        assert!(wait("resolved", handle).expect_err("ended").is_cancelled());
    }
    let refused = io.spawn(async {});
    assert!(wait("resolved", refused).expect_err("ended").is_cancelled());
}

#[test]
fn an_aborted_task_is_dropped() {
    let runtime = runtime(1);
    let io = Dispatcher::io_of(runtime.handle());
    let drops = Drops::default();
    let guard = drops.guard();
    let task = io.spawn(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    eventually("it waits", || runtime.snapshot().blocking.io_turns == 1);
    task.abort();
    assert!(wait("it ends", task).expect_err("aborted").is_cancelled());
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_task_that_does_not_return_is_named_at_the_end() {
    let runtime = runtime(1);
    let io = Dispatcher::io_of(runtime.handle());
    let gate = Gate::default();
    let (held, inside) = (gate.clone(), Gate::default());
    let opened = inside.clone();
    let task = io.spawn_named("stubborn", async move {
        opened.open();
        held.wait();
    });
    inside.wait();
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(report.stuck_jobs.len(), 1, "{report}");
    assert_eq!(report.stuck_jobs[0].name.as_deref(), Some("stubborn"));
    gate.open();
    drop(task);
}

/// Tasks that end on one thread do not keep the others.
#[test]
fn idle_threads_retire_while_others_work() {
    let runtime = Runtime::builder()
        .workers(1)
        .thread_keep_alive(Duration::from_millis(50))
        .build()
        .expect("a runtime");
    let io = Dispatcher::io_of(runtime.handle());
    let gate = Gate::default();
    let many: Vec<_> = (0..8)
        .map(|_| {
            let gate = gate.clone();
            io.spawn(async move { gate.wait() })
        })
        .collect();
    eventually("eight threads", || runtime.snapshot().blocking.threads == 8);
    gate.open();
    for task in many {
        join("each ends", task);
    }
    // A coroutine that is woken calls every thread, and a task that ends used to.
    let enough = Arc::new(AtomicBool::new(false));
    let told = enough.clone();
    let coroutine = io.spawn_coroutine(move || {
        while !told.load(Ordering::SeqCst) {
            coroutine::wait(time::sleep(Duration::from_millis(5)));
        }
    });
    eventually("the others retire", || {
        runtime.snapshot().blocking.threads == 1
    });
    enough.store(true, Ordering::SeqCst);
    join("it ends", coroutine);
}
