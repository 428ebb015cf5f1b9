//! Local sets: futures that never leave their thread.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use windlass_runtime::task::{JoinSet, LocalEnterGuard, LocalSet};
use windlass_runtime::{LocalRuntime, task, task::spawn_local, task::yield_now};

use crate::support::{
    Notify, eventually, expect_panics, in_time, panic_message, runtime, spin_for,
};

#[test]
fn local_tasks_share_what_cannot_be_sent() {
    let set = LocalSet::new();
    let log = Rc::new(RefCell::new(Vec::new()));
    let home = thread::current().id();
    let sum = windlass_core::block_on(set.run_until(async {
        let spawn = |number: u32| {
            let log = log.clone();
            spawn_local(async move {
                for _ in 0..3 {
                    assert_eq!(thread::current().id(), home);
                    log.borrow_mut().push(number);
                    yield_now().await;
                }
                Rc::new(number)
            })
        };
        let tasks: Vec<_> = (0..4).map(spawn).collect();
        let mut sum = 0;
        for task in tasks {
            sum += *task.await.unwrap();
        }
        sum
    }));
    assert_eq!(sum, 6);
    assert_eq!(
        *log.borrow(),
        [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3],
        "first in, first out"
    );
}

#[test]
fn an_output_that_can_be_sent_is_joined_on_another_thread() {
    in_time("the join elsewhere", || {
        let set = LocalSet::new();
        let home = thread::current().id();
        let handle = set.spawn_local(async move {
            let not_send = Rc::new(7);
            yield_now().await;
            assert_eq!(thread::current().id(), home);
            *not_send
        });
        let (done, is_done) = mpsc::channel();
        let elsewhere = thread::spawn(move || {
            let output = windlass_core::block_on(handle).unwrap();
            done.send(()).unwrap();
            output
        });
        windlass_core::block_on(set.run_until(async {
            while is_done.try_recv().is_err() {
                yield_now().await;
            }
        }));
        assert_eq!(elsewhere.join().unwrap(), 7);
    });
}

#[test]
fn a_set_that_is_awaited_ends_with_its_last_task() {
    in_time("the set", || {
        let set = LocalSet::new();
        let log = Rc::new(RefCell::new(Vec::new()));
        let (first, second) = (log.clone(), log.clone());
        drop(set.spawn_local(async move {
            yield_now().await;
            first.borrow_mut().push(1);
            drop(spawn_local(async move {
                windlass_runtime::time::sleep(Duration::from_millis(5)).await;
                second.borrow_mut().push(2);
            }));
        }));
        runtime(1).block_on(set);
        assert_eq!(*log.borrow(), [1, 2]);
    });
}

#[test]
fn a_local_task_is_woken_from_another_thread() {
    in_time("the local task", || {
        let runtime = runtime(1);
        let set = LocalSet::new();
        let (there, back) = (Notify::default(), Notify::default());
        let (waits, answers) = (there.clone(), back.clone());
        let local = set.spawn_local(async move {
            let not_send = Rc::new(Cell::new(0));
            for _ in 0..10_000 {
                waits.notified().await;
                not_send.set(not_send.get() + 1);
                answers.notify();
            }
            not_send.get()
        });
        let other = runtime.spawn(async move {
            for _ in 0..10_000 {
                there.notify();
                back.notified().await;
            }
        });
        let counted = runtime.block_on(set.run_until(local)).unwrap();
        assert_eq!(counted, 10_000);
        runtime.block_on(other).unwrap();
    });
}

#[test]
fn a_local_task_may_spawn_more_of_them_and_join_tasks_of_the_runtime() {
    let runtime = runtime(2);
    let set = LocalSet::new();
    let result = runtime.block_on(set.run_until(async {
        spawn_local(async {
            let inner = spawn_local(async { *Rc::new(40) });
            let outer = windlass_runtime::spawn(async { 2 });
            inner.await.unwrap() + outer.await.unwrap()
        })
        .await
        .unwrap()
    }));
    assert_eq!(result, 42);
}

#[test]
fn local_tasks_that_yield_for_ever_do_not_starve_the_awaited_future() {
    in_time("the awaited future", || {
        let set = LocalSet::new();
        for _ in 0..3 {
            drop(set.spawn_local(async {
                loop {
                    yield_now().await;
                }
            }));
        }
        let notify = Notify::default();
        let waits = notify.clone();
        let thread = thread::spawn(move || {
            spin_for(Duration::from_millis(5));
            notify.notify();
        });
        windlass_core::block_on(set.run_until(async move { waits.notified().await }));
        thread.join().unwrap();
    });
}

struct NotesThread(
    mpsc::Sender<ThreadId>,
    #[allow(dead_code, reason = "makes it !Send")] Rc<()>,
);

impl Drop for NotesThread {
    fn drop(&mut self) {
        self.0.send(thread::current().id()).unwrap();
    }
}

