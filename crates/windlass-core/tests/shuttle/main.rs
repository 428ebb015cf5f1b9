//! The whole scheduler under randomised schedules: `cargo xtask shuttle`.
//!
//! shuttle is sequentially consistent: it finds lost wake-ups, deadlocks and lost tasks, but no
//! weak ordering (the loom models do). A failure prints the schedule that reproduces it.
#![cfg(windlass_shuttle)]
#![allow(clippy::disallowed_types, reason = "tests count with plain atomics")]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use windlass_core::context;
use windlass_core::sched::pool::{Config, Hooks, Pool, Spin};
use windlass_core::sync::{Mutex, thread};
use windlass_core::task::{
    Body, Class, Ending, FutureBody, JoinHandle, Options, SpawnRequest, Unwound, shield, yield_now,
};

fn check(schedules: usize, f: impl Fn() + Send + Sync + 'static) {
    let f = Arc::new(f);
    let random = f.clone();
    shuttle::check_random(move || random(), schedules);
    shuttle::check_pct(move || f(), schedules, 3);
}

/// For programs with an endless task: a priority schedule would let it run for ever.
fn check_fair(schedules: usize, f: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(f, schedules);
}

fn start(workers: usize) -> Arc<Pool> {
    let config = Config {
        workers,
        max_workers: workers,
        spin: Spin {
            tight: 1,
            yields: 2,
        },
        ..Config::default()
    };
    Pool::start(config, Hooks::default(), None).expect("shuttle starts threads")
}

fn spawn<F>(pool: &Pool, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    pool.spawn(SpawnRequest::new(FutureBody(future), Options::here()))
}

/// Waits until at most `awake` workers are awake: the states worth starting a race from.
fn settle(pool: &Pool, awake: usize) {
    while pool.snapshot().unparked > awake {
        thread::yield_now();
    }
}

/// A one-shot signal.
#[derive(Default)]
struct Signal(Mutex<(bool, Option<Waker>)>);

