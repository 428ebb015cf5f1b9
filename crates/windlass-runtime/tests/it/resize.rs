//! Workers that come and go: resizes, and threads that block.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windlass_core::observe::WorkerState;
use windlass_runtime::task::block_in_place;
use windlass_runtime::{ResizeError, Runtime, SchedPolicy, coroutine, time};

use crate::support::{Gate, eventually, join, runtime};

fn present(runtime: &Runtime) -> usize {
    let workers = runtime.snapshot().pool.workers;
    workers
        .iter()
        .filter(|worker| worker.state != WorkerState::Gone)
        .count()
}

fn growing(workers: usize, most: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .max_workers(most)
        .build()
        .expect("a runtime")
}

#[test]
fn a_runtime_that_grows_runs_more_at_once() {
    let runtime = growing(1, 4);
    runtime.resize(4).expect("it was built for four");
    assert_eq!(present(&runtime), 4);
    let (inside, gate) = (Arc::new(AtomicUsize::new(0)), Gate::default());
    let handles: Vec<_> = (0..4)
        .map(|_| {
            let (inside, gate) = (inside.clone(), gate.clone());
            runtime.spawn(async move {
                inside.fetch_add(1, Ordering::SeqCst);
                gate.wait();
            })
        })
        .collect();
    eventually("four run at once", || inside.load(Ordering::SeqCst) == 4);
    gate.open();
    for handle in handles {
        join("each ends", handle);
    }
}

#[test]
fn a_runtime_that_shrinks_loses_no_task() {
    let runtime = growing(4, 4);
    let threads: Arc<Mutex<HashSet<thread::ThreadId>>> = Arc::default();
    let stop = Arc::new(AtomicBool::new(false));
    let handles: Vec<_> = (0..100)
        .map(|_| {
            let (threads, stop) = (threads.clone(), stop.clone());
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    threads
                        .lock()
                        .expect("no panic")
                        .insert(thread::current().id());
                    windlass_runtime::task::yield_now().await;
                    time::sleep(Duration::from_micros(100)).await;
                }
            })
        })
        .collect();
    for size in [1, 3, 2, 4, 1] {
        runtime.resize(size).expect("at most four");
        eventually("the others leave", || present(&runtime) == size);
        thread::sleep(Duration::from_millis(5));
    }
    threads.lock().expect("no panic").clear();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(threads.lock().expect("no panic").len(), 1, "one is left");
    stop.store(true, Ordering::SeqCst);
    for handle in handles {
        join("each ends", handle);
    }
    assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
}

#[test]
fn sleeping_workers_leave_too() {
    let runtime = growing(4, 4);
    eventually("all sleep", || runtime.snapshot().pool.unparked == 0);
    runtime.resize(1).expect("at most four");
    eventually("three leave", || present(&runtime) == 1);
    assert_eq!(join("the last one works", runtime.spawn(async { 1 })), 1);
}

#[test]
fn tasks_that_a_worker_registered_before_it_left_are_dropped_at_the_end() {
    let drops = crate::support::Drops::default();
    let runtime = growing(4, 4);
    let handles: Vec<_> = (0..400)
        .map(|_| {
            let guard = drops.guard();
            runtime.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            })
        })
        .collect();
    eventually("all wait", || {
        runtime.snapshot().pool.suspended_tasks == 400
    });
    runtime.resize(1).expect("at most four");
    eventually("three leave", || present(&runtime) == 1);
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert_eq!(drops.count(), 400);
    drop(handles);
}

#[test]
fn a_worker_with_coroutines_stays_until_they_have_ended() {
    let runtime = growing(2, 2);
    let notify = Arc::new(windlass_sync::lock::Notify::new());
    let homes: Arc<Mutex<HashSet<thread::ThreadId>>> = Arc::default();
    let begun = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..200)
        .map(|_| {
            let (notify, homes, begun) = (notify.clone(), homes.clone(), begun.clone());
            coroutine::Builder::new().spawn_on(runtime.handle(), move || {
                let here = thread::current().id();
                homes.lock().expect("no panic").insert(here);
                begun.fetch_add(1, Ordering::SeqCst);
                // Time for the other worker to take some.
                crate::support::spin_for(Duration::from_micros(50));
                coroutine::wait(notify.notified());
                assert_eq!(thread::current().id(), here);
            })
        })
        .collect();
    eventually("all have begun", || begun.load(Ordering::SeqCst) == 200);
    let homes = homes.lock().expect("no panic").len();
    runtime.resize(1).expect("at most two");
    thread::sleep(Duration::from_millis(20));
    assert_eq!(present(&runtime), homes, "each is somebody's home");
    (0..200).for_each(|_| notify.notify_one());
    for handle in handles {
        join("each ends at home", handle);
    }
    eventually("one leaves now", || {
        // A sleeper notices when it is woken.
        drop(runtime.spawn(async {}));
        present(&runtime) == 1
    });
}

