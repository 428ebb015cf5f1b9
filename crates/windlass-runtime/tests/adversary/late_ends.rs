//! Ends that somebody waits for: threads whose thread-locals take long, sections that children
//! borrow from, guards that were moved to another stack.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use windlass_runtime::coroutine::{self, CoroutineState, Finish};
use windlass_runtime::task::{LocalSet, yield_now};
use windlass_runtime::{Handle, time};

use crate::support::{eventually, join, ms, on_a_thread, quiet, runtime};

/// Calls its closure when its thread ends.
struct AtThreadEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

thread_local! {
    static AT_THREAD_END: RefCell<Option<AtThreadEnd>> = const { RefCell::new(None) };
}

fn at_thread_end(f: impl FnOnce() + 'static) {
    AT_THREAD_END.set(Some(AtThreadEnd(Some(Box::new(f)))));
}

/// Drives a coroutine that waits inside of a section that nothing unwinds out of, and leaves it
/// there.
fn leak_a_foreign_section() {
    coroutine::drive(|driver| {
        let mut waits = driver
            .coroutine(|| coroutine::foreign(|| coroutine::wait(pending::<()>())))
            .expect("a stack");
        assert_eq!(waits.resume(), CoroutineState::Suspended);
        assert_eq!(waits.finish(), Finish::Leaked);
    });
}

#[test]
fn a_worker_whose_thread_local_never_ends_does_not_hold_up_a_shutdown() {
    let runtime = runtime(1);
    let task = runtime.spawn(async { at_thread_end(leak_a_foreign_section) });
    join("a task that leaves a thread-local", task);
    let began = Instant::now();
    let report = runtime.shutdown(ms(200));
    assert!(began.elapsed() < ms(5000), "{report}");
    assert_eq!(report.stuck_threads.len(), 1, "{report}");
    assert!(report.to_string().contains("thread-local"), "{report}");
}

#[test]
fn a_worker_whose_thread_local_ends_in_time_is_waited_for() {
    let runtime = runtime(1);
    let ended = Arc::new(AtomicBool::new(false));
    let own = ended.clone();
    let task = runtime.spawn(async move {
        at_thread_end(move || {
            std::thread::sleep(ms(150));
            own.store(true, SeqCst);
        });
    });
    join("a task that leaves a thread-local", task);
    let report = runtime.shutdown(ms(10_000));
    assert!(report.is_clean(), "{report}");
    assert!(ended.load(SeqCst), "the thread has ended");
}

#[test]
fn a_stall_hook_that_never_returns_does_not_hold_up_a_shutdown() {
    let called = Arc::new(AtomicBool::new(false));
    let tell = called.clone();
    let runtime = windlass_runtime::Runtime::builder()
        .workers(1)
        .stall_threshold(Some(ms(10)))
        .on_stall(move |_| {
            tell.store(true, SeqCst);
            loop {
                std::thread::park();
            }
        })
        .build()
        .expect("a runtime");
    let seen = called.clone();
    let stalls = runtime.spawn(async move {
        eventually("the hook is called", || seen.load(SeqCst));
    });
    join("a task that stalls", stalls);
    let report = runtime.shutdown(ms(200));
    assert_eq!(report.stuck_threads.len(), 1, "{report}");
}

/// Borrows from its scope and runs until it is cancelled.
fn spins(begun: &AtomicUsize) {
    begun.fetch_add(1, SeqCst);
    loop {
        coroutine::yield_now();
    }
}

#[test]
fn a_coroutine_driven_by_hand_waits_for_the_children_of_its_scope_when_it_is_dropped() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let (ended, thread) = on_a_thread(move || {
        let _entered = handle.enter();
        coroutine::drive(|driver| {
            let mut scoped = driver
                .coroutine(|| {
                    let begun = AtomicUsize::new(0);
                    coroutine::scope(|s| {
                        s.spawn(|| spins(&begun));
                        s.spawn(|| spins(&begun));
                        while begun.load(SeqCst) < 2 {
                            coroutine::yield_now();
                        }
                        coroutine::wait(pending::<()>());
                    });
                })
                .expect("a stack");
            for _ in 0..1000 {
                assert_eq!(scoped.resume(), CoroutineState::Suspended);
                std::thread::yield_now();
            }
            scoped.finish()
        })
    });
    assert_eq!(ended, Finish::Ended);
    thread.join().expect("it ends");
    let report = runtime.shutdown(ms(2000));
    assert!(report.is_clean(), "{report}");
}

