//! Code that blocks its worker, and waits for the runtime while it does.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use windlass_runtime::task::{block_in_place, coop, yield_now};
use windlass_runtime::{Builder, Handle, Runtime, coroutine, spawn, time};
use windlass_sync::channel::{mpsc, oneshot};
use windlass_sync::lock::Mutex;

use crate::support::{expect_panics, in_time, panic_message, poll_once, runtime, wait};

#[test]
fn block_on_waits_for_tasks_and_timers_of_the_only_worker() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        block_in_place(|| {
            Handle::current().block_on(async {
                time::sleep(Duration::from_millis(2)).await;
                spawn(async { 7 }).await.unwrap()
            })
        })
    });
    assert_eq!(wait("the task", task).unwrap(), 7);
}

#[test]
fn it_may_be_nested_with_block_on_between() {
    let runtime = runtime(1);
    for _ in 0..50 {
        let handle = runtime.handle().clone();
        let task = runtime.spawn(async move {
            block_in_place(|| {
                handle.block_on(async { block_in_place(|| handle.block_on(yield_now())) })
            })
        });
        wait("the task", task).unwrap();
    }
}

#[test]
fn the_future_in_block_on_may_block_too() {
    let runtime = runtime(2);
    let answer = in_time("the nested waits", move || {
        runtime.block_on(async {
            block_in_place(|| Handle::current().block_on(async { spawn(async { 3 }).await }))
        })
    });
    assert_eq!(answer.unwrap(), 3);
}

#[test]
fn a_current_thread_runtime_runs_inside_of_it_and_its_tasks_may_not_block() {
    expect_panics();
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        block_in_place(|| {
            let inner = Builder::new_current_thread().build().unwrap();
            let (own, refused) = inner.block_on(async {
                let own = spawn(async { time::sleep(Duration::from_millis(1)).await }).await;
                let refused = spawn(async { windlass_core::block_on(async {}) }).await;
                (own, refused)
            });
            own.unwrap();
            refused.unwrap_err().to_string()
        })
    });
    let refused = wait("the task", task).unwrap();
    assert!(refused.contains("Cannot start a runtime"), "{refused}");
}

#[test]
fn after_it_the_task_may_not_block_again() {
    expect_panics();
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        block_in_place(|| Handle::current().block_on(async {}));
        Handle::current().block_on(async {})
    });
    assert!(wait("the task", task).unwrap_err().is_panic());
    let again = panic_message(|| {
        runtime.block_on(async {
            block_in_place(|| ());
            windlass_core::block_on(async {})
        })
    });
    assert!(again.contains("Cannot start a runtime"), "{again}");
}

#[test]
fn a_future_polled_inside_of_it_has_no_budget() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        for number in 0..1_000 {
            sender.send(number).unwrap();
        }
        // No executor of ours: it polls until the future is ready, in the same turn.
        let in_one_poll = block_in_place(|| {
            let mut all = pin!(async {
                for _ in 0..1_000 {
                    receiver.recv().await.unwrap();
                }
            });
            poll_once(&mut all).is_ready()
        });
        (in_one_poll, coop::has_budget_remaining())
    });
    assert_eq!(wait("the task", task).unwrap(), (true, true));
}

#[test]
fn a_lock_can_be_waited_for_inside_of_it() {
    let runtime = runtime(2);
    let lock = Arc::new(Mutex::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let lock = lock.clone();
            runtime.spawn(async move { block_in_place(|| *lock.blocking_lock() += 1) })
        })
        .collect();
    for task in tasks {
        wait("a task", task).unwrap();
    }
    assert_eq!(*lock.blocking_lock(), 20);
}

#[test]
fn a_coroutine_suspended_inside_of_it_lets_other_tasks_have_their_bans() {
    expect_panics();
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let coroutine = coroutine::Builder::new().spawn_on(&handle, || {
        block_in_place(|| {
            coroutine::wait(time::sleep(Duration::from_millis(20)));
            spawn(async { windlass_core::block_on(async {}) })
        })
    });
    let beside = runtime.spawn(async { windlass_core::block_on(async {}) });
    assert!(wait("the task beside", beside).unwrap_err().is_panic());
    let later = wait("the coroutine", coroutine).unwrap();
    assert!(wait("the task after", later).unwrap_err().is_panic());
}

#[test]
fn where_no_other_thread_goes_on_the_ban_stays() {
    expect_panics();
    let ban = "Cannot start a runtime";
    let root = panic_message(|| {
        Runtime::simulated(1)
            .block_on(async { block_in_place(|| windlass_core::block_on(async {})) })
    });
    assert!(root.contains(ban), "{root}");
    let runtime = Runtime::simulated(1);
    let task = async {
        let (sender, receiver) = oneshot::channel::<()>();
        spawn(async { sender.send(()) });
        block_in_place(|| receiver.blocking_recv()).unwrap();
    };
    let error = runtime.block_on(async { spawn(task).await }).unwrap_err();
    assert!(error.to_string().contains(ban), "{error}");
    assert_eq!(runtime.block_on(async { block_in_place(|| 4) }), 4);
}
