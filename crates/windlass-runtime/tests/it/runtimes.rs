//! Several runtimes in one process, large ones, and what outlives them.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use windlass_core::task::JoinHandle;
use windlass_runtime::{Handle, Runtime, TryCurrentError, TrySpawnError};

use crate::support::{
    Drops, Notify, eventually, expect_panics, join, panic_message, runtime, wait,
};

#[test]
fn e8_two_runtimes_wake_each_others_tasks_a_million_times() {
    const PAIRS: usize = 500;
    const ROUNDS: usize = 1000;
    let (first, second) = (runtime(2), runtime(2));
    let player = |mine: Notify, other: Notify| async move {
        for _ in 0..ROUNDS {
            other.notify();
            mine.notified().await;
        }
        ROUNDS
    };
    let mut tasks: Vec<JoinHandle<usize>> = Vec::new();
    for _ in 0..PAIRS {
        let (ping, pong) = (Notify::default(), Notify::default());
        tasks.push(first.spawn(player(ping.clone(), pong.clone())));
        tasks.push(second.spawn(player(pong, ping)));
    }
    let wakes: usize = tasks.into_iter().map(|task| join("a player", task)).sum();
    assert_eq!(wakes, 1_000_000);
}

fn many_workers(workers: usize) {
    let runtime = runtime(workers);
    let ran = Arc::new(AtomicUsize::new(0));
    let task = |number: usize| {
        let ran = ran.clone();
        runtime.spawn(async move {
            windlass_runtime::task::yield_now().await;
            let child = windlass_runtime::spawn(async move { number });
            ran.fetch_add(1, Ordering::Relaxed);
            child.await.unwrap()
        })
    };
    let tasks: Vec<_> = (0..10_000).map(task).collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(join("a task among many workers", task), number);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 10_000);
    // One task per worker at the same time: every worker can be woken.
    let together = Arc::new(std::sync::Barrier::new(workers));
    let meet = |_| {
        let together = together.clone();
        runtime.spawn(async move {
            together.wait();
        })
    };
    let meeting: Vec<_> = (0..workers).map(meet).collect();
    for task in meeting {
        join("one task per worker, all at the same time", task);
    }
    eventually("all sleep again", || runtime.snapshot().pool.unparked == 0);
    let report = runtime.shutdown(Duration::from_secs(10));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn e8_65_workers_run_and_shut_down() {
    many_workers(65);
}

#[test]
fn e8_130_workers_run_and_shut_down() {
    many_workers(130);
}

