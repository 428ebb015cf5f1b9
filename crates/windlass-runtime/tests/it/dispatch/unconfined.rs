//! The unconfined dispatcher: here and now, then wherever it is woken.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::{Runtime, coroutine};
use windlass_sync::{lock::Notify, lock::Semaphore};

use super::here;
use crate::support::{Drops, eventually, expect_panics, join, runtime, wait};

#[test]
fn it_runs_inside_spawn_until_it_first_suspends() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let unconfined = Dispatcher::unconfined();
    let (seen, notify) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let (noted, waited) = (seen.clone(), notify.clone());
    let task = unconfined.spawn(async move {
        noted.lock().expect("no panic").push(thread::current().id());
        waited.notified().await;
        noted.lock().expect("no panic").push(thread::current().id());
    });
    assert_eq!(*seen.lock().expect("no panic"), [thread::current().id()]);
    assert_eq!(runtime.snapshot().unconfined_tasks, 1);
    notify.notify_one();
    join("it goes on", task);
    let seen = seen.lock().expect("no panic").clone();
    assert_ne!(seen[1], thread::current().id(), "never inside `wake`");
    assert_eq!(runtime.snapshot().unconfined_tasks, 0);
}

#[test]
fn one_that_never_suspends_has_ended_when_spawn_returns() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let task = Dispatcher::unconfined().spawn(async { 42 });
    assert!(task.is_finished());
    assert_eq!(join("it has ended", task), 42);
}

#[test]
fn it_goes_on_in_the_pool_of_whoever_wakes_it() {
    let default = Runtime::builder()
        .name("first")
        .workers(1)
        .build()
        .expect("a runtime");
    let other = Runtime::builder()
        .name("second")
        .workers(1)
        .build()
        .expect("a runtime");
    let _entered = default.enter();
    let notify = Arc::new(Notify::new());
    let waited = notify.clone();
    let task = Dispatcher::unconfined().spawn(async move {
        let mut names = Vec::new();
        for _ in 0..3 {
            waited.notified().await;
            names.push(here());
        }
        names
    });
    // A plain thread that has entered the first one, then a task of each.
    notify.notify_one();
    let inner = notify.clone();
    thread::sleep(Duration::from_millis(20));
    join(
        "the other wakes it",
        other.spawn(async move { inner.notify_one() }),
    );
    thread::sleep(Duration::from_millis(20));
    let inner = notify.clone();
    join(
        "the first wakes it",
        default.spawn(async move { inner.notify_one() }),
    );
    let names = join("it ends", task);
    assert!(names[0].starts_with("first-"), "{names:?}");
    assert!(names[1].starts_with("second-"), "{names:?}");
    assert!(names[2].starts_with("first-"), "{names:?}");
}

#[test]
fn nesting_does_not_grow_the_stack() {
    fn nest(left: u32, ran: Arc<AtomicUsize>) {
        ran.fetch_add(1, Ordering::SeqCst);
        if left > 0 {
            drop(Dispatcher::unconfined().spawn(async move { nest(left - 1, ran) }));
        }
    }
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let ran = Arc::new(AtomicUsize::new(0));
    let inner = ran.clone();
    let task = Dispatcher::unconfined().spawn(async move { nest(100_000, inner) });
    assert!(task.is_finished());
    assert_eq!(
        ran.load(Ordering::SeqCst),
        100_001,
        "all before the outermost returns"
    );
}

#[test]
fn an_inner_one_begins_when_the_outer_ones_turn_is_over() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let outer = order.clone();
    let task = Dispatcher::unconfined().spawn(async move {
        outer.lock().expect("no panic").push("outer begins");
        let inner = outer.clone();
        let child = Dispatcher::unconfined()
            .spawn(async move { inner.lock().expect("no panic").push("inner") });
        outer.lock().expect("no panic").push("outer goes on");
        child.await.expect("no panic");
    });
    join("it ends", task);
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, ["outer begins", "outer goes on", "inner"]);
}

#[test]
fn its_panic_goes_to_the_handle() {
    expect_panics();
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let task = Dispatcher::unconfined().spawn(async { panic!("unconfined, on purpose") });
    let error: windlass_core::task::JoinError = match wait("it panicked", task) {
        Ok(()) => unreachable!("it panicked"),
        Err(error) => error,
    };
    assert!(error.is_panic());
    assert_eq!(runtime.snapshot().unconfined_tasks, 0);
}

#[test]
fn it_can_be_aborted_and_ends_with_its_runtime() {
    let drops = Drops::default();
    let runtime = runtime(1);
    let guards = [drops.guard(), drops.guard()];
    let tasks = {
        let _entered = runtime.enter();
        guards.map(|guard| {
            Dispatcher::unconfined().spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            })
        })
    };
    tasks[0].abort();
    eventually("the first ends", || drops.count() == 1);
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert_eq!(drops.count(), 2);
    for task in tasks {
        assert!(wait("resolved", task).expect_err("ended").is_cancelled());
    }
}

/// Inside a coroutine, an unconfined future is still a future: it must not suspend its host.
#[test]
fn inside_a_coroutine_an_unconfined_task_cannot_suspend_its_host() {
    expect_panics();
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let host = coroutine::spawn(|| {
        let task = Dispatcher::unconfined().spawn(async { coroutine::wait(async {}) });
        coroutine::wait(task).expect_err("refused").is_panic()
    });
    assert!(join("the host goes on", host));
}

#[test]
fn a_hundred_that_are_woken_by_a_thread_all_end() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let (notify, inside) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (notify, inside) = (notify.clone(), inside.clone());
            Dispatcher::unconfined().spawn(async move {
                notify.notified().await;
                inside.store(true, Ordering::SeqCst);
            })
        })
        .collect();
    (0..100).for_each(|_| notify.notify_one());
    for task in tasks {
        join("each ends", task);
    }
    assert!(inside.load(Ordering::SeqCst));
}

/// Its stack may hold what belongs to a thread, and safe code must not take that elsewhere.
#[test]
fn a_coroutine_given_to_it_stays_on_one_thread_whoever_wakes_it() {
    let (first, second) = (runtime(2), runtime(2));
    let _entered = first.enter();
    for _ in 0..20 {
        let turns = Arc::new(Semaphore::new(0));
        let waited = turns.clone();
        let coroutine = Dispatcher::unconfined().spawn_coroutine(move || {
            let own = std::rc::Rc::new(thread::current().id());
            for _ in 0..2 {
                let turn = coroutine::wait(waited.acquire()).expect("it is not closed");
                turn.forget();
                assert_eq!(*own, thread::current().id(), "it has moved");
            }
        });
        let given = turns.clone();
        join(
            "another pool wakes it",
            second.spawn(async move { given.add_permits(1) }),
        );
        thread::sleep(Duration::from_millis(1));
        turns.add_permits(1);
        join("it ends where it began", coroutine);
    }
}
