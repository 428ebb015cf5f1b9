//! Join handles: every one gets its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use windlass_core::task::JoinHandle;
use windlass_runtime::task::JoinErrorKind;
use windlass_runtime::{Runtime, task, task::yield_now};

use crate::support::{
    Bomb, BombInDrop, CountingWaker, Drops, Gate, Notify, eventually, expect_panics, hold_worker,
    join, panic_message, poll_once, runtime, text, wait,
};

#[test]
fn e5_of_100_000_joins_across_workers_each_yields_its_tasks_own_result() {
    expect_panics();
    let runtime = runtime(4);
    let joiner = |joiner: u64| async move {
        let spawn = |number: u64| {
            windlass_runtime::spawn(async move {
                if number.is_multiple_of(3) {
                    yield_now().await;
                }
                if number % 20 == 7 {
                    panic!("{number} on purpose");
                }
                number
            })
        };
        let numbers = joiner * 1000..(joiner + 1) * 1000;
        let children: Vec<_> = numbers
            .clone()
            .map(|number| (number, spawn(number)))
            .collect();
        let mut panics = 0;
        for (number, child) in children {
            match child.await {
                Ok(value) => assert_eq!(value, number),
                Err(error) => {
                    assert_eq!(number % 20, 7, "{error}");
                    let payload = error.try_into_panic().expect("a panic");
                    assert_eq!(text(&*payload), format!("{number} on purpose"));
                    panics += 1;
                }
            }
        }
        panics
    };
    let joiners: Vec<_> = (0..100)
        .map(|number| runtime.spawn(joiner(number)))
        .collect();
    for handle in joiners {
        assert_eq!(join("a task with 1000 children", handle), 50);
    }
    let panics: u64 = runtime
        .snapshot()
        .pool
        .workers
        .iter()
        .map(|worker| worker.panics)
        .sum();
    assert_eq!(panics, 5_000, "counted");
}

#[test]
fn a_task_can_be_joined_from_another_runtimes_task() {
    let (first, second) = (runtime(1), runtime(1));
    let go = Notify::default();
    let waits = go.clone();
    let task = first.spawn(async move {
        waits.notified().await;
        "from the first"
    });
    let joiner = second.spawn(async move { task.await.unwrap() });
    eventually("both wait", || {
        go.has_waiter() && second.snapshot().pool.suspended_tasks == 1
    });
    go.notify();
    assert_eq!(join("the joiner", joiner), "from the first");
}

#[test]
fn a_task_can_be_joined_from_block_on_and_from_a_plain_thread() {
    let runtime = runtime(2);
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    let (go, later) = (Notify::default(), runtime.handle().clone());
    let waits = go.clone();
    let task = later.spawn(async move {
        waits.notified().await;
        2
    });
    let thread = thread::spawn(move || windlass_core::block_on(task).unwrap());
    eventually("the task waits", || go.has_waiter());
    go.notify();
    assert_eq!(thread.join().unwrap(), 2);
}