/// A task that leaves its waker and waits for ever.
fn leave_waker(runtime: &Runtime, drops: &Drops) -> (Waker, JoinHandle<()>) {
    let place = Arc::new(Mutex::new(None));
    let (leaves, guard) = (place.clone(), drops.guard());
    let task = runtime.spawn(async move {
        let _guard = guard;
        poll_fn(|cx| {
            *leaves.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    });
    eventually("the task waits", || place.lock().unwrap().is_some());
    let waker = place.lock().unwrap().take().unwrap();
    (waker, task)
}

#[test]
fn wakers_and_handles_that_outlive_their_runtime_are_harmless() {
    let ended = runtime(2);
    let drops = Drops::default();
    let (waker, task) = leave_waker(&ended, &drops);
    let (handle, abort) = (ended.handle().clone(), task.abort_handle());
    drop(ended);
    assert_eq!(drops.count(), 1);
    waker.wake_by_ref();
    let copy = waker.clone();
    thread::spawn(move || copy.wake()).join().unwrap();
    waker.wake();
    abort.abort();
    assert!(
        wait("the task of an ended runtime", task)
            .unwrap_err()
            .is_cancelled()
    );
    let guard = drops.guard();
    let refused = handle.spawn(async move { drop(guard) });
    assert!(
        wait("a spawn on an ended runtime", refused)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(drops.count(), 2, "the refused future is dropped once");
    let blocking = handle.spawn_blocking(|| 1);
    assert!(
        wait("a blocking spawn on an ended runtime", blocking)
            .unwrap_err()
            .is_cancelled()
    );
    match handle.try_spawn(async { 5 }) {
        Err(error @ TrySpawnError::Stopping(_)) => {
            assert_eq!(error.to_string(), "the runtime is shutting down");
            assert_eq!(windlass_core::block_on(error.into_inner()), 5);
        }
        other => panic!("expected Stopping, got {other:?}"),
    }
    assert_eq!(
        handle.block_on(async { 3 }),
        3,
        "the thread itself can still run a future"
    );
    assert!(handle.snapshot().pool.workers.len() == 2);
}

#[test]
fn a_handle_finds_the_runtime_of_its_thread() {
    let (first, second) = (runtime(1), runtime(1));
    let same = |a: &Handle, b: &Handle| format!("{a:?}") == format!("{b:?}");
    // Names tell them apart.
    let named = |name: &str| Runtime::builder().workers(1).name(name).build().unwrap();
    let (alpha, beta) = (named("alpha"), named("beta"));
    assert!(!same(alpha.handle(), beta.handle()));
    let is_alpha = |handle: &Handle| format!("{handle:?}").contains("\"alpha\"");

    let refused = Handle::try_current().err();
    assert!(refused.is_some_and(|error: TryCurrentError| error.is_missing_context()));
    {
        let _alpha = alpha.enter();
        assert!(is_alpha(&Handle::current()));
        {
            let _beta = beta.enter();
            assert!(!is_alpha(&Handle::current()));
        }
        assert!(is_alpha(&Handle::current()), "the inner guard is gone");
    }
    assert!(Handle::try_current().is_err(), "both guards are gone");
    assert!(alpha.block_on(async { is_alpha(&Handle::current()) }));
    let inside = alpha.spawn(async { format!("{:?}", Handle::current()) });
    assert!(join("the task", inside).contains("\"alpha\""));
    let inside = alpha.spawn_blocking(|| format!("{:?}", Handle::current()));
    assert!(join("the blocking closure", inside).contains("\"alpha\""));
    // A worker's own runtime comes before one that is entered there.
    let other = beta.handle().clone();
    let inside = alpha.spawn(async move {
        let _beta = other.enter();
        is_alpha(&Handle::current())
    });
    assert!(join("the task", inside));
    drop((first, second));
}

#[test]
fn guards_dropped_out_of_order_leave_their_own_runtimes() {
    let (first, second) = (runtime(1), runtime(1));
    let outer = first.enter();
    let inner = second.enter();
    drop(outer);
    let before = second.snapshot().pool.tasks_submitted_outside;
    join("a task", windlass_runtime::spawn(async {}));
    let after = second.snapshot().pool.tasks_submitted_outside;
    assert_eq!(after - before, 1, "the second runtime is still entered");
    drop(inner);
    assert!(Handle::try_current().is_err());
}

#[test]
fn current_outside_of_a_runtime_is_a_clear_panic() {
    let message = panic_message(Handle::current);
    assert!(
        message.starts_with("this thread is in no runtime; use Runtime::block_on"),
        "{message}"
    );
}

#[test]
fn spawn_without_a_runtime_uses_the_process_wide_default() {
    let worker = windlass_runtime::spawn(async {
        let name = thread::current().name().map(str::to_owned);
        let child = windlass_runtime::spawn(async { 1 }).await.unwrap();
        (name, child)
    });
    let (name, child) = join("a task of the default runtime", worker);
    assert!(
        name.as_deref()
            .is_some_and(|name| name.starts_with("windlass-default")),
        "{name:?}"
    );
    assert_eq!(child, 1);
    let blocking = windlass_runtime::spawn_blocking(|| Handle::try_current().is_ok());
    assert!(join("a blocking closure of the default runtime", blocking));
}

#[test]
fn spawn_inside_block_on_uses_that_runtime_and_not_the_default() {
    let runtime = Runtime::builder().workers(1).name("mine").build().unwrap();
    let name = runtime.block_on(async {
        windlass_runtime::spawn(async { thread::current().name().map(str::to_owned) })
            .await
            .unwrap()
    });
    assert!(name.is_some_and(|name| name.starts_with("mine-")));
}

/// Enters a runtime when it is dropped.
struct EntersOnDrop(Handle, Arc<AtomicUsize>);

impl Drop for EntersOnDrop {
    fn drop(&mut self) {
        let _entered = self.0.enter();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// A spawn on a runtime that ended drops the future on the spot; that drop is user code, and may
/// use the runtime's functions like any other.
#[test]
fn a_refused_future_may_enter_a_runtime_in_its_drop() {
    expect_panics();
    let (ended, live) = (runtime(1), runtime(1));
    let handle = ended.handle().clone();
    drop(ended);
    let entered = Arc::new(AtomicUsize::new(0));
    let held = EntersOnDrop(live.handle().clone(), entered.clone());
    let refused = {
        let _in_ended = handle.enter();
        windlass_runtime::spawn(async move {
            let _held = held;
            pending::<()>().await;
        })
    };
    let error = wait("the refused task", refused).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(entered.load(Ordering::SeqCst), 1);
}

#[test]
fn a_wake_from_another_runtimes_worker_goes_through_the_injector() {
    let (first, second) = (runtime(1), runtime(1));
    let notify = Notify::default();
    let waits = notify.clone();
    let task = first.spawn(async move {
        waits.notified().await;
        thread::current().name().map(str::to_owned)
    });
    eventually("the task waits", || notify.has_waiter());
    let polls_before = second.snapshot().pool.workers[0].polls;
    let waker = second.spawn(async move { notify.notify() });
    join("the waker", waker);
    join("the woken task", task);
    let polls = second.snapshot().pool.workers[0].polls - polls_before;
    assert_eq!(polls, 1, "the other runtime ran its own task only");
}
