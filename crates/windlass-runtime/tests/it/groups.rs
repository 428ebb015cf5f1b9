//! Task groups.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_runtime::{ChildError, TaskGroup, task::shield, task::yield_now};
use windlass_sync::CancellationToken;

use crate::support::{Drops, Notify, eventually, expect_panics, join, runtime, wait};

#[test]
fn a_group_gives_all_values_in_the_order_of_ending() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::<Result<u32, ()>>::new();
        let (first, second) = (Notify::default(), Notify::default());
        let (waits, goes) = (first.clone(), second.clone());
        group.spawn(async move {
            waits.notified().await;
            Ok(1)
        });
        group.spawn(async move {
            first.notify();
            goes.notify();
            Ok(2)
        });
        second.notified().await;
        group.try_join().await.unwrap()
    });
    assert_eq!(join("the group", task), [2, 1]);
}

#[test]
fn the_first_error_cancels_the_rest_and_join_waits_until_they_are_dropped() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let group_drops = drops.clone();
    let task = runtime.spawn(async move {
        let mut group = TaskGroup::<Result<(), &str>>::new();
        for _ in 0..20 {
            let guard = group_drops.guard();
            let waits_for_ever = async move {
                let _guard = guard;
                pending::<()>().await;
                Ok(())
            };
            group.spawn(waits_for_ever);
        }
        yield_now().await;
        group.spawn(async { Err("the one that fails") });
        let error = group.try_join().await.unwrap_err();
        (error, group_drops.count())
    });
    let (error, dropped) = join("the failing group", task);
    assert!(
        matches!(error, ChildError::Failed("the one that fails")),
        "{error:?}"
    );
    assert_eq!(dropped, 20, "children that were dropped when join returned");
    assert_eq!(
        error.to_string(),
        "a child of the group failed: the one that fails"
    );
}

/// Notifies when it is dropped.
struct NotifyOnDrop(Notify);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify();
    }
}

#[test]
fn a_failure_is_preferred_to_a_cancellation_that_came_before() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::<Result<(), &str>>::new();
        let go = Notify::default();
        let ends_first = NotifyOnDrop(go.clone());
        let cancelled = async move {
            let _ends_first = ends_first;
            pending().await
        };
        let cancelled = group.spawn(cancelled);
        let fails_later = async move {
            // The group cancels it meanwhile; the shield lets it fail all the same.
            shield(go.notified()).await;
            Err("the failure")
        };
        group.spawn(fails_later);
        yield_now().await;
        cancelled.abort();
        group.try_join().await.unwrap_err()
    });
    let error = join("the group", task);
    assert!(
        matches!(error, ChildError::Failed("the failure")),
        "{error:?}"
    );
}

#[test]
fn a_child_that_was_aborted_alone_is_reported_as_cancelled() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::<Result<(), &str>>::new();
        group.spawn(pending()).abort();
        group.try_join().await.unwrap_err()
    });
    let error = join("the group", task);
    assert!(matches!(error, ChildError::Cancelled(_)), "{error:?}");
}

#[test]
fn a_panicking_child_cancels_the_rest_and_its_panic_is_carried() {
    expect_panics();
    let runtime = runtime(2);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::<Result<(), &str>>::new();
        group.spawn(pending());
        group.spawn(async { panic!("child 2, on purpose") });
        group.try_join().await.unwrap_err()
    });
    let error = join("the group", task);
    assert!(matches!(error, ChildError::Panicked(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .ends_with("panicked with message \"child 2, on purpose\""),
        "{error}"
    );
}

#[test]
fn a_child_of_a_cancelled_group_is_dropped_unpolled_and_counts_as_cancelled() {
    let runtime = runtime(1);
    let parent = CancellationToken::new();
    let mut group = TaskGroup::<u8>::on(runtime.handle(), &parent);
    parent.cancel();
    let (drops, polls) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let (guard, polled) = (drops.guard(), polls.clone());
    group.spawn(async move {
        let _guard = guard;
        polled.fetch_add(1, Ordering::SeqCst);
        7
    });
    assert_eq!(drops.count(), 1, "it is dropped at once");
    assert_eq!(group.len(), 1);
    let error = wait("the group", async move { group.join().await });
    assert!(error.expect_err("it was cancelled").is_cancelled());
    assert_eq!(polls.load(Ordering::SeqCst), 0);
}

#[test]
fn a_group_takes_futures_of_any_output() {
    let runtime = runtime(2);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::new();
        for number in 0..10_u32 {
            group.spawn(async move { Some(number) });
        }
        let mut values = group.join().await.expect("none panics");
        values.sort_unstable();
        values
    });
    assert!(join("the group", task).into_iter().eq((0..10).map(Some)));
}