struct Output(#[allow(dead_code, reason = "held for its drop")] crate::support::Guard);

#[test]
fn the_output_of_a_detached_task_is_dropped_exactly_once() {
    let runtime = runtime(1);
    let drops = Drops::default();
    // The handle goes before the task has run.
    let (gate, _holder) = hold_worker(&runtime);
    let output = Output(drops.guard());
    drop(runtime.spawn(async move { output }));
    assert_eq!(drops.count(), 0);
    gate.open();
    eventually("the output is dropped at the end of the task", || {
        drops.count() == 1
    });
    // The handle goes after the task has ended.
    let output = Output(drops.guard());
    let handle = runtime.spawn(async move { output });
    eventually("the task has ended", || handle.is_finished());
    assert_eq!(drops.count(), 1, "the handle keeps the output");
    drop(handle);
    assert_eq!(drops.count(), 2);
    // The output is taken, then the handle goes.
    let output = Output(drops.guard());
    let mut handle = runtime.spawn(async move { output });
    let output = runtime.block_on(&mut handle).unwrap();
    drop(handle);
    assert_eq!(drops.count(), 2, "the output is the caller's");
    drop(output);
    assert_eq!(drops.count(), 3);
}

#[test]
fn outputs_are_dropped_exactly_once_while_handles_race_with_completion() {
    const ROUNDS: usize = 20_000;
    let runtime = runtime(2);
    let drops = Drops::default();
    for round in 0..ROUNDS {
        let output = Output(drops.guard());
        let mut handle = runtime.spawn(async move {
            if round % 2 == 0 {
                yield_now().await;
            }
            output
        });
        if round % 3 == 0 {
            // Leaves a waker for the completer.
            let _ = poll_once(&mut handle);
        }
        drop(handle);
    }
    eventually("every output is dropped", || drops.count() == ROUNDS);
}

#[test]
fn polling_a_handle_again_after_it_gave_out_its_output_is_a_clear_panic() {
    let runtime = runtime(1);
    let mut handle = runtime.spawn(async { 1 });
    assert_eq!(runtime.block_on(&mut handle).unwrap(), 1);
    let message = panic_message(|| poll_once(&mut handle));
    assert_eq!(
        message,
        "this JoinHandle has given its output out; it can be awaited once"
    );
    drop(handle);
}

#[test]
fn join_errors_say_which_task_it_was_and_what_happened() {
    expect_panics();
    let runtime = runtime(1);
    let named = || task::Builder::new().name("worker bee");
    let panicked = named().spawn_on(runtime.handle(), async { panic!("stung on purpose") });
    let error = wait("the panicking task", panicked).unwrap_err();
    assert_eq!(
        (error.kind(), error.name()),
        (JoinErrorKind::Panicked, Some("worker bee"))
    );
    let id = error.id();
    assert_eq!(
        error.to_string(),
        format!("task {id} (worker bee) panicked with message \"stung on purpose\"")
    );
    assert!(
        format!("{error:?}").contains("stung on purpose"),
        "{error:?}"
    );

    let cancelled = named().spawn_on(runtime.handle(), std::future::pending::<()>());
    let id = cancelled.id();
    cancelled.abort();
    let error = wait("the cancelled task", cancelled).unwrap_err();
    assert_eq!((error.kind(), error.id()), (JoinErrorKind::Cancelled, id));
    assert_eq!(
        error.to_string(),
        format!("task {id} (worker bee) was cancelled")
    );

    let nameless = runtime.spawn(async { std::panic::panic_any(5_u8) });
    let error = wait("the nameless task", nameless).unwrap_err();
    assert_eq!(error.name(), None);
    assert_eq!(error.to_string(), format!("task {} panicked", error.id()));
    assert_eq!(
        error.try_into_panic().unwrap().downcast_ref::<u8>(),
        Some(&5)
    );
}

#[test]
fn into_panic_and_resume_panic_carry_the_payload_and_nothing_else() {
    expect_panics();
    let runtime = runtime(1);
    let panics = || runtime.spawn(async { panic!("carried on purpose") });
    let error = wait("the task", panics()).unwrap_err();
    let message = panic_message(|| error.resume_panic());
    assert_eq!(message, "carried on purpose");

    let cancelled = runtime.spawn(std::future::pending::<()>());
    cancelled.abort();
    let error = wait("the cancelled task", cancelled).unwrap_err();
    let error = error.try_into_panic().expect_err("there was no panic");
    assert!(error.resume_panic().is_cancelled());
}

/// Runs its closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Every worker of `runtime` still runs tasks.
#[track_caller]
fn all_workers_live(runtime: &Runtime) {
    let workers = runtime.snapshot().pool.workers.len();
    let together = Arc::new(std::sync::Barrier::new(workers));
    let meet = |_| {
        let together = together.clone();
        runtime.spawn(async move {
            together.wait();
        })
    };
    let tasks: Vec<_> = (0..workers).map(meet).collect();
    for task in tasks {
        join("one task per worker, all at the same time", task);
    }
}

#[test]
fn a_panic_in_a_futures_drop_is_carried_by_its_handle() {
    expect_panics();
    let runtime = runtime(2);
    let at_the_end = runtime.spawn(async {
        let _panics = OnDrop(|| panic!("dropped on purpose"));
        7
    });
    let error = wait("a task whose local panics at its end", at_the_end).unwrap_err();
    assert!(error.to_string().contains("dropped on purpose"), "{error}");

    let cancelled = runtime.spawn(async {
        let _panics = OnDrop(|| panic!("dropped on purpose"));
        std::future::pending::<()>().await;
    });
    eventually("the task waits", || {
        runtime.snapshot().pool.suspended_tasks == 1
    });
    cancelled.abort();
    let error = wait("a cancelled task whose drop panics", cancelled).unwrap_err();
    assert!(
        error.is_panic() && error.to_string().contains("dropped on purpose"),
        "{error}"
    );
    all_workers_live(&runtime);
}

#[test]
fn a_panic_in_an_outputs_drop_harms_nobody() {
    expect_panics();
    let runtime = runtime(2);
    for _ in 0..10 {
        runtime
            .spawn(async { OnDrop(|| panic!("output dropped on purpose")) })
            .detach();
    }
    let handle = runtime.spawn(async { OnDrop(|| panic!("output dropped on purpose")) });
    eventually("the task has ended", || handle.is_finished());
    drop(handle);
    all_workers_live(&runtime);
}

#[test]
fn a_panic_payload_whose_drop_panics_harms_nobody() {
    expect_panics();
    let runtime = runtime(2);
    for _ in 0..4 {
        runtime
            .spawn(async { std::panic::panic_any(Bomb) })
            .detach();
    }
    let error = wait(
        "the task",
        runtime.spawn(async { std::panic::panic_any(Bomb) }),
    )
    .unwrap_err();
    assert!(error.is_panic());
    drop(error);
    runtime.spawn(async { BombInDrop }).detach();
    all_workers_live(&runtime);
}

#[test]
fn a_future_that_panics_in_its_poll_and_with_a_bomb_in_its_drop_harms_nobody() {
    expect_panics();
    struct Twice(#[allow(dead_code, reason = "held for its drop")] BombInDrop);
    impl Future for Twice {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            panic!("polled on purpose")
        }
    }
    let runtime = runtime(2);
    for _ in 0..4 {
        let error = wait("the task", runtime.spawn(Twice(BombInDrop))).unwrap_err();
        assert!(error.to_string().contains("polled on purpose"), "{error}");
    }
    all_workers_live(&runtime);
}

#[test]
fn a_bomb_in_the_output_of_a_future_whose_drop_panics_harms_nobody() {
    expect_panics();
    struct Ready(#[allow(dead_code, reason = "held for its drop")] BombInDrop);
    impl Future for Ready {
        type Output = BombInDrop;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<BombInDrop> {
            Poll::Ready(BombInDrop)
        }
    }
    let runtime = runtime(2);
    for _ in 0..4 {
        let result = wait("the task", runtime.spawn(Ready(BombInDrop)));
        assert!(result.is_err_and(|error| error.is_panic()));
    }
    all_workers_live(&runtime);
}

/// A waker of the outermost kind: hand-made, and it panics.
struct PanickingWaker {
    told: Gate,
    bomb: bool,
}

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.told.open();
        if self.bomb {
            std::panic::panic_any(Bomb);
        }
        panic!("woken on purpose");
    }
}