/// Says when it is dropped.
struct SetOnDrop(Rc<Cell<bool>>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// The child is pinned to the only worker, on which the drop waits for it.
#[test]
fn a_set_that_is_dropped_on_the_worker_of_its_scopes_children_ends() {
    let runtime = runtime(1);
    let outer = coroutine::Builder::new()
        .stack_size(256 << 10)
        .spawn_on(runtime.handle(), || {
            let begun = Arc::new(AtomicUsize::new(0));
            let has_ended = Rc::new(Cell::new(false));
            let set = LocalSet::new();
            let (seen, ends) = (begun.clone(), SetOnDrop(has_ended.clone()));
            coroutine::wait(set.run_until(async {
                drop(coroutine::spawn_local(move || {
                    let _ends = ends;
                    coroutine::scope(|s| {
                        s.spawn(|| spins(&begun));
                    });
                }));
                while seen.load(SeqCst) == 0 {
                    yield_now().await;
                }
            }));
            drop(set);
            assert!(has_ended.get(), "a coroutine that drops a set waits for it");
        });
    join("a coroutine that drops such a set", outer);
    let report = runtime.shutdown(ms(2000));
    assert!(report.is_clean(), "{report}");
}

/// Runs a local coroutine on `set` whose scope has a child on the worker, until the child has
/// begun.
async fn begin_a_scope(set: &LocalSet) {
    let begun = Arc::new(AtomicUsize::new(0));
    let seen = begun.clone();
    set.run_until(async {
        drop(coroutine::spawn_local(move || {
            coroutine::scope(|s| {
                s.spawn(|| spins(&begun));
            });
        }));
        while seen.load(SeqCst) == 0 {
            yield_now().await;
        }
    })
    .await;
}

#[test]
fn a_set_that_is_dropped_by_a_panic_on_the_worker_of_its_scopes_children_ends() {
    quiet();
    let runtime = runtime(1);
    let panics = coroutine::Builder::new()
        .stack_size(256 << 10)
        .spawn_on(runtime.handle(), || {
            let set = LocalSet::new();
            coroutine::wait(begin_a_scope(&set));
            panic!("with a set, on purpose");
        });
    let ended = windlass_core::block_on(panics);
    assert!(ended.is_err_and(|error| error.is_panic()));
    // The worker still runs others.
    join("a task after that", runtime.spawn(async {}));
    let report = runtime.shutdown(ms(5000));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_set_that_a_local_future_drops_on_the_worker_of_its_scopes_children_ends() {
    let runtime = runtime(1);
    let outer = coroutine::Builder::new()
        .stack_size(256 << 10)
        .spawn_on(runtime.handle(), || {
            let outer = LocalSet::new();
            let drops = outer.spawn_local(async {
                let set = LocalSet::new();
                begin_a_scope(&set).await;
                drop(set);
            });
            coroutine::wait(outer.run_until(drops)).expect("no panic");
            let waits = outer.spawn_local(async {
                let set = LocalSet::new();
                begin_a_scope(&set).await;
                pending::<()>().await;
            });
            let kept = coroutine::wait(outer.run_until(time::timeout(ms(50), waits)));
            assert!(kept.is_err(), "it waits");
        });
    join("a coroutine whose local future drops a set", outer);
    let report = runtime.shutdown(ms(5000));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_set_waits_for_a_thousand_children_that_end_one_after_the_other() {
    const COROUTINES: u64 = 1100;
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let (_, thread) = on_a_thread(move || {
        let _entered = handle.enter();
        let set = LocalSet::new();
        windlass_core::block_on(set.run_until(async {
            let begun = Arc::new(AtomicUsize::new(0));
            let all_begun = Arc::new(AtomicBool::new(false));
            for number in 0..COROUTINES {
                let (count, begun, all_begun) = (count.clone(), begun.clone(), all_begun.clone());
                drop(coroutine::spawn_local(move || {
                    coroutine::scope(|s| {
                        s.spawn(|| {
                            coroutine::foreign(|| {
                                begun.fetch_add(1, SeqCst);
                                while !all_begun.load(SeqCst) {
                                    coroutine::wait(time::sleep(ms(10)));
                                }
                                coroutine::wait(time::sleep(ms(number)));
                            });
                            count.fetch_add(1, SeqCst);
                        });
                    });
                }));
            }
            while begun.load(SeqCst) < COROUTINES as usize {
                time::sleep(ms(1)).await;
            }
            all_begun.store(true, SeqCst);
        }));
        drop(set);
    });
    assert_eq!(ended.load(SeqCst), COROUTINES as usize);
    thread.join().expect("it ends");
    let report = runtime.shutdown(ms(2000));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_driver_on_the_worker_of_its_scopes_children_ends() {
    let runtime = runtime(1);
    let outer = coroutine::Builder::new()
        .stack_size(256 << 10)
        .spawn_on(runtime.handle(), || {
            coroutine::drive(|driver| {
                let begun = Arc::new(AtomicUsize::new(0));
                let seen = begun.clone();
                let mut scoped = driver
                    .coroutine(move || {
                        coroutine::scope(|s| {
                            s.spawn(|| spins(&begun));
                        });
                    })
                    .expect("a stack");
                assert_eq!(scoped.resume(), CoroutineState::Suspended);
                while seen.load(SeqCst) == 0 {
                    coroutine::yield_now();
                }
                scoped.finish()
            })
        });
    let finish = join("a coroutine that drives another", outer);
    assert_eq!(finish, Finish::Ended);
    let report = runtime.shutdown(ms(2000));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_suspended_section_on_a_stuck_worker_is_named() {
    let runtime = runtime(1);
    let suspended = coroutine::Builder::new()
        .name("inside_of_c")
        .spawn_on(runtime.handle(), || {
            coroutine::foreign(|| coroutine::wait(pending::<()>()))
        });
    let release = Arc::new(AtomicBool::new(false));
    let released = release.clone();
    let spins = runtime.spawn(async move {
        time::sleep(ms(50)).await;
        while !released.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    std::thread::sleep(ms(100));
    let began = Instant::now();
    let report = runtime.shutdown(ms(300));
    let took = began.elapsed();
    release.store(true, SeqCst);
    assert!(took < ms(3000), "{took:?}");
    assert_eq!(report.stuck_workers.len(), 1, "{report}");
    assert!(report.to_string().contains("inside_of_c"), "{report}");
    drop((suspended, spins));
}

/// The name of the runtime on which a task is spawned here.
fn spawns_on() -> String {
    let task = Handle::current().spawn(async {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        name.split('-').next().unwrap_or_default().to_owned()
    });
    join("a task that looks where it is", task)
}

#[test]
fn a_guard_that_is_dropped_on_another_stack_leaves_its_own_runtime_only() {
    let [first, second, third] = ["first", "second", "third"].map(|name| {
        windlass_runtime::Runtime::builder()
            .workers(1)
            .name(name)
            .build()
            .expect("a runtime")
    });
    let entered = first.enter();
    coroutine::drive(|driver| {
        let inner = second.handle().clone();
        let own = third.handle().clone();
        let mut holds = driver
            .coroutine(move || {
                let own_guard = own.enter();
                coroutine::yield_now();
                // The thread entered this one, and it lies below what this stack has entered.
                drop(entered);
                assert_eq!(spawns_on(), "third");
                coroutine::yield_now();
                own_guard
            })
            .expect("a stack");
        assert!(matches!(holds.resume(), CoroutineState::Suspended));
        assert_eq!(spawns_on(), "first");
        let _second = inner.enter();
        assert!(matches!(holds.resume(), CoroutineState::Suspended));
        assert_eq!(spawns_on(), "second");
    });
    assert!(Handle::try_current().is_err());
}