#[test]
fn dropping_a_set_drops_its_tasks_on_their_home_thread() {
    in_time("the drop of the set", || {
        let (sender, receiver) = mpsc::channel();
        let set = LocalSet::new();
        let waker = Arc::new(std::sync::Mutex::new(Vec::<Waker>::new()));
        let mut handles = Vec::new();
        for _ in 0..10 {
            let (note, leaves) = (NotesThread(sender.clone(), Rc::new(())), waker.clone());
            handles.push(set.spawn_local(async move {
                let _note = note;
                let mut left = false;
                poll_fn(|cx| {
                    if !std::mem::replace(&mut left, true) {
                        leaves.lock().unwrap().push(cx.waker().clone());
                    }
                    Poll::<()>::Pending
                })
                .await
            }));
        }
        // Never run, and an output that nobody took.
        let note = NotesThread(sender.clone(), Rc::new(()));
        handles.push(set.spawn_local(async move {
            let _note = note;
        }));
        windlass_core::block_on(set.run_until(yield_now()));
        // Threads that wake them at the very moment of the drop.
        let stop = Arc::new(AtomicBool::new(false));
        let hammer = thread::spawn({
            let (waker, stop) = (waker.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let wakers = waker.lock().unwrap().clone();
                    wakers.iter().for_each(Waker::wake_by_ref);
                }
            }
        });
        spin_for(Duration::from_millis(2));
        drop(set);
        let homes: Vec<_> = receiver.try_iter().collect();
        assert_eq!(homes, vec![thread::current().id(); 11]);
        spin_for(Duration::from_millis(2));
        stop.store(true, Ordering::Relaxed);
        hammer.join().unwrap();
        for handle in handles.drain(..10) {
            assert!(windlass_core::block_on(handle).unwrap_err().is_cancelled());
        }
        waker.lock().unwrap().drain(..).for_each(Waker::wake);
    });
}

#[test]
fn a_local_task_is_aborted_from_another_thread_and_dropped_at_home() {
    in_time("the aborted local task", || {
        let (sender, receiver) = mpsc::channel();
        let set = LocalSet::new();
        let note = NotesThread(sender, Rc::new(()));
        let handle = set.spawn_local(async move {
            let _note = note;
            pending::<()>().await;
        });
        let abort = handle.abort_handle();
        let aborter = thread::spawn(move || {
            spin_for(Duration::from_millis(5));
            abort.abort();
        });
        let error = windlass_core::block_on(set.run_until(handle)).unwrap_err();
        assert!(error.is_cancelled());
        assert_eq!(receiver.try_recv(), Ok(thread::current().id()));
        aborter.join().unwrap();
    });
}

#[test]
fn spawn_local_outside_of_a_set_is_a_clear_panic() {
    let message = panic_message(|| spawn_local(async {}));
    assert!(
        message.starts_with("`spawn_local` called from outside of a `task::LocalSet`"),
        "{message}"
    );
    assert!(
        message.contains("LocalSet::run_until"),
        "it says what to do: {message}"
    );
    // Also after a set has been run and left again.
    let set = LocalSet::new();
    windlass_core::block_on(set.run_until(async {}));
    panic_message(|| spawn_local(async {}));
}

#[test]
fn a_panicking_local_task_leaves_the_set_running() {
    expect_panics();
    let set = LocalSet::new();
    let panics = task::Builder::new()
        .name("local one")
        .spawn_local_on(&set, async { panic!("locally on purpose") });
    let error = windlass_core::block_on(set.run_until(panics)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("(local one) panicked with message \"locally on purpose\""),
        "{error}"
    );
    let fine = set.spawn_local(async { 1 });
    assert_eq!(windlass_core::block_on(set.run_until(fine)).unwrap(), 1);
}

#[test]
fn tasks_left_by_one_run_go_on_in_the_next() {
    let set = LocalSet::new();
    let steps = Rc::new(Cell::new(0));
    let counts = steps.clone();
    let task = set.spawn_local(async move {
        for _ in 0..1000 {
            counts.set(counts.get() + 1);
            yield_now().await;
        }
    });
    windlass_core::block_on(set.run_until(yield_now()));
    assert!(
        steps.get() > 0 && steps.get() < 1000,
        "{} steps",
        steps.get()
    );
    assert!(!task.is_finished());
    windlass_core::block_on(set.run_until(task)).unwrap();
    assert_eq!(steps.get(), 1000);
}

#[test]
fn a_set_inside_another_sets_task_keeps_the_two_apart() {
    in_time("the nested set", || {
        let outer = LocalSet::new();
        let result = windlass_core::block_on(outer.run_until(async {
            spawn_local(async {
                let inner = LocalSet::new();
                let notify = Notify::default();
                let waits = notify.clone();
                let inner_task = inner.spawn_local(async move {
                    waits.notified().await;
                    1
                });
                // Wakes a task of the inner set while the outer one runs.
                let wakes = spawn_local(async move { notify.notify() });
                let first = inner.run_until(inner_task).await.unwrap();
                wakes.await.unwrap();
                first + spawn_local(async { 1 }).await.unwrap()
            })
            .await
            .unwrap()
        }));
        assert_eq!(result, 2);
    });
}

