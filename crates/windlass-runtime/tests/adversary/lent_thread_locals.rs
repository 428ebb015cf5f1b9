//! Coroutines that lend a thread-local to other threads and do not end.
//!
//! The frames of a suspended coroutine may hold a reference that `LocalKey::with` gave out, and
//! may have lent it to others. So a thread-local is destroyed only after the frames on its thread
//! have unwound; a thread on which some never do stays.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use windlass_runtime::task::{LocalSet, yield_now};
use windlass_runtime::{Runtime, coroutine};

use crate::support::{eventually, on_a_thread, quiet, runtime};

/// A thread-local that notes when it is destroyed.
struct FrameLocal(RefCell<Option<Destroyed>>);

struct Destroyed(Arc<AtomicBool>);

impl Drop for Destroyed {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

thread_local! {
    static LENT: FrameLocal = const { FrameLocal(RefCell::new(None)) };
}

/// Whether the thread-local was destroyed, and whether its borrower was still using it.
#[derive(Clone, Default)]
struct Uses {
    destroyed: Arc<AtomicBool>,
    borrowed: Arc<AtomicBool>,
    release: Arc<AtomicBool>,
    freed_in_use: Arc<AtomicBool>,
}

impl Uses {
    /// Lends a thread-local of this thread to another thread, and calls `wait` meanwhile. The
    /// borrower returns once `release` is set.
    fn lend(&self, wait: impl FnOnce()) {
        LENT.with(|lent| {
            *lent.0.borrow_mut() = Some(Destroyed(self.destroyed.clone()));
            let value = lent.0.borrow();
            let value = value.as_ref().expect("just set");
            thread::scope(|scope| {
                scope.spawn(|| {
                    self.borrowed.store(true, SeqCst);
                    while !self.release.load(SeqCst) {
                        if value.0.load(SeqCst) {
                            self.freed_in_use.store(true, SeqCst);
                            return;
                        }
                        thread::sleep(Duration::from_millis(1));
                    }
                });
                let _release = ReleaseOnDrop(self.release.clone());
                while !self.borrowed.load(SeqCst) {
                    thread::yield_now();
                }
                wait();
            });
        });
    }

