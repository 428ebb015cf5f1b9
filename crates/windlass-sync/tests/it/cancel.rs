//! Aborts, shields and cancellation tokens.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use windlass_runtime::{Runtime, task, task::shield, task::yield_now};
use windlass_sync::CancellationToken;

use crate::support::{
    CountingWaker, Drops, Gate, Notify, eventually, expect_panics, hold_worker, in_time, join,
    poll_once, runtime, spin_for, wait,
};

fn wait_until_suspended(runtime: &Runtime) {
    eventually("the task is suspended", || {
        let pool = runtime.snapshot().pool;
        pool.suspended_tasks == 1 && pool.unparked == 0
    });
}

/// Takes its time to be dropped, and says when it is done.
struct SlowDrop(Arc<AtomicBool>);

impl Drop for SlowDrop {
    fn drop(&mut self) {
        spin_for(Duration::from_millis(30));
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn e4_abort_of_an_idle_task_resolves_when_its_future_is_dropped_and_needs_no_event() {
    let runtime = runtime(2);
    let dropped = Arc::new(AtomicBool::new(false));
    let held = SlowDrop(dropped.clone());
    let task = runtime.spawn(async move {
        let _held = held;
        pending::<()>().await;
    });
    wait_until_suspended(&runtime);
    task.abort();
    let at_resolution = wait("the aborted idle task", async move {
        let error = task.await.expect_err("it was aborted");
        (error.is_cancelled(), dropped.load(Ordering::SeqCst))
    });
    assert_eq!(
        at_resolution,
        (true, true),
        "(cancelled, future dropped by then)"
    );
}

#[test]
fn e4_abort_of_a_queued_task_drops_it_unpolled() {
    let runtime = runtime(1);
    let (gate, _holder) = hold_worker(&runtime);
    let drops = Drops::default();
    let (polled, guard) = (Arc::new(AtomicBool::new(false)), drops.guard());
    let sets = polled.clone();
    let task = runtime.spawn(async move {
        let _guard = guard;
        sets.store(true, Ordering::SeqCst);
    });
    task.abort();
    assert!(
        !task.is_finished(),
        "a queued future is dropped by a worker, not by the aborter"
    );
    gate.open();
    assert!(
        wait("the aborted queued task", task)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!((polled.load(Ordering::SeqCst), drops.count()), (false, 1));
}

#[test]
fn e4_abort_of_a_running_task_applies_at_its_next_suspension() {
    let runtime = runtime(1);
    let (running, aborted) = (Gate::default(), Gate::default());
    let (says, waits) = (running.clone(), aborted.clone());
    let drops = Drops::default();
    let guard = drops.guard();
    let went_on = Arc::new(AtomicUsize::new(0));
    let steps = went_on.clone();
    let task = runtime.spawn(async move {
        let _guard = guard;
        says.open();
        waits.wait();
        steps.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        steps.fetch_add(1, Ordering::SeqCst);
    });
    running.wait();
    task.abort();
    assert_eq!(drops.count(), 0, "a running future is left alone");
    aborted.open();
    assert!(
        wait("the aborted running task", task)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!((went_on.load(Ordering::SeqCst), drops.count()), (1, 1));
}

#[test]
fn e4_a_running_task_that_ends_without_suspending_keeps_its_output() {
    let runtime = runtime(1);
    let (running, aborted) = (Gate::default(), Gate::default());
    let (says, waits) = (running.clone(), aborted.clone());
    let task = runtime.spawn(async move {
        says.open();
        waits.wait();
        "output"
    });
    running.wait();
    task.abort();
    aborted.open();
    assert_eq!(join("the task", task), "output");
}

#[test]
fn e4_abort_of_a_completed_task_keeps_its_output() {
    let runtime = runtime(1);
    let task = runtime.spawn(async { 42 });
    eventually("the task has ended", || task.is_finished());
    task.abort();
    task.abort_handle().abort();
    assert_eq!(join("the completed task", task), 42);
}

#[test]
fn a_task_that_yields_for_ever_can_be_aborted() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        loop {
            yield_now().await;
        }
    });
    task.abort_handle().abort();
    let result: Result<(), _> = wait("the aborted yielding task", task);
    assert!(result.unwrap_err().is_cancelled());
}

#[test]
fn a_task_can_abort_itself() {
    let runtime = runtime(1);
    let own = Arc::new(std::sync::Mutex::new(
        None::<windlass_core::task::AbortHandle>,
    ));
    let reads = own.clone();
    let (gate, _holder) = hold_worker(&runtime);
    let task = runtime.spawn(async move {
        reads.lock().unwrap().take().unwrap().abort();
        assert!(task::is_cancelled());
        pending::<()>().await;
    });
    *own.lock().unwrap() = Some(task.abort_handle());
    gate.open();
    assert!(wait("the task", task).unwrap_err().is_cancelled());
}

#[test]
fn e4_a_shielded_section_runs_to_its_end_across_awaits_and_is_then_cancelled() {
    let runtime = runtime(2);
    let steps = Arc::new(AtomicUsize::new(0));
    let (go, drops) = (Notify::default(), Drops::default());
    let (counts, waits, guard) = (steps.clone(), go.clone(), drops.guard());
    let task = runtime.spawn(async move {
        let _guard = guard;
        shield(async {
            for _ in 0..3 {
                waits.notified().await;
                assert!(!task::is_cancelled(), "a shielded section does not see it");
                counts.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await;
        assert!(
            task::is_cancelled(),
            "after the section the cancellation shows"
        );
        counts.fetch_add(10, Ordering::SeqCst);
        pending::<()>().await;
    });
    eventually("the section waits", || go.has_waiter());
    task.abort();
    for step in 1..=3 {
        assert!(!task.is_finished(), "before step {step}");
        go.notify();
        eventually("the section goes on", || {
            steps.load(Ordering::SeqCst) >= step
        });
    }
    assert!(
        wait("the task after its section", task)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!((steps.load(Ordering::SeqCst), drops.count()), (13, 1));
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn nested(depth: usize, inner: Boxed<usize>) -> Boxed<usize> {
    if depth == 0 {
        inner
    } else {
        Box::pin(shield(nested(depth - 1, inner)))
    }
}

#[test]
fn e4_shields_nest_255_deep() {
    let runtime = runtime(1);
    let go = Notify::default();
    let waits = go.clone();
    let ended = Arc::new(AtomicUsize::new(0));
    let reports = ended.clone();
    let task = runtime.spawn(async move {
        let innermost = Box::pin(async move {
            waits.notified().await;
            usize::from(task::is_cancelled())
        });
        let seen = nested(255, innermost).await;
        reports.store(
            100 + 10 * usize::from(task::is_cancelled()) + seen,
            Ordering::SeqCst,
        );
        pending::<()>().await;
    });
    eventually("the innermost section waits", || go.has_waiter());
    task.abort();
    go.notify();
    assert!(wait("the task", task).unwrap_err().is_cancelled());
    assert_eq!(
        ended.load(Ordering::SeqCst),
        110,
        "hidden inside all 255, seen outside"
    );
}

#[test]
fn e4_one_shield_more_is_a_panic_of_that_task_only() {
    expect_panics();
    let runtime = runtime(1);
    let task = runtime.spawn(nested(256, Box::pin(async { 0 })));
    let error = wait("the task with 256 shields", task).unwrap_err();
    assert!(error.is_panic());
    assert!(
        error
            .to_string()
            .contains("255 shields are nested already; flatten the shielded sections"),
        "{error}"
    );
    assert_eq!(
        join(
            "another task on the same worker",
            runtime.spawn(async { 1 })
        ),
        1
    );
}

#[test]
fn a_shield_dropped_on_another_thread_is_released_on_its_own_task() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let drops = Drops::default();
    let guard = drops.guard();
    let task = runtime.spawn(async move {
        let _guard = guard;
        let mut section: Boxed<()> = Box::pin(shield(pending()));
        poll_fn(|cx| {
            assert!(section.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        sender.send(section).unwrap();
        pending::<()>().await;
    });
    let section = in_time("the section", move || receiver.recv().unwrap());
    wait_until_suspended(&runtime);
    task.abort();
    eventually("nothing runs", || runtime.snapshot().pool.unparked == 0);
    assert!(!task.is_finished(), "the shield is up");
    thread::spawn(move || drop(section)).join().unwrap();
    assert!(
        wait("the task whose shield went down", task)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_shield_dropped_half_way_lets_the_cancellation_through() {
    let runtime = runtime(1);
    let go = Notify::default();
    let waits = go.clone();
    let task = runtime.spawn(async move {
        {
            let mut section = Box::pin(shield(pending::<()>()));
            poll_fn(|cx| {
                assert!(section.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            waits.notified().await;
        }
        let seen = task::is_cancelled();
        assert!(seen, "the shield is down");
        pending::<()>().await;
    });
    eventually("the task waits", || go.has_waiter());
    task.abort();
    go.notify();
    assert!(wait("the task", task).unwrap_err().is_cancelled());
}

#[test]
fn shield_outside_a_task_just_runs() {
    assert_eq!(windlass_core::block_on(shield(async { 5 })), 5);
    assert!(!task::is_cancelled());
}

#[test]
fn a_token_tree_is_limited_by_memory_and_not_by_the_stack() {
    let small_stack = thread::Builder::new().stack_size(128 * 1024);
    let walk = small_stack.spawn(|| {
        let root = CancellationToken::new();
        let mut leaf = root.child();
        for _ in 0..100_000 {
            leaf = leaf.child();
        }
        let told = Arc::new(CountingWaker::default());
        let mut waits = leaf.cancelled();
        let waker = Waker::from(told.clone());
        assert!(
            Pin::new(&mut waits)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        root.cancel();
        assert!(leaf.is_cancelled());
        assert_eq!(told.count(), 1);
        assert!(poll_once(&mut waits).is_ready());
        drop((root, waits));
        drop(leaf);
    });
    walk.unwrap().join().unwrap();
}

#[test]
fn cancelling_a_token_reaches_what_is_below_and_nothing_above_or_beside() {
    let root = CancellationToken::new();
    let (left, right) = (root.child(), root.child());
    let below = left.child();
    left.cancel();
    assert_eq!(
        [&root, &left, &right, &below].map(|token| token.is_cancelled()),
        [false, true, false, true]
    );
    assert!(
        left.child().is_cancelled(),
        "a child of a cancelled token is born cancelled"
    );
    root.cancel();
    assert!(right.is_cancelled());
}

#[test]
fn each_waiter_of_a_token_is_told_exactly_once() {
    for _ in 0..50 {
        let token = CancellationToken::new();
        let below = token.child();
        let tellers: Vec<_> = (0..10)
            .map(|_| Arc::new(CountingWaker::default()))
            .collect();
        let mut waits = Vec::new();
        for (number, teller) in tellers.iter().enumerate() {
            let mut wait = if number % 2 == 0 {
                token.cancelled()
            } else {
                below.cancelled()
            };
            let waker = Waker::from(teller.clone());
            let mut cx = Context::from_waker(&waker);
            // Polled twice with the same waker: still one registration.
            assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
            assert!(Pin::new(&mut wait).poll(&mut cx).is_pending());
            waits.push(wait);
        }
        thread::scope(|scope| {
            (0..3).for_each(|_| {
                scope.spawn(|| token.cancel());
            });
        });
        assert!(tellers.iter().all(|teller| teller.count() == 1));
        assert!(waits.iter_mut().all(|wait| poll_once(wait).is_ready()));
    }
}

#[test]
fn a_dropped_wait_for_a_token_leaves_nothing_behind() {
    let token = CancellationToken::new();
    let teller = Arc::new(CountingWaker::default());
    for _ in 0..100 {
        let waker = Waker::from(teller.clone());
        let mut wait = token.cancelled();
        assert!(
            Pin::new(&mut wait)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    assert_eq!(Arc::strong_count(&teller), 1, "every waker is gone");
    token.cancel();
    assert_eq!(teller.count(), 0);
}

#[test]
fn a_token_moved_between_tasks_wakes_the_last_one_that_polled() {
    let token = CancellationToken::new();
    let (first, second) = (
        Arc::new(CountingWaker::default()),
        Arc::new(CountingWaker::default()),
    );
    let mut wait = token.cancelled();
    for waker in [&first, &second] {
        let waker = Waker::from(waker.clone());
        assert!(
            Pin::new(&mut wait)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    token.cancel();
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn run_until_cancelled_gives_the_output_or_drops_the_future() {
    let token = CancellationToken::new();
    assert_eq!(
        windlass_core::block_on(token.run_until_cancelled(async { 3 })),
        Some(3)
    );
    let drops = Drops::default();
    let guard = drops.guard();
    let (waits, task_token) = (Notify::default(), token.clone());
    let inner = waits.clone();
    let runtime = runtime(1);
    let task = runtime.spawn(async move {
        let never = async move {
            let _guard = guard;
            inner.notified().await;
        };
        task_token.run_until_cancelled(never).await
    });
    eventually("the future waits", || waits.has_waiter());
    token.cancel();
    assert_eq!(join("the cancelled run", task), None);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_drop_guard_cancels_its_token_unless_it_is_disarmed() {
    let token = CancellationToken::new();
    let kept = token.clone().drop_guard().disarm();
    assert!(!token.is_cancelled() && !kept.is_cancelled());
    drop(token.clone().drop_guard());
    assert!(token.is_cancelled());
}

#[test]
fn a_token_aborts_the_tasks_it_was_told_of_before_and_after_its_cancellation() {
    let runtime = runtime(1);
    let token = CancellationToken::new();
    let before = runtime.spawn(pending::<()>());
    let finished = runtime.spawn(async { 1 });
    eventually("the task has ended", || finished.is_finished());
    token.abort_on_cancel(before.abort_handle());
    token.abort_on_cancel(finished.abort_handle());
    assert!(!before.is_finished());
    token.cancel();
    assert!(
        wait("the task told of before", before)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(join("the finished task", finished), 1);
    let after = runtime.spawn(pending::<()>());
    token.abort_on_cancel(after.abort_handle());
    assert!(
        wait("the task told of after", after)
            .unwrap_err()
            .is_cancelled()
    );
}
