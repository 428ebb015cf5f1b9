//! Local sets and drivers whose coroutines have to end in odd places: dropped by a cancellation,
//! owned by their own tasks, with destructors that panic, inside of another runtime.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;

use windlass_runtime::coroutine::{self, Finish};
use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::task::{LocalSet, yield_now};
use windlass_runtime::{Runtime, time};

use crate::support::{eventually, join, ms, on_a_thread, quiet, runtime};

/// Counts when it is dropped.
struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("in a destructor, on purpose");
        }
    }
}

/// Starts a coroutine on `set` that waits for ever, and counts its end.
async fn begin(set: &LocalSet, ended: &Arc<AtomicUsize>) {
    let count = Count(ended.clone());
    set.run_until(async move {
        drop(coroutine::spawn_local(move || {
            let _count = count;
            coroutine::wait(pending::<()>());
        }));
        for _ in 0..3 {
            yield_now().await;
        }
    })
    .await;
}

/// The thread ends, with all its destructors.
fn ends_soon(what: &str, thread: thread::JoinHandle<()>) {
    let joiner = thread::spawn(move || thread.join().is_ok());
    eventually(what, || joiner.is_finished());
    assert!(joiner.join().expect("no panic"), "{what}");
}

#[test]
fn a_cancelled_coroutine_lets_the_coroutines_of_its_set_unwind() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let ended = Arc::new(AtomicUsize::new(0));
    for round in 1..=3 {
        let (begun, inner) = (Arc::new(AtomicUsize::new(0)), ended.clone());
        let tell = begun.clone();
        let outer = coroutine::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                let set = LocalSet::new();
                coroutine::wait(begin(&set, &inner));
                tell.store(1, SeqCst);
                coroutine::wait(set.run_until(pending::<()>()));
            });
        eventually("it has begun", || begun.load(SeqCst) == 1);
        outer.abort();
        eventually("both have unwound", || ended.load(SeqCst) == round);
    }
    let report = runtime.shutdown(ms(1000));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_set_that_a_worker_has_forgotten_is_finished_when_the_worker_ends() {
    let runtime = runtime(1);
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let forgets =
        coroutine::Builder::new()
            .stack_size(256 << 10)
            .spawn_on(runtime.handle(), move || {
                let set = LocalSet::new();
                coroutine::wait(begin(&set, &inner));
                std::mem::forget(set);
            });
    join("a coroutine that forgets a set", forgets);
    let report = runtime.shutdown(ms(1000));
    assert!(report.is_clean(), "{report}");
    assert_eq!(ended.load(SeqCst), 1);
}

#[test]
fn a_set_that_its_own_task_owns_ends_with_its_thread() {
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let (_, thread) = on_a_thread(move || {
        let set = Rc::new(LocalSet::new());
        windlass_core::block_on(async {
            begin(&set, &inner).await;
            let (own, count) = (set.clone(), Count(inner.clone()));
            set.run_until(async move {
                drop(coroutine::spawn_local(move || {
                    let _owns = (own, count);
                    coroutine::wait(pending::<()>());
                }));
                yield_now().await;
            })
            .await;
        });
    });
    ends_soon("a thread whose set is owned by its own task", thread);
    assert_eq!(ended.load(SeqCst), 2);
}

#[test]
fn a_driver_finishes_all_its_coroutines_although_destructors_panic() {
    quiet();
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let (_, thread) = on_a_thread(move || {
        let driven = catch_unwind(AssertUnwindSafe(|| {
            coroutine::drive(|driver| {
                for _ in 0..10 {
                    let count = Count(inner.clone());
                    let mut waits = driver
                        .coroutine(move || {
                            let _count = count;
                            let _panics = PanicsOnDrop;
                            coroutine::yield_now();
                        })
                        .expect("a stack");
                    let _ = waits.resume();
                    std::mem::forget(waits);
                    let fresh = PanicsOnDrop;
                    let fresh = driver.coroutine(move || drop(fresh)).expect("a stack");
                    std::mem::forget(fresh);
                    let mut bomb = driver
                        .coroutine(|| {
                            if catch_unwind(coroutine::yield_now).is_err() {
                                std::panic::panic_any(PanicsOnDrop);
                            }
                        })
                        .expect("a stack");
                    let _ = bomb.resume();
                    std::mem::forget(bomb);
                }
            });
        }));
        // The payload is one of these, too.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(driven)));
    });
    ends_soon("a thread whose coroutines panic when they end", thread);
    assert_eq!(ended.load(SeqCst), 10);
}