#[test]
fn a_set_that_waits_uses_no_turns() {
    let set = LocalSet::new();
    let polls = Rc::new(Cell::new(0));
    let counts = polls.clone();
    drop(set.spawn_local(poll_fn(move |_| {
        counts.set(counts.get() + 1);
        Poll::<()>::Pending
    })));
    let notify = Notify::default();
    let waits = notify.clone();
    let runs = Arc::new(AtomicBool::new(false));
    let thread = thread::spawn({
        let notify = notify.clone();
        move || {
            eventually("the set sleeps", || notify.has_waiter());
            (0..5).for_each(|_| notify.notify());
        }
    });
    windlass_core::block_on(set.run_until(async move {
        for _ in 0..5 {
            waits.notified().await;
        }
        runs.store(true, Ordering::Relaxed);
    }));
    thread.join().unwrap();
    assert_eq!(
        polls.get(),
        1,
        "a local task that nobody woke was polled again"
    );
}

#[test]
fn a_thread_may_enter_a_set_without_running_it() {
    let (outer, inner) = (LocalSet::new(), LocalSet::new());
    let seen = Rc::new(Cell::new(0));
    let add = |amount| {
        let seen = seen.clone();
        async move { seen.set(seen.get() + amount) }
    };
    let first = outer.enter();
    spawn_local(add(1));
    let second = inner.enter();
    spawn_local(add(10));
    // In another order than the reverse one.
    drop(first);
    spawn_local(add(100));
    // A set that runs is newer than a guard, until one is made inside of it.
    windlass_core::block_on(outer.run_until(async {
        spawn_local(add(1_000)).await.unwrap();
        let inside = inner.enter();
        spawn_local(add(10_000));
        drop(inside);
        spawn_local(add(1_000)).await.unwrap();
    }));
    assert_eq!(seen.get(), 2_001);
    drop(second);
    windlass_core::block_on(inner);
    assert_eq!(seen.get(), 12_111);
    panic_message(|| spawn_local(async {}));
}

#[test]
fn a_guard_that_outlives_its_set_refuses_tasks() {
    let set = LocalSet::new();
    let guard = set.enter();
    drop(set);
    let refused = spawn_local(async { 1 });
    assert!(windlass_core::block_on(refused).unwrap_err().is_cancelled());
    // Never dropped: the thread keeps it, and nothing else.
    std::mem::forget(guard);
    let set = LocalSet::new();
    let again = set.enter();
    let own = spawn_local(async { 2 });
    assert_eq!(windlass_core::block_on(set.run_until(own)).unwrap(), 2);
    drop(again);
}

#[test]
fn a_guard_in_a_thread_local_is_dropped_with_its_thread() {
    thread_local! {
        static KEPT: RefCell<Option<LocalEnterGuard>> =
            const { RefCell::new(None) };
    }
    in_time("the thread", || {
        thread::spawn(|| {
            let set = LocalSet::new();
            KEPT.with(|kept| kept.replace(Some(set.enter())));
            spawn_local(pending::<()>());
        })
        .join()
        .unwrap();
    });
}

#[test]
fn a_local_runtime_takes_futures_that_cannot_be_sent() {
    let runtime = LocalRuntime::new().unwrap();
    let own = Rc::new(5);
    let before = {
        let _inside = runtime.enter();
        let own = own.clone();
        spawn_local(async move { *own + 1 })
    };
    let here = thread::current().id();
    let (before, sent, set) = runtime.block_on(async {
        // A task of the runtime runs beside the set, and finds it all the same.
        let sent = windlass_runtime::spawn(async {
            let local = spawn_local(async { thread::current().id() });
            local.await.unwrap()
        });
        let mut set = JoinSet::new();
        for number in 0..3 {
            let own = own.clone();
            set.spawn_local(async move { *own * number });
        }
        windlass_runtime::time::sleep(Duration::from_millis(1)).await;
        let set = set.join_all().await.into_iter().sum::<i32>();
        (before.await.unwrap(), sent.await.unwrap(), set)
    });
    assert_eq!((before, sent, set), (6, here, 15));
    runtime.spawn_local(async move {
        let _own = own;
        pending::<()>().await;
    });
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_guard_that_a_suspended_local_task_holds_hides_no_older_one() {
    let (first, second, third) = (LocalSet::new(), LocalSet::new(), LocalSet::new());
    let first_guard = first.enter();
    windlass_core::block_on(second.run_until(async {
        second.spawn_local(async move {
            let _guard = third.enter();
            pending::<()>().await;
        });
        yield_now().await;
    }));
    let own = spawn_local(async { 1 });
    assert_eq!(windlass_core::block_on(first.run_until(own)).unwrap(), 1);
    drop(first_guard);
}