fn a_joiner_panics_when_woken(bomb: bool) {
    expect_panics();
    let runtime = runtime(2);
    for _ in 0..4 {
        let (go, told) = (Notify::default(), Gate::default());
        let waits = go.clone();
        let mut handle = runtime.spawn(async move {
            waits.notified().await;
            3
        });
        let waker = Waker::from(Arc::new(PanickingWaker {
            told: told.clone(),
            bomb,
        }));
        assert!(
            Pin::new(&mut handle)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        eventually("the task waits", || go.has_waiter());
        go.notify();
        told.wait();
        assert_eq!(join("the task itself", handle), 3);
    }
    all_workers_live(&runtime);
}

#[test]
fn a_waker_that_panics_when_woken_harms_nobody() {
    a_joiner_panics_when_woken(false);
}

#[test]
fn a_waker_that_panics_with_a_bomb_when_woken_harms_nobody() {
    a_joiner_panics_when_woken(true);
}

#[test]
fn a_handle_wakes_the_last_waker_it_was_polled_with_once() {
    let runtime = runtime(1);
    let go = Notify::default();
    let waits = go.clone();
    let mut handle = runtime.spawn(async move { waits.notified().await });
    let wakers: Vec<_> = (0..3).map(|_| Arc::new(CountingWaker::default())).collect();
    for waker in &wakers {
        let waker = Waker::from(waker.clone());
        assert!(
            Pin::new(&mut handle)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    eventually("the task waits", || go.has_waiter());
    go.notify();
    eventually("the last waker is told", || wakers[2].count() == 1);
    let counts: Vec<_> = wakers.iter().map(|waker| waker.count()).collect();
    assert_eq!(counts, [0, 0, 1]);
    drop(handle);
    eventually("no waker is kept", || {
        wakers.iter().all(|waker| Arc::strong_count(waker) == 1)
    });
}

#[test]
fn a_chain_of_100_000_joins_needs_no_stack() {
    let runtime = Runtime::builder()
        .workers(2)
        .thread_stack_size(128 * 1024)
        .build()
        .unwrap();
    let go = Notify::default();
    let waits = go.clone();
    let mut last: JoinHandle<usize> = runtime.spawn(async move {
        waits.notified().await;
        0
    });
    for _ in 0..100_000 {
        last = runtime.spawn(async move { last.await.unwrap() + 1 });
    }
    go.notify();
    assert_eq!(join("the end of the chain", last), 100_000);
}

#[test]
fn is_finished_turns_true_when_the_output_is_there() {
    let runtime = runtime(1);
    let (gate, holder) = hold_worker(&runtime);
    let abort = holder.abort_handle();
    assert!(!holder.is_finished() && !abort.is_finished());
    assert_eq!(holder.id(), abort.id());
    gate.open();
    join("the task", holder);
    assert!(abort.is_finished());
}

#[test]
fn dropping_a_handle_does_not_stop_its_task() {
    let runtime = runtime(1);
    let (go, counted) = (Notify::default(), Arc::new(AtomicUsize::new(0)));
    let (waits, counts) = (go.clone(), counted.clone());
    let (sender, receiver) = mpsc::channel();
    runtime
        .spawn(async move {
            waits.notified().await;
            counts.fetch_add(1, Ordering::SeqCst);
            sender.send(()).unwrap();
        })
        .detach();
    eventually("the task waits", || go.has_waiter());
    go.notify();
    receiver
        .recv_timeout(crate::support::PATIENCE)
        .expect("the detached task goes on");
    assert_eq!(counted.load(Ordering::SeqCst), 1);
}

/// An output that nobody wants is dropped on the worker: blocking it there must be refused, as
/// in the rest of the task.
#[test]
fn block_on_in_the_drop_of_a_detached_output_is_refused() {
    expect_panics();
    let runtime = runtime(1);
    let (gate, _holder) = hold_worker(&runtime);
    let (sender, receiver) = mpsc::channel();
    runtime
        .spawn(async move {
            OnDrop(move || {
                let blocks = std::panic::AssertUnwindSafe(|| windlass_core::block_on(async {}));
                let refused = std::panic::catch_unwind(blocks).is_err();
                sender.send(refused).unwrap();
            })
        })
        .detach();
    gate.open();
    let refused = receiver.recv_timeout(crate::support::PATIENCE).unwrap();
    assert!(refused, "block_on was allowed to block a worker");
}

/// Without optimisation each call on the way of a spawn has a copy of the future on its stack.
#[test]
fn a_large_future_is_spawned_on_a_small_stack() {
    let runtime = runtime(1);
    let spawner = std::thread::Builder::new().stack_size(1 << 20);
    let handle = runtime.handle().clone();
    let spawned = spawner.spawn(move || {
        let large = || async {
            let bytes = std::hint::black_box([1_u8; 128 << 10]);
            windlass_runtime::task::yield_now().await;
            bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>()
        };
        let by_handle = handle.spawn(large());
        let _entered = handle.enter();
        (by_handle, windlass_runtime::spawn(large()))
    });
    let (by_handle, entered) = spawned.expect("a thread").join().expect("no panic");
    assert_eq!(join("the first", by_handle), 128 << 10);
    assert_eq!(join("the second", entered), 128 << 10);
}

#[test]
fn handles_of_tasks_cross_a_catch_of_panics() {
    fn is_unwind_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_unwind_safe::<windlass_core::task::JoinHandle<std::cell::Cell<u8>>>();
    is_unwind_safe::<windlass_core::task::AbortHandle>();
}