#[test]
fn sizes_that_cannot_be_are_errors() {
    let runtime = growing(1, 2);
    assert!(matches!(runtime.resize(0), Err(ResizeError::Zero)));
    let error = runtime.resize(3).expect_err("built for two");
    assert!(matches!(error, ResizeError::TooMany { most: 2 }));
    assert!(error.to_string().contains("max_workers"), "{error}");
    let simulated = Runtime::simulated(1);
    assert!(simulated.resize(1).is_err());
}

/// One worker: while it is blocked, another one runs tasks and waits for timers.
#[test]
fn a_thread_that_blocks_in_place_is_replaced() {
    let runtime = runtime(1);
    let gate = Gate::default();
    let inside = Gate::default();
    let (held, opened) = (gate.clone(), inside.clone());
    let blocked = runtime.spawn(async move {
        block_in_place(|| {
            opened.open();
            held.wait();
        });
        thread::current().id()
    });
    inside.wait();
    let other = runtime.spawn(async {
        time::sleep(Duration::from_millis(1)).await;
        thread::current().id()
    });
    let other = join("others go on", other);
    gate.open();
    assert_ne!(join("it goes on", blocked), other);
    eventually("one is too many now", || {
        drop(runtime.spawn(async {}));
        present(&runtime) == 1
    });
    assert_eq!(runtime.snapshot().pool.blocked_without_spare, 0);
}

#[test]
fn many_may_block_at_once_and_again_and_again() {
    let runtime = runtime(2);
    for _ in 0..20 {
        let handles: Vec<_> = (0..10)
            .map(|_| {
                runtime.spawn(async {
                    block_in_place(|| thread::sleep(Duration::from_millis(1)));
                })
            })
            .collect();
        for handle in handles {
            join("each ends", handle);
        }
    }
    eventually("the others leave", || {
        drop(runtime.spawn(async {}));
        present(&runtime) == 2
    });
    let ids = runtime.snapshot().pool.workers.len();
    assert!(ids <= 12, "worker ids are used again: {ids}");
    assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
}

/// With one worker, a destructor that waits for a timer while its coroutine unwinds needs somebody
/// else to look after the timers.
#[test]
fn a_wait_in_a_destructor_ends_on_one_worker() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            coroutine::wait(time::sleep(Duration::from_millis(5)));
        }
    }
    let runtime = runtime(1);
    let began = Gate::default();
    let opened = began.clone();
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), move || {
        let _waits = Waits;
        opened.open();
        coroutine::wait(std::future::pending::<()>());
    });
    began.wait();
    handle.abort();
    let ended = crate::support::wait("it ends", handle);
    assert!(ended.expect_err("aborted").is_cancelled());
}

#[test]
fn every_policy_runs_everything() {
    for policy in [SchedPolicy::Throughput, SchedPolicy::Latency] {
        let runtime = Runtime::builder()
            .workers(2)
            .policy(policy)
            .build()
            .expect("a runtime");
        let handles: Vec<_> = (0..1_000u64)
            .map(|number| {
                runtime.spawn(async move {
                    windlass_runtime::task::yield_now().await;
                    number
                })
            })
            .collect();
        let sum: u64 = handles
            .into_iter()
            .map(|handle| runtime.block_on(handle).expect("no panic"))
            .sum();
        assert_eq!(sum, 499_500, "{policy:?}");
    }
}

/// A budget of one operation: every second receive goes to the tail first.
#[test]
fn a_smaller_run_budget_gives_way_sooner() {
    let turns = |budget: u8| {
        let runtime = Runtime::builder()
            .workers(1)
            .run_budget(budget)
            .build()
            .expect("a runtime");
        let (sender, receiver) = windlass_sync::channel::mpmc::unlimited();
        (0..1_000).for_each(|number| sender.try_send(number).expect("room"));
        drop(sender);
        let before = runtime.snapshot().pool.workers[0].polls;
        let task = runtime.spawn(async move {
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            received
        });
        assert_eq!(join("it receives all", task), 1_000);
        runtime.snapshot().pool.workers[0].polls - before
    };
    let (small, large) = (turns(10), turns(200));
    assert!(small >= 100, "{small} turns");
    assert!(large <= 10, "{large} turns");
}