    /// Gives a thread that is about to end the time to destroy its thread-locals.
    fn was_freed_in_use(&self) -> bool {
        eventually("the value is lent", || self.borrowed.load(SeqCst));
        thread::sleep(Duration::from_millis(100));
        self.freed_in_use.load(SeqCst)
    }
}

struct ReleaseOnDrop(Arc<AtomicBool>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// As `on_a_thread`, for what may panic.
fn fails_on_a_thread(f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let caught = move || std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
    let (has_failed, thread) = on_a_thread(caught);
    assert!(has_failed);
    thread
}

#[test]
fn a_coroutine_by_hand_that_is_dropped_gives_back_what_it_lent() {
    let uses = Uses::default();
    let inner = uses.clone();
    on_a_thread(move || {
        coroutine::drive(|driver| {
            let mut lends = driver
                .coroutine(move || inner.lend(coroutine::yield_now))
                .unwrap();
            let _ = lends.resume();
        });
    })
    .1
    .join()
    .expect("the thread ends");
    assert!(uses.destroyed.load(SeqCst));
    assert!(!uses.was_freed_in_use());
}

#[test]
fn a_coroutine_by_hand_that_is_forgotten_gives_back_what_it_lent() {
    let uses = Uses::default();
    let inner = uses.clone();
    on_a_thread(move || {
        coroutine::drive(|driver| {
            let mut lends = driver
                .coroutine(move || inner.lend(coroutine::yield_now))
                .unwrap();
            let _ = lends.resume();
            std::mem::forget(lends);
        });
    })
    .1
    .join()
    .expect("the thread ends");
    assert!(!uses.was_freed_in_use());
}

#[test]
fn a_coroutine_by_hand_is_unwound_when_its_driver_panics() {
    quiet();
    let uses = Uses::default();
    let inner = uses.clone();
    fails_on_a_thread(move || {
        coroutine::drive(|driver| {
            let mut lends = driver
                .coroutine(move || inner.lend(coroutine::yield_now))
                .unwrap();
            let _ = lends.resume();
            panic!("the driver's own code fails");
        });
    })
    .join()
    .expect("the thread ends");
    assert!(!uses.was_freed_in_use());
}

#[test]
fn a_thread_stays_whose_coroutine_cannot_unwind() {
    quiet();
    let uses = Uses::default();
    let inner = uses.clone();
    on_a_thread(move || {
        coroutine::drive(|driver| {
            let mut lends = driver
                .coroutine(move || inner.lend(|| coroutine::foreign(coroutine::yield_now)))
                .unwrap();
            let _ = lends.resume();
        });
    });
    assert!(!uses.was_freed_in_use());
    assert!(!uses.destroyed.load(SeqCst), "the thread is still there");
    uses.release.store(true, SeqCst);
}

#[test]
fn a_dropped_local_set_gives_back_what_its_coroutine_lent() {
    let uses = Uses::default();
    let inner = uses.clone();
    on_a_thread(move || {
        let set = LocalSet::new();
        begin_locally(&set, inner);
        drop(set);
    })
    .1
    .join()
    .expect("the thread ends");
    assert!(!uses.was_freed_in_use());
}

#[test]
fn a_local_set_that_is_forgotten_or_kept_gives_back_what_its_coroutine_lent() {
    thread_local! {
        static KEPT: RefCell<Option<LocalSet>> = const { RefCell::new(None) };
    }
    for forgotten in [true, false] {
        let uses = Uses::default();
        let inner = uses.clone();
        on_a_thread(move || {
            // Registered first, so destroyed last.
            KEPT.with(|kept| drop(kept.borrow_mut().take()));
            let set = LocalSet::new();
            begin_locally(&set, inner);
            match forgotten {
                true => std::mem::forget(set),
                false => KEPT.with(|kept| *kept.borrow_mut() = Some(set)),
            }
        })
        .1
        .join()
        .expect("the thread ends");
        assert!(uses.destroyed.load(SeqCst));
        assert!(!uses.was_freed_in_use());
    }
}

#[test]
fn a_local_set_that_is_dropped_by_a_panic_gives_back_what_its_coroutine_lent() {
    quiet();
    let uses = Uses::default();
    let inner = uses.clone();
    fails_on_a_thread(move || {
        let set = LocalSet::new();
        begin_locally(&set, inner);
        panic!("a test that fails, for one");
    })
    .join()
    .expect("the thread ends");
    assert!(!uses.was_freed_in_use());
}

/// Begins a coroutine on `set` that waits for ever with a thread-local lent.
fn begin_locally(set: &LocalSet, uses: Uses) {
    windlass_core::block_on(set.run_until(async move {
        drop(coroutine::spawn_local(move || {
            uses.lend(|| coroutine::wait(std::future::pending::<()>()));
        }));
        for _ in 0..3 {
            yield_now().await;
        }
    }));
}

#[test]
fn a_worker_stays_whose_coroutine_is_leaked_and_the_shutdown_does_not_wait() {
    quiet();
    let uses = Uses::default();
    let runtime = runtime(2);
    let inner = uses.clone();
    let _entered = runtime.enter();
    coroutine::spawn(move || {
        inner.lend(|| coroutine::foreign(|| coroutine::wait(std::future::pending::<()>())));
    })
    .detach();
    eventually("the value is lent", || uses.borrowed.load(SeqCst));
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(report.leaked_coroutines.len(), 1, "{report}");
    assert!(
        report.stuck_threads.is_empty(),
        "it is not waited for: {report}"
    );
    assert!(!uses.was_freed_in_use());
    assert!(
        !uses.destroyed.load(SeqCst),
        "the worker's thread is still there"
    );
    uses.release.store(true, SeqCst);
}

/// A simulated runtime with a coroutine that waits for ever with a thread-local lent.
fn begin_simulated(uses: Uses) -> Runtime {
    let runtime = Runtime::simulated(1);
    let handle = runtime.handle().clone();
    runtime.block_on(async move {
        coroutine::Builder::new()
            .spawn_on(&handle, move || {
                uses.lend(|| coroutine::wait(std::future::pending::<()>()));
            })
            .detach();
        for _ in 0..20 {
            yield_now().await;
        }
    });
    runtime
}

#[test]
fn a_thread_stays_whose_simulation_is_dropped_by_another() {
    quiet();
    let uses = Uses::default();
    let inner = uses.clone();
    let (runtime, _stays) = on_a_thread(move || begin_simulated(inner));
    drop(runtime);
    assert!(!uses.was_freed_in_use());
    assert!(
        !uses.destroyed.load(SeqCst),
        "the thread it began on is still there"
    );
    uses.release.store(true, SeqCst);
}

#[test]
fn a_thread_stays_that_keeps_a_simulation_to_its_end() {
    thread_local! {
        static KEPT: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    }
    let uses = Uses::default();
    let inner = uses.clone();
    on_a_thread(move || {
        // Registered first, so destroyed last.
        KEPT.with(|kept| drop(kept.borrow_mut().take()));
        let runtime = begin_simulated(inner);
        KEPT.with(|kept| *kept.borrow_mut() = Some(runtime));
    });
    assert!(!uses.was_freed_in_use());
    assert!(!uses.destroyed.load(SeqCst), "the thread is still there");
    uses.release.store(true, SeqCst);
}

#[test]
fn a_simulation_that_a_panic_drops_gives_back_what_its_coroutine_lent() {
    quiet();
    let uses = Uses::default();
    let inner = uses.clone();
    fails_on_a_thread(move || {
        let _runtime = begin_simulated(inner);
        panic!("a simulated test that fails, for one");
    })
    .join()
    .expect("the thread ends");
    assert!(!uses.was_freed_in_use());
}

/// Is on the stack of a coroutine that must not be resumed any more.
struct AbortsOnDrop;

impl Drop for AbortsOnDrop {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// A thread-local that runs a set again when it is destroyed. Thread-locals that its coroutines
/// refer to may be gone by then.
struct RunsAtTheEnd(Option<LocalSet>);

impl Drop for RunsAtTheEnd {
    fn drop(&mut self) {
        if let Some(set) = self.0.take() {
            windlass_core::block_on(set.run_until(yield_now()));
            drop(set);
        }
    }
}

/// Tells the child process of the next test how to exit.
const EXITS: &str = "WINDLASS_TEST_EXITS";

#[test]
fn a_process_exits_although_coroutines_are_suspended() {
    let name = "lent_thread_locals::a_process_exits_although_coroutines_are_suspended";
    thread_local! {
        static KEPT: RefCell<RunsAtTheEnd> = const { RefCell::new(RunsAtTheEnd(None)) };
    }
    // Each on a thread that would stay, or let its coroutines unwind, if it ended.
    match std::env::var(EXITS).as_deref() {
        Ok("leaked") => {
            coroutine::drive(|driver| {
                let lend = || Uses::default().lend(|| coroutine::foreign(coroutine::yield_now));
                let mut inside = driver.coroutine(lend).unwrap();
                let _ = inside.resume();
            });
            std::process::exit(7);
        }
        Ok("inside") => {
            let set = LocalSet::new();
            begin_locally(&set, Uses::default());
            windlass_core::block_on(set.run_until(async {
                let exits = windlass_runtime::task::spawn_local(async {
                    yield_now().await;
                    std::process::exit(7);
                });
                exits.await
            }))
            .expect("it exits");
        }
        Ok("kept") => {
            // Registered first, so destroyed after what the coroutine has lent.
            KEPT.with(|kept| drop(kept.borrow_mut().0.take()));
            let set = LocalSet::new();
            windlass_core::block_on(set.run_until(async {
                drop(coroutine::spawn_local(|| {
                    let _resumed = AbortsOnDrop;
                    coroutine::wait(std::future::pending::<()>());
                }));
                yield_now().await;
            }));
            KEPT.with(|kept| kept.borrow_mut().0 = Some(set));
            std::process::exit(7);
        }
        Ok("running") => {
            // The set itself runs when the process exits, and is destroyed after what its coroutine
            // refers to.
            thread_local! {
                static SET: LocalSet = LocalSet::new();
            }
            SET.with(|set| {
                windlass_core::block_on(set.run_until(async {
                    drop(coroutine::spawn_local(|| {
                        let _resumed = AbortsOnDrop;
                        LENT.with(|_| coroutine::wait(std::future::pending::<()>()));
                    }));
                    yield_now().await;
                    yield_now().await;
                    std::process::exit(7);
                }))
            })
        }
        Ok("simulated") => {
            thread_local! {
                static RUNTIME: Runtime = Runtime::simulated(1);
            }
            RUNTIME.with(|runtime| runtime.block_on(async { std::process::exit(7) }))
        }
        Ok("io") => {
            let runtime = runtime(1);
            let _entered = runtime.enter();
            let exits = coroutine::Builder::new().stack_size(64 << 10).spawn_at(
                &windlass_runtime::dispatch::Dispatcher::io(),
                || {
                    coroutine::drive(|driver| {
                        let mut waits = driver.coroutine(coroutine::yield_now).unwrap();
                        let _ = waits.resume();
                        std::process::exit(7);
                    })
                },
            );
            windlass_core::block_on(exits).expect("it exits")
        }
        _ => {}
    }
    let program = std::env::current_exe().expect("this program");
    for how in ["leaked", "inside", "kept", "running", "simulated", "io"] {
        let mut child = std::process::Command::new(&program)
            .args(["--exact", name])
            .env(EXITS, how)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        eventually("it exits", || matches!(child.try_wait(), Ok(Some(_))));
        assert_eq!(child.wait().expect("it has ended").code(), Some(7), "{how}");
    }
}