#[test]
fn a_coroutine_that_is_dropped_inside_of_another_runtime_is_finished_outside() {
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let (finished, thread) = on_a_thread(move || {
        coroutine::drive(|driver| {
            let count = Count(inner);
            let mut waits = driver
                .coroutine(move || {
                    let _count = count;
                    coroutine::yield_now();
                })
                .expect("a stack");
            let _ = waits.resume();
            Runtime::simulated(1).block_on(async move { waits.finish() })
        })
    });
    assert_eq!(finished, Finish::Later);
    ends_soon("a thread with a coroutine and a simulation", thread);
    assert_eq!(ended.load(SeqCst), 1);
}

/// A waker whose destructor panics.
struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        // Not here: only when it is dropped.
        std::mem::forget(self);
    }
}

impl Drop for PanickingWaker {
    fn drop(&mut self) {
        panic!("in the destructor of a waker, on purpose");
    }
}

#[test]
fn a_shutdown_ends_although_a_waker_panics_when_its_worker_ends() {
    quiet();
    let runtime = runtime(1);
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let forgets =
        coroutine::Builder::new()
            .stack_size(256 << 10)
            .spawn_on(runtime.handle(), move || {
                let set = LocalSet::new();
                coroutine::wait(begin(&set, &inner));
                let waker = Waker::from(Arc::new(PanickingWaker));
                let mut waits = pin!(set.run_until(pending::<()>()));
                let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
                std::mem::forget(waker);
                std::mem::forget(set);
            });
    join("a coroutine that forgets a set", forgets);
    let (_, _) = on_a_thread(move || runtime.shutdown(ms(1000)));
    assert_eq!(ended.load(SeqCst), 1);
}

#[test]
fn dropping_a_set_waits_for_the_children_of_a_scope_in_it() {
    for inside in [true, false] {
        drop_a_set_with_a_scope(inside);
    }
}

/// `inside`: the code of the scope itself waits when the set is dropped; otherwise the scope does.
fn drop_a_set_with_a_scope(inside: bool) {
    let runtime = runtime(2);
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = ended.clone();
    let handle = runtime.handle().clone();
    let (seen, thread) = on_a_thread(move || {
        let _entered = handle.enter();
        let set = LocalSet::new();
        let (child, counted) = (Count(inner.clone()), inner.clone());
        windlass_core::block_on(set.run_until(async move {
            drop(coroutine::spawn_local(move || {
                coroutine::scope(|scope| {
                    scope.spawn(move || {
                        let _slow = (child, SlowDrop);
                        coroutine::wait(pending::<()>());
                    });
                    if inside {
                        coroutine::wait(pending::<()>());
                    }
                });
            }));
            time::sleep(ms(20)).await;
        }));
        drop(set);
        counted.load(SeqCst)
    });
    assert_eq!(seen, 1, "the child has unwound before the drop returns");
    ends_soon("a thread whose set had a scope", thread);
}

/// Takes its time.
struct SlowDrop;

impl Drop for SlowDrop {
    fn drop(&mut self) {
        thread::sleep(ms(50));
    }
}

#[test]
fn local_coroutines_run_on_an_io_dispatcher() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let runs = coroutine::Builder::new()
        .stack_size(256 << 10)
        .spawn_at(&Dispatcher::io(), || {
            let set = LocalSet::new();
            coroutine::wait(set.run_until(async {
                let local = coroutine::spawn_local(|| {
                    coroutine::yield_now();
                    7
                });
                local.await.expect("no panic")
            }))
        });
    assert_eq!(join("a local set on an io thread", runs), 7);
}
