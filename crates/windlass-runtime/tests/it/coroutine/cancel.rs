//! How coroutines end: they unwind at a suspension point, and nothing drops them half-way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_runtime::{Runtime, coroutine, time};
use windlass_sync::lock::Notify;

use crate::support::{Drops, Gate, eventually, expect_panics, hold_worker, join, runtime, wait};

/// A coroutine that has begun, holds a guard, and does `then`.
fn begun(
    runtime: &Runtime,
    drops: &Drops,
    then: impl FnOnce() + Send + 'static,
) -> windlass_core::task::JoinHandle<()> {
    let (began, guard) = (Gate::default(), drops.guard());
    let opened = began.clone();
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), move || {
        let _guard = guard;
        opened.open();
        then();
    });
    began.wait();
    handle
}

/// Every worker is asked, each while the others are held.
#[track_caller]
pub(super) fn assert_no_worker_panics(runtime: &Runtime, workers: usize) {
    let gates: Vec<_> = (0..workers)
        .map(|_| {
            let (gate, asked) = (Gate::default(), Gate::default());
            let (held, told) = (gate.clone(), asked.clone());
            let answer = runtime.spawn(async move {
                told.open();
                held.wait();
                thread::panicking()
            });
            asked.wait();
            (gate, answer)
        })
        .collect();
    for (gate, answer) in gates {
        gate.open();
        assert!(!join("a worker answers", answer), "a worker is panicking");
    }
}

#[test]
fn a_waiting_coroutine_unwinds_when_it_is_aborted() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let handle = begun(&runtime, &drops, || {
        coroutine::wait(std::future::pending::<()>());
    });
    assert_eq!(drops.count(), 0);
    handle.abort();
    let error = wait("it ends", handle).expect_err("aborted");
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(drops.count(), 1, "before the handle resolved");
    assert_no_worker_panics(&runtime, 2);
    let cancels: u64 = runtime
        .snapshot()
        .pool
        .workers
        .iter()
        .map(|w| w.cancels)
        .sum();
    let panics: u64 = runtime
        .snapshot()
        .pool
        .workers
        .iter()
        .map(|w| w.panics)
        .sum();
    assert_eq!(
        (cancels, panics),
        (1, 0),
        "it counts as cancelled, not as panicked"
    );
}

#[test]
fn one_that_has_not_begun_is_just_dropped() {
    let runtime = runtime(1);
    let (gate, held) = hold_worker(&runtime);
    let drops = Drops::default();
    let guard = drops.guard();
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), move || {
        let _guard = guard;
        unreachable!("it was aborted before");
    });
    handle.abort();
    gate.open();
    join("the worker is free", held);
    let error = wait("it ends", handle).expect_err("aborted");
    assert!(error.is_cancelled());
    assert_eq!(drops.count(), 1);
}

#[test]
fn who_catches_a_cancellation_is_told_again_at_the_next_wait() {
    let runtime = runtime(1);
    let drops = Drops::default();
    let caught = Arc::new(AtomicUsize::new(0));
    let counted = caught.clone();
    let handle = begun(&runtime, &drops, move || {
        for _ in 0..3 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                coroutine::wait(std::future::pending::<()>());
            }));
            let payload = result.expect_err("it never ends otherwise");
            assert!(payload.is::<coroutine::Cancelled>());
            assert!(coroutine::is_cancelled());
            counted.fetch_add(1, Ordering::SeqCst);
        }
        // Also one that would not have to wait.
        coroutine::wait(async {});
        unreachable!("the wait before this raises");
    });
    handle.abort();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    assert_eq!(caught.load(Ordering::SeqCst), 3);
    assert_eq!(drops.count(), 1);
}

#[test]
fn one_that_catches_it_and_returns_has_an_output() {
    let runtime = runtime(1);
    let began = Gate::default();
    let opened = began.clone();
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), move || {
        opened.open();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            coroutine::wait(std::future::pending::<()>());
        }));
        "cleaned up"
    });
    began.wait();
    handle.abort();
    assert_eq!(join("it returns", handle), "cleaned up");
}

#[test]
fn a_yielding_coroutine_is_cancelled_at_a_yield() {
    let runtime = runtime(1);
    let drops = Drops::default();
    let handle = begun(&runtime, &drops, || {
        loop {
            coroutine::yield_now();
        }
    });
    handle.abort();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    assert_eq!(drops.count(), 1);
}

#[test]
fn foreign_code_is_left_alone_until_it_returns() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let (go_on, left) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (waited, counted) = (go_on.clone(), left.clone());
    let inside = Gate::default();
    let opened = inside.clone();
    let handle = begun(&runtime, &drops, move || {
        coroutine::foreign(|| {
            opened.open();
            coroutine::wait(waited.notified());
            counted.fetch_add(1, Ordering::SeqCst);
        });
        coroutine::yield_now();
        unreachable!("cancelled at the first suspension after the section");
    });
    inside.wait();
    handle.abort();
    thread::sleep(Duration::from_millis(20));
    assert!(!handle.is_finished(), "the section goes on");
    go_on.notify_one();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    assert_eq!((left.load(Ordering::SeqCst), drops.count()), (1, 1));
}

