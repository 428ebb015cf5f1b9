//! Waits inside of polls, and what a switch must not leave behind on its thread.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use windlass_runtime::coroutine::{self, CoroutineState, Finish};
use windlass_runtime::task::{LocalSet, yield_now};
use windlass_runtime::time::{self, Instant};

use crate::support::{deep, join, ms, panic_message, quiet, runtime};

#[test]
fn a_context_is_good_after_a_suspension_inside_the_poll() {
    coroutine::drive(|driver| {
        let mut waits = driver
            .coroutine(|| {
                coroutine::wait(poll_fn(|cx| {
                    coroutine::yield_now();
                    cx.waker().wake_by_ref();
                    Poll::Ready(())
                }));
            })
            .expect("a stack");
        assert_eq!(waits.resume(), CoroutineState::Suspended);
        deep(20, &mut || ());
        assert_eq!(
            deep(40, &mut || waits.resume()),
            CoroutineState::Finished(())
        );
    });
}

#[test]
fn an_async_block_may_call_a_function_that_waits() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let mut handles = Vec::new();
    for number in 0..2_000_u64 {
        handles.push(coroutine::spawn(move || {
            coroutine::wait(async move {
                for _ in 0..3 {
                    coroutine::wait(time::sleep(Duration::from_micros(number % 300)));
                    yield_now().await;
                }
                number
            })
        }));
        handles.push(windlass_runtime::spawn(async move {
            for _ in 0..3 {
                yield_now().await;
            }
            number
        }));
    }
    let sum: u64 = handles
        .into_iter()
        .map(|handle| join("a wait inside of a poll", handle))
        .sum();
    assert_eq!(sum, 2 * (0..2_000).sum::<u64>());
}

#[test]
fn a_local_coroutine_is_suspended_inside_a_poll_at_any_depth() {
    let set = LocalSet::new();
    windlass_core::block_on(async {
        let first = Cell::new(true);
        let waits = set.run_until(async {
            coroutine::spawn_local(move || {
                coroutine::wait(poll_fn(move |cx| {
                    if first.replace(false) {
                        (0..3).for_each(|_| coroutine::yield_now());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Ready(())
                }));
            })
            .await
        });
        let mut waits = std::pin::pin!(waits);
        let mut polls = 0;
        let ended = poll_fn(|cx| {
            polls += 1;
            deep([40, 0, 10, 1, 30][polls % 5], &mut || {
                waits.as_mut().poll(cx)
            })
        });
        ended.await.expect("it ends");
    });
}

#[test]
fn deadlines_stay_with_the_coroutine_that_is_inside_of_them() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let handles: Vec<_> = (1..=8_u64)
        .map(|number| {
            coroutine::spawn(move || {
                let at = Instant::now() + Duration::from_secs(1_000 * number);
                coroutine::wait(time::deadline(at, async move {
                    for _ in 0..20 {
                        coroutine::wait(time::sleep(Duration::from_micros(50 * number)));
                        assert_eq!(time::current_deadline(), Some(at));
                    }
                }))
                .expect("the deadline is far away");
                assert_eq!(time::current_deadline(), None);
            })
        })
        .collect();
    for handle in handles {
        join("a coroutine inside of a deadline", handle);
    }
}

windlass_runtime::task_local! {
    static NUMBER: u64;
}

#[test]
fn task_locals_stay_with_the_coroutine_that_set_them() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let handles: Vec<_> = (1..=8_u64)
        .map(|number| {
            coroutine::spawn(move || {
                NUMBER.sync_scope(number, || {
                    NUMBER.sync_scope(number + 100, || {
                        // The value is lent while the coroutine is suspended.
                        NUMBER.with(|seen| {
                            for _ in 0..20 {
                                coroutine::wait(time::sleep(Duration::from_micros(50 * number)));
                                assert_eq!(*seen, number + 100);
                                assert_eq!(NUMBER.get(), number + 100);
                            }
                        });
                    });
                    assert_eq!(NUMBER.get(), number);
                });
                assert!(NUMBER.try_with(|_| ()).is_err());
            })
        })
        .collect();
    for handle in handles {
        join("a coroutine with a task-local", handle);
    }
}

#[test]
fn a_coroutine_driven_by_hand_is_not_suspended_by_a_task_it_runs() {
    let finished = coroutine::drive(|driver| {
        let mut runs_a_set = driver
            .coroutine(|| {
                let set = LocalSet::new();
                let inside = set.spawn_local(poll_fn(|_| {
                    coroutine::yield_now(); // not the coroutine's own code: it is a task's
                    Poll::Ready(())
                }));
                coroutine::wait(set.run_until(inside)).expect("it ends");
            })
            .expect("a stack");
        let mut resumes = 0;
        while runs_a_set.resume() == CoroutineState::Suspended {
            resumes += 1;
            assert!(resumes < 100, "it ends");
        }
        runs_a_set.is_finished()
    });
    assert!(finished);
    // The thread is in no task.
    assert_eq!(windlass_core::block_on(async { 1 }), 1);
}