impl Signal {
    fn set(&self) {
        let mut inner = self.0.lock();
        inner.0 = true;
        let waker = inner.1.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            let mut inner = self.0.lock();
            if inner.0 {
                return Poll::Ready(());
            }
            inner.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn shuttle_every_task_and_its_children_complete() {
    check(3_000, || {
        let pool = start(2);
        let inner = pool.clone();
        let parent = spawn(&pool, async move {
            let children: Vec<_> = (0..10)
                .map(|number| {
                    spawn(&inner, async move {
                        yield_now().await;
                        number
                    })
                })
                .collect();
            let mut sum = 0;
            for child in children {
                sum += child.await.expect("it does not fail");
            }
            sum
        });
        let outside: Vec<_> = (0..3)
            .map(|number| spawn(&pool, async move { number }))
            .collect();
        assert_eq!(
            windlass_core::block_on(parent).expect("it does not fail"),
            45
        );
        for (number, task) in outside.into_iter().enumerate() {
            assert_eq!(
                windlass_core::block_on(task).expect("it does not fail"),
                number
            );
        }
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_wakes_from_outside_reach_sleeping_workers() {
    check(5_000, || {
        let pool = start(2);
        let signals: Vec<Arc<Signal>> = (0..3).map(|_| Arc::default()).collect();
        let tasks: Vec<_> = signals
            .iter()
            .map(|signal| {
                let signal = signal.clone();
                spawn(&pool, async move { signal.wait().await })
            })
            .collect();
        settle(&pool, 1);
        let wakers: Vec<_> = signals
            .into_iter()
            .map(|signal| thread::spawn("waker".into(), 0, move || signal.set()).expect("thread"))
            .collect();
        for task in tasks {
            windlass_core::block_on(task).expect("it was woken");
        }
        for waker in wakers {
            waker.join().expect("no panic");
        }
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_spawns_from_outside_reach_sleeping_workers() {
    check(3_000, || {
        let pool = start(2);
        for awake in [0, 1] {
            settle(&pool, awake);
            let tasks: Vec<_> = (0..2).map(|_| spawn(&pool, async {})).collect();
            for task in tasks {
                windlass_core::block_on(task).expect("it does not fail");
            }
        }
        settle(&pool, 0);
        assert_eq!(pool.snapshot().searching, 0);
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_shutdown_drops_every_future_once() {
    check_fair(10_000, || {
        let pool = start(2);
        let dropped = Arc::new(AtomicUsize::new(0));
        let signal = Arc::new(Signal::default());
        let mut tasks = Vec::new();
        for kind in 0..4 {
            let (guard, signal) = (Guard(dropped.clone()), signal.clone());
            tasks.push(spawn(&pool, async move {
                let _guard = guard;
                match kind {
                    0 => std::future::pending::<()>().await,
                    1 => signal.wait().await,
                    2 => loop {
                        yield_now().await;
                    },
                    _ => shield(async { yield_now().await }).await,
                }
            }));
        }
        // A foreign wake at the very moment of the shutdown.
        let waker = {
            let signal = signal.clone();
            thread::spawn("waker".into(), 0, move || signal.set()).expect("thread")
        };
        let report = pool.shutdown(None);
        assert!(report.stuck.is_empty() && report.leaked_tasks == 0);
        waker.join().expect("no panic");
        assert_eq!(dropped.load(Ordering::Relaxed), 4);
        for task in tasks {
            // Resolved, one way or the other.
            let _ = windlass_core::block_on(task);
        }
    });
}

#[test]
fn shuttle_a_spawn_during_shutdown_is_run_or_refused() {
    check(5_000, || {
        let pool = start(1);
        let dropped = Arc::new(AtomicUsize::new(0));
        let (other, guard) = (pool.clone(), Guard(dropped.clone()));
        let spawner = thread::spawn("spawner".into(), 0, move || {
            let task = spawn(&other, async move {
                let _guard = guard;
                yield_now().await;
            });
            let _ = windlass_core::block_on(task);
        })
        .expect("thread");
        assert!(pool.shutdown(None).stuck.is_empty());
        spawner.join().expect("the handle resolves");
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn shuttle_abort_races_with_everything() {
    check(5_000, || {
        let pool = start(2);
        let dropped = Arc::new(AtomicUsize::new(0));
        let signal = Arc::new(Signal::default());
        let (guard, waited) = (Guard(dropped.clone()), signal.clone());
        let task = spawn(&pool, async move {
            let _guard = guard;
            yield_now().await;
            shield(async { yield_now().await }).await;
            waited.wait().await;
        });
        let abort = task.abort_handle();
        let aborter = thread::spawn("aborter".into(), 0, move || abort.abort()).expect("thread");
        signal.set();
        match windlass_core::block_on(task) {
            Ok(()) => {}
            Err(error) => assert!(error.is_cancelled()),
        }
        assert_eq!(
            dropped.load(Ordering::Relaxed),
            1,
            "dropped before the handle resolved"
        );
        aborter.join().expect("no panic");
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_two_pools_wake_each_other() {
    check(3_000, || {
        let (left, right) = (start(1), start(1));
        let (there, back): (Arc<Signal>, Arc<Signal>) = Default::default();
        let (a, b) = (there.clone(), back.clone());
        let first = spawn(&left, async move {
            a.set();
            b.wait().await;
        });
        let second = spawn(&right, async move {
            there.wait().await;
            back.set();
        });
        windlass_core::block_on(first).expect("woken");
        windlass_core::block_on(second).expect("woken");
        assert!(left.shutdown(None).stuck.is_empty());
        assert!(right.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_classes_all_run() {
    check(2_000, || {
        let pool = start(2);
        let classes = [Class::Normal, Class::High, Class::Low, Class::Background];
        let tasks: Vec<_> = classes
            .into_iter()
            .map(|class| {
                let options = Options {
                    class,
                    ..Options::here()
                };
                pool.spawn(SpawnRequest::new(
                    FutureBody(async { yield_now().await }),
                    options,
                ))
            })
            .collect();
        for task in tasks {
            windlass_core::block_on(task).expect("it does not fail");
        }
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

/// What a coroutine is to the scheduler: once begun it stays on its worker, and a cancellation it
/// sees itself, when it is resumed. A switch of stacks would add nothing here.
struct Rooted<F> {
    future: F,
    begun_on: Option<thread::ThreadId>,
    unwound: Arc<AtomicUsize>,
}

impl<F: Future + Unpin> Body for Rooted<F> {
    type Output = F::Output;

    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let here = thread::current().id();
        match self.begun_on {
            None => {
                self.begun_on = Some(here);
                assert_eq!(context::pin(), context::Confinement::Pinned, "on a worker");
            }
            Some(there) => assert_eq!(there, here, "it stays where it began"),
        }
        let task = context::current_task().expect("in a turn");
        if task.header().state().cancel_applies() {
            self.unwound.fetch_add(1, Ordering::Relaxed);
            context::unpin();
            std::panic::resume_unwind(Box::new(Unwound));
        }
        let polled = Pin::new(&mut self.future).poll(cx);
        if polled.is_ready() {
            context::unpin();
        }
        polled
    }

    fn ending(&self) -> Ending {
        match self.begun_on {
            None => Ending::Drop,
            Some(_) => Ending::Unwind,
        }
    }
}

#[test]
fn shuttle_pinned_tasks_go_on_where_they_began_whoever_wakes_them() {
    check(3_000, || {
        let pool = start(2);
        let signals: Vec<Arc<Signal>> = (0..3).map(|_| Arc::default()).collect();
        let tasks: Vec<_> = signals
            .iter()
            .cloned()
            .map(|signal| {
                let future = Box::pin(async move {
                    yield_now().await;
                    signal.wait().await;
                });
                let body = Rooted {
                    future,
                    begun_on: None,
                    unwound: Arc::default(),
                };
                pool.spawn(SpawnRequest::new(body, Options::here()))
            })
            .collect();
        // One from outside, one from a task of either worker.
        signals[0].set();
        let (second, third) = (signals[1].clone(), signals[2].clone());
        let waker = spawn(&pool, async move {
            second.set();
            yield_now().await;
            third.set();
        });
        for task in tasks {
            windlass_core::block_on(task).expect("it does not fail");
        }
        windlass_core::block_on(waker).expect("it does not fail");
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_a_cancelled_pinned_task_unwinds_once_on_its_worker() {
    check(3_000, || {
        let pool = start(2);
        let (signal, unwound) = (Arc::new(Signal::default()), Arc::new(AtomicUsize::new(0)));
        let waited = signal.clone();
        let body = Rooted {
            future: Box::pin(async move {
                yield_now().await;
                waited.wait().await;
            }),
            begun_on: None,
            unwound: unwound.clone(),
        };
        let task = pool.spawn(SpawnRequest::new(body, Options::here()));
        let abort = task.abort_handle();
        let aborter = thread::spawn("aborter".into(), 0, move || abort.abort()).expect("thread");
        signal.set();
        let result = windlass_core::block_on(task);
        aborter.join().expect("no panic");
        assert!(pool.shutdown(None).stuck.is_empty());
        let unwound = unwound.load(Ordering::Relaxed);
        match result {
            Ok(()) => assert_eq!(unwound, 0),
            // It unwound, or it was dropped before it began.
            Err(error) => assert!(error.is_cancelled() && unwound <= 1),
        }
    });
}

#[test]
fn shuttle_a_shutdown_unwinds_pinned_tasks() {
    check(3_000, || {
        let pool = start(2);
        let (begun, unwound) = (Arc::new(Signal::default()), Arc::new(AtomicUsize::new(0)));
        let told = begun.clone();
        let body = Rooted {
            future: Box::pin(async move {
                told.set();
                std::future::pending::<()>().await;
            }),
            begun_on: None,
            unwound: unwound.clone(),
        };
        let task = pool.spawn(SpawnRequest::new(body, Options::here()));
        windlass_core::block_on(begun.wait());
        assert!(pool.shutdown(None).stuck.is_empty());
        assert!(
            windlass_core::block_on(task)
                .expect_err("ended")
                .is_cancelled()
        );
        assert_eq!(unwound.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn shuttle_workers_that_leave_and_come_lose_no_task() {
    check(2_000, || {
        let pool = start(2);
        let signals: Vec<Arc<Signal>> = (0..4).map(|_| Arc::default()).collect();
        let tasks: Vec<_> = signals
            .iter()
            .cloned()
            .map(|signal| {
                spawn(&pool, async move {
                    yield_now().await;
                    signal.wait().await;
                })
            })
            .collect();
        pool.resize(1).expect("fewer");
        signals.iter().for_each(|signal| signal.set());
        let late = spawn(&pool, async { yield_now().await });
        pool.resize(2).expect("as many as before");
        for task in tasks.into_iter().chain([late]) {
            windlass_core::block_on(task).expect("it does not fail");
        }
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}

#[test]
fn shuttle_a_worker_that_blocks_is_replaced() {
    check(2_000, || {
        let pool = start(1);
        let signal = Arc::new(Signal::default());
        let waited = signal.clone();
        // The only worker waits for what only another can do.
        let blocked = spawn(&pool, async move {
            windlass_core::context::outside_task(|| {
                windlass_core::block_thread(std::pin::pin!(waited.wait()));
            });
        });
        let other = spawn(&pool, async move { signal.set() });
        windlass_core::block_on(blocked).expect("it does not fail");
        windlass_core::block_on(other).expect("it does not fail");
        assert!(pool.shutdown(None).stuck.is_empty());
    });
}
/// A tree of forks with a job in each frame, by hand: what `fork_join::join` does.
fn fork_tree(depth: u32) -> usize {
    use windlass_core::queue::{JobRef, Taker};
    use windlass_core::sched::fork::{self, Latch};

    struct Half {
        latch: Latch,
        depth: u32,
        result: AtomicUsize,
    }
    unsafe fn stolen(half: *const (), _: Taker) {
        let half = half.cast::<Half>();
        fork::here(|here| {
            let here = here.expect("jobs run on workers");
            // SAFETY: the frame waits for the latch, which is set last.
            unsafe {
                (*half).latch.stolen_by(here.index());
                let result = fork_tree((*half).depth);
                (*half).result.store(result, Ordering::Relaxed);
                here.set(&raw const (*half).latch);
            }
        });
    }
    if depth == 0 {
        return 1;
    }
    fork::here(|here| {
        let here = here.expect("it runs on a worker");
        let half = Half {
            latch: here.latch(),
            depth: depth - 1,
            result: AtomicUsize::new(0),
        };
        // SAFETY: it is taken back or waited for below.
        unsafe { here.fork(JobRef::new((&raw const half).cast(), stolen)) };
        let one = fork_tree(depth - 1);
        if here.take().is_some() {
            return one + fork_tree(depth - 1);
        }
        let latch = &half.latch;
        here.wait(latch, || {
            here.steal_from(latch.thief()?, || !latch.is_set())
        });
        one + half.result.load(Ordering::Relaxed)
    })
}

#[test]
fn shuttle_every_half_of_a_fork_join_is_run_once() {
    for workers in [2, 3] {
        check(1_000, move || {
            let pool = start(workers);
            let trees: Vec<_> = (0..2)
                .map(|_| spawn(&pool, async { fork_tree(3) }))
                .collect();
            for tree in trees {
                let leaves = windlass_core::block_on(tree).expect("it does not fail");
                assert_eq!(leaves, 8);
            }
            assert!(pool.shutdown(None).stuck.is_empty());
        });
    }
}