#[test]
fn a_panic_cancels_the_rest_of_a_group_of_plain_values() {
    expect_panics();
    let runtime = runtime(2);
    let drops = Drops::default();
    let guard = drops.guard();
    let task = runtime.spawn(async {
        let mut group = TaskGroup::<()>::new();
        group.spawn(async move {
            let _guard = guard;
            pending().await
        });
        group.spawn(async { panic!("a plain child, on purpose") });
        group.join().await.expect_err("a child panics")
    });
    assert!(join("the group", task).is_panic());
    assert_eq!(drops.count(), 1, "the other has ended when join returns");
}

#[test]
fn errors_are_outputs_to_join_and_cancel_nothing() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let mut group = TaskGroup::new();
        group.spawn(async { Err("an output") });
        group.spawn(async {
            yield_now().await;
            Ok(1)
        });
        group.join().await.expect("none panics")
    });
    assert_eq!(join("the group", task), [Err("an output"), Ok(1)]);
}

#[test]
fn dropping_a_group_aborts_its_children() {
    let runtime = runtime(1);
    let drops = Drops::default();
    let mut group = TaskGroup::<Result<(), ()>>::on(runtime.handle(), &CancellationToken::new());
    for _ in 0..10 {
        let guard = drops.guard();
        let waits = async move {
            let _guard = guard;
            pending::<()>().await;
            Ok(())
        };
        group.spawn(waits);
    }
    eventually("the children wait", || {
        runtime.snapshot().pool.suspended_tasks == 10
    });
    assert_eq!(drops.count(), 0);
    drop(group);
    eventually("the children are dropped", || drops.count() == 10);
}

#[test]
fn a_dropped_wait_for_the_next_child_loses_no_child() {
    let runtime = runtime(1);
    let go = Notify::default();
    let waits = go.clone();
    let mut group = TaskGroup::<Result<u8, ()>>::on(runtime.handle(), &CancellationToken::new());
    let child = async move {
        waits.notified().await;
        Ok(9)
    };
    group.spawn(child);
    {
        let mut next = Box::pin(group.next());
        assert!(crate::support::poll_once(&mut next).is_pending());
    }
    go.notify();
    let task = runtime.spawn(async move {
        let next = group.next().await;
        (
            next.expect("a child").expect("no panic"),
            group.next().await.is_none(),
            group.is_empty(),
        )
    });
    assert_eq!(join("the child", task), (Ok(9), true, true));
}

/// A group's wait and the children's join handles spend from the same budget of 128: whatever is
/// left of it when the group is awaited, the wait must yield and not spin.
#[test]
fn a_group_awaited_with_any_rest_of_the_budget_ends() {
    for spent_before in 0..4 {
        let runtime = runtime(1);
        let task = runtime.spawn(async move {
            let mut group = TaskGroup::<Result<u32, ()>>::new();
            for number in 0..300 {
                group.spawn(async move { Ok(number) });
            }
            // Lets all the children end.
            for _ in 0..10 {
                yield_now().await;
            }
            let always_ready = CancellationToken::new();
            always_ready.cancel();
            for _ in 0..spent_before {
                always_ready.cancelled().await;
            }
            group.try_join().await.unwrap().len()
        });
        let what = format!("a group of 300, awaited with {spent_before} units spent");
        // Never dropped if it hangs: the hang itself is the failure to report.
        let runtime = std::mem::ManuallyDrop::new(runtime);
        assert_eq!(join(&what, task), 300);
        drop(std::mem::ManuallyDrop::into_inner(runtime));
    }
}

#[test]
fn a_group_on_a_runtime_that_ended_reports_cancellation() {
    let ended = runtime(1);
    let handle = ended.handle().clone();
    drop(ended);
    let mut group = TaskGroup::<Result<(), ()>>::on(&handle, &CancellationToken::new());
    group.spawn(async { Ok(()) });
    let result = wait("the group", async move { group.try_join().await });
    assert!(
        matches!(result, Err(ChildError::Cancelled(_))),
        "{result:?}"
    );
}

#[test]
fn a_group_of_many_is_joined_whole_across_workers() {
    let runtime = runtime(4);
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = ran.clone();
    let task = runtime.spawn(async move {
        let mut group = TaskGroup::<Result<usize, ()>>::new();
        for number in 0..10_000 {
            let counts = counts.clone();
            let child = async move {
                yield_now().await;
                counts.fetch_add(1, Ordering::Relaxed);
                Ok(number)
            };
            group.spawn(child);
        }
        group.try_join().await.unwrap()
    });
    let mut numbers = join("the group of many", task);
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..10_000));
    assert_eq!(ran.load(Ordering::Relaxed), 10_000);
}