#[test]
fn turns_of_local_tasks_in_coroutines_that_take_turns_are_not_mixed_up() {
    coroutine::drive(|driver| {
        let steps = |yields: u32| {
            let run = move || {
                let set = LocalSet::new();
                let polled = set.spawn_local(poll_fn(move |_| {
                    // Inside of the turn of a task that is not the coroutine's own.
                    (0..yields).for_each(|_| coroutine::yield_now());
                    Poll::Ready(())
                }));
                let _ = coroutine::wait(set.run_until(polled));
            };
            driver.with_stack_size(256 << 10, run).expect("a stack")
        };
        let (mut first, mut second) = (steps(1), steps(2));
        for _ in 0..100 {
            for steps in [&mut first, &mut second] {
                if !steps.is_finished() {
                    let _ = steps.resume();
                }
            }
        }
        assert!(first.is_finished() && second.is_finished());
    });
    assert!(
        !windlass_core::context::in_task(),
        "no task has its turn here"
    );
}

#[test]
fn a_coroutine_does_not_change_from_a_thread_to_a_worker() {
    quiet();
    let simulated = windlass_runtime::Runtime::simulated(7);
    coroutine::drive(|driver| {
        let mut on_worker = driver
            .coroutine(|| {
                windlass_runtime::fork_join::join(coroutine::yield_now, || ());
            })
            .expect("a stack");
        simulated.block_on(async {
            assert_eq!(on_worker.resume(), CoroutineState::Suspended);
        });
        let message = panic_message(|| {
            let _ = on_worker.resume();
        });
        assert!(message.contains("goes on where it began"), "{message}");
        simulated.block_on(async {
            assert_eq!(on_worker.resume(), CoroutineState::Finished(()));
        });
    });
}

#[test]
fn a_task_that_swallows_its_cancellation_is_leaked_and_named() {
    let runtime = runtime(1);
    let endless = coroutine::Builder::new()
        .name("endless")
        .spawn_on(runtime.handle(), || {
            loop {
                let _ = catch_unwind(|| coroutine::wait(time::sleep(ms(1))));
            }
        });
    std::thread::sleep(ms(20));
    endless.abort();
    assert!(windlass_core::block_on(endless).is_err());
    let report = runtime.shutdown(ms(5_000));
    assert!(report.to_string().contains("endless"), "{report}");
}

#[test]
fn finishing_a_coroutine_inside_of_another_ends_the_right_one() {
    coroutine::drive(|driver| {
        let mut outer = driver
            .coroutine(|| {
                coroutine::drive(|inner_driver| {
                    let mut inner = inner_driver
                        .coroutine(|| {
                            loop {
                                coroutine::yield_now();
                            }
                        })
                        .expect("a stack");
                    assert_eq!(inner.resume(), CoroutineState::<()>::Suspended);
                    coroutine::yield_now();
                    assert_eq!(inner.finish(), Finish::Ended);
                });
                7
            })
            .expect("a stack");
        assert_eq!(outer.resume(), CoroutineState::Suspended);
        assert_eq!(outer.resume(), CoroutineState::Finished(7));
    });
}

#[test]
fn a_destructor_of_a_cancelled_local_coroutine_may_wait() {
    struct WaitsInDrop;
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            coroutine::wait(std::future::ready(()));
            coroutine::wait(time::sleep(ms(1)));
        }
    }
    let runtime = runtime(1);
    let set = LocalSet::new();
    runtime.block_on(set.run_until(async {
        let waits = coroutine::spawn_local(|| {
            let _waits = WaitsInDrop;
            coroutine::wait(std::future::pending::<()>());
        });
        yield_now().await;
        yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
    }));
}

#[test]
fn finishing_a_coroutine_while_the_thread_unwinds_is_put_off() {
    quiet();
    struct FinishesInDrop<'d>(Option<coroutine::Coroutine<'d, ()>>);
    impl Drop for FinishesInDrop<'_> {
        fn drop(&mut self) {
            let finished = self.0.take().map(coroutine::Coroutine::finish);
            assert_eq!(finished, Some(Finish::Later));
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let inner = ended.clone();
    let message = panic_message(move || {
        coroutine::drive(|driver| {
            let mut waits = driver
                .coroutine(move || {
                    while catch_unwind(coroutine::yield_now).is_ok() {}
                    inner.store(true, SeqCst);
                })
                .expect("a stack");
            let _ = waits.resume();
            let _finishes = FinishesInDrop(Some(waits));
            panic!("first, on purpose");
        });
    });
    assert!(ended.load(SeqCst), "at the end of drive");
    assert_eq!(message, "first, on purpose");
}

#[test]
fn a_scope_child_whose_closure_panics_when_it_is_dropped_has_an_end() {
    quiet();
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("in a closure, on purpose");
        }
    }
    let runtime = runtime(1);
    let joined = coroutine::Builder::new().spawn_on(runtime.handle(), || {
        coroutine::scope(|s| {
            let loud = Loud;
            let child = s.spawn(move || drop(loud));
            child.abort();
            matches!(child.join(), Err(coroutine::ScopeError::Panicked(_)))
        })
    });
    assert!(join("a child that never began", joined));
}

#[test]
fn destructors_that_wait_do_not_use_up_each_others_stack() {
    struct WaitsInDrop;
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            coroutine::wait(time::sleep(ms(20)));
        }
    }
    let runtime = runtime(1);
    let handles: Vec<_> = (0..30)
        .map(|_| {
            let output = runtime.spawn(async { WaitsInDrop });
            coroutine::Builder::new().spawn_on(runtime.handle(), move || {
                while !output.is_finished() {
                    coroutine::yield_now();
                }
                drop(output);
            })
        })
        .collect();
    for handle in handles {
        join("a destructor that waits", handle);
    }
}