/// A destructor that waits while its coroutine unwinds blocks the worker and not the program.
#[test]
fn a_wait_in_a_destructor_during_unwinding_blocks_the_thread() {
    struct Waits(Arc<AtomicUsize>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let here = thread::current().id();
            coroutine::wait(time::sleep(Duration::from_millis(10)));
            coroutine::yield_now();
            assert_eq!(thread::current().id(), here);
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let runtime = runtime(2);
    let waited = Arc::new(AtomicUsize::new(0));
    let inner = Waits(waited.clone());
    let handle = begun(&runtime, &Drops::default(), move || {
        let _inner = inner;
        coroutine::wait(std::future::pending::<()>());
    });
    handle.abort();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    assert_eq!(waited.load(Ordering::SeqCst), 1);
    assert_no_worker_panics(&runtime, 2);
}

#[test]
fn a_shutdown_unwinds_every_coroutine_once() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let handles: Vec<_> = (0..100)
        .map(|_| {
            begun(&runtime, &drops, || {
                coroutine::wait(std::future::pending::<()>());
            })
        })
        .collect();
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert_eq!(drops.count(), 100);
    for handle in handles {
        assert!(wait("resolved", handle).expect_err("ended").is_cancelled());
    }
}

#[test]
fn what_outlives_the_shutdown_in_foreign_code_is_leaked_and_named() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let guard = drops.guard();
    let inside = Gate::default();
    let opened = inside.clone();
    let handle = coroutine::Builder::new()
        .name("stubborn")
        .spawn_on(runtime.handle(), move || {
            let _guard = guard;
            coroutine::foreign(|| {
                opened.open();
                coroutine::wait(std::future::pending::<()>());
            });
        });
    inside.wait();
    eventually("it waits", || runtime.snapshot().pool.suspended_tasks == 1);
    let began = Instant::now();
    let report = runtime.shutdown(Duration::from_millis(100));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(report.leaked_coroutines.len(), 1, "{report}");
    assert_eq!(
        report.leaked_coroutines[0].name.as_deref(),
        Some("stubborn")
    );
    assert!(report.to_string().contains("stubborn"), "{report}");
    assert!(wait("resolved", handle).expect_err("ended").is_cancelled());
    assert_eq!(drops.count(), 0, "its frames are never dropped");
}

#[test]
fn a_timeout_around_a_join_leaves_the_coroutine_alone() {
    let runtime = runtime(2);
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), || {
        coroutine::wait(time::sleep(Duration::from_millis(50)));
        1
    });
    let both = runtime.block_on(async move {
        let mut handle = handle;
        let early = time::timeout(Duration::from_millis(1), &mut handle).await;
        (early.is_err(), handle.await)
    });
    assert!(both.0);
    assert_eq!(both.1.expect("it ended well"), 1);
}

#[test]
fn a_panic_while_unwinding_from_a_cancellation_is_a_panic() {
    expect_panics();
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            let caught = catch_unwind(|| panic!("of a destructor, on purpose"));
            assert!(caught.is_err());
        }
    }
    let runtime = runtime(1);
    let handle = begun(&runtime, &Drops::default(), || {
        let _panics = Panics;
        coroutine::wait(std::future::pending::<()>());
    });
    handle.abort();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    assert_no_worker_panics(&runtime, 1);
}

#[test]
fn in_a_simulation_coroutines_unwind_at_once() {
    windlass_runtime::simulator::explore(20, || async {
        let drops = Drops::default();
        let guard = drops.guard();
        let handle = coroutine::spawn(move || {
            let _guard = guard;
            coroutine::wait(time::sleep(Duration::from_secs(3600)));
        });
        time::sleep(Duration::from_secs(1)).await;
        let began = time::Instant::now();
        handle.abort();
        assert!(handle.await.expect_err("aborted").is_cancelled());
        assert_eq!(drops.count(), 1);
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}

/// A simulated runtime may be handed to another thread. What has begun on the first one is not
/// resumed there, and the first one stays: its thread-locals may be lent.
#[test]
fn a_simulation_that_changes_its_thread_does_not_take_coroutines_along() {
    let drops = Drops::default();
    let guards = [drops.guard(), drops.guard()];
    let (give, given) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = Runtime::simulated(1);
        let [woken, dropped] = guards.map(|guard| {
            coroutine::Builder::new().spawn_on(runtime.handle(), move || {
                let _guard = guard;
                let own = std::rc::Rc::new(());
                coroutine::wait(time::sleep(Duration::from_secs(1)));
                drop(own);
            })
        });
        runtime.block_on(async { time::sleep(Duration::from_millis(1)).await });
        let _ = give.send((runtime, woken, dropped));
    });
    let (runtime, woken, dropped) = given.recv().expect("it has begun");
    let (error, report) = thread::spawn(move || {
        crate::support::expect_panics();
        let error = runtime.block_on(woken).expect_err("not on this thread");
        (error, runtime.shutdown(Duration::from_secs(1)))
    })
    .join()
    .expect("no panic comes out");
    assert!(error.is_panic(), "{error}");
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_eq!(drops.count(), 0, "their frames are never run elsewhere");
    assert!(dropped.is_finished());
    assert!(!report.leaked_coroutines.is_empty(), "{report}");
}
