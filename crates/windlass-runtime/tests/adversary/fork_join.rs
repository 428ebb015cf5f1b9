//! Frames that lend to other threads, and what could make them leave too early.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::time::Instant;

use windlass_runtime::coroutine::{self, CoroutineState};
use windlass_runtime::task::shield;
use windlass_runtime::{Runtime, fork_join, time};

use crate::support::{join, ms, panic_message, quiet, runtime};

/// Takes all shields that the running task can have.
fn take_all_shields() -> Vec<Pin<Box<dyn Future<Output = ()>>>> {
    (0..255)
        .map(|_| {
            let mut kept: Pin<Box<dyn Future<Output = ()>>> = Box::pin(shield(pending()));
            let _ = kept.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            kept
        })
        .collect()
}

/// A closure that looks at `data` for a while after it has set `begun`.
fn look_at<'a>(data: &'a [u8], begun: &'a AtomicBool) -> impl FnOnce() + Send + 'a {
    move || {
        begun.store(true, SeqCst);
        for _ in 0..10 {
            std::thread::sleep(ms(5));
            assert!(data.len() == 100 && data.iter().all(|byte| *byte == 1));
        }
    }
}

fn until(begun: &AtomicBool) {
    while !begun.load(SeqCst) {
        std::thread::yield_now();
    }
}

#[test]
fn a_coroutine_scope_waits_for_its_children_with_all_shields_taken() {
    quiet();
    let runtime = runtime(2);
    let left = coroutine::Builder::new().spawn_on(runtime.handle(), || {
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let left = catch_unwind(AssertUnwindSafe(|| {
            let _shields = take_all_shields();
            let data = vec![1; 100];
            coroutine::scope(|s| {
                s.spawn(|| {
                    look_at(&data, &begun)();
                    ended.store(true, SeqCst);
                });
                until(&begun);
                panic!("the scope's own code fails, on purpose");
            });
        }));
        assert!(left.is_err());
        ended.load(SeqCst)
    });
    assert!(join("a scope whose code panics", left));
}

#[test]
fn a_join_waits_for_its_half_with_all_shields_taken() {
    let runtime = runtime(2);
    let joined = coroutine::Builder::new().spawn_on(runtime.handle(), || {
        let begun = AtomicBool::new(false);
        let _shields = take_all_shields();
        let data = vec![1; 100];
        fork_join::join(|| until(&begun), look_at(&data, &begun));
    });
    join("a join", joined);
}

#[test]
fn a_coroutine_scope_is_refused_in_the_future_of_a_block_on() {
    quiet();
    for runtime in [runtime(2), Runtime::simulated(1)] {
        let spawned = AtomicBool::new(false);
        let message = panic_message(|| {
            runtime.block_on(async {
                coroutine::scope(|s| {
                    spawned.store(true, SeqCst);
                    s.spawn(|| ());
                });
            });
        });
        assert!(message.contains("coroutine::scope"), "{message}");
        assert!(
            !spawned.load(SeqCst),
            "it is refused before anything is spawned"
        );
    }
}

#[test]
fn a_join_in_a_destructor_waits_while_the_thread_unwinds() {
    quiet();
    struct JoinsInDrop(Arc<AtomicBool>);
    impl Drop for JoinsInDrop {
        fn drop(&mut self) {
            let ended = self.0.clone();
            coroutine::wait(async move {
                let begun = AtomicBool::new(false);
                let data = vec![1; 100];
                fork_join::join(|| until(&begun), look_at(&data, &begun));
                ended.store(true, SeqCst);
            });
        }
    }
    let runtime = runtime(2);
    let ended = Arc::new(AtomicBool::new(false));
    let inner = ended.clone();
    let task = runtime.spawn(async move {
        coroutine::drive(|driver| {
            let mut panics = driver
                .with_stack_size::<()>(1 << 20, || {
                    let _joins = JoinsInDrop(inner);
                    panic!("first, on purpose");
                })
                .expect("a stack");
            assert!(catch_unwind(AssertUnwindSafe(|| panics.resume())).is_err());
        });
    });
    join("a join in a destructor", task);
    assert!(ended.load(SeqCst));
}

#[test]
fn a_scope_in_a_destructor_inside_a_block_on_is_refused() {
    quiet();
    struct ScopeInDrop;
    impl Drop for ScopeInDrop {
        fn drop(&mut self) {
            let refused = catch_unwind(|| coroutine::scope(|s| drop(s.spawn(|| ()))));
            assert!(refused.is_err());
        }
    }
    let simulated = Runtime::simulated(1);
    simulated.block_on(async {
        coroutine::drive(|driver| {
            let mut panics = driver
                .with_stack_size::<()>(1 << 20, || {
                    let _scope = ScopeInDrop;
                    panic!("first, on purpose");
                })
                .expect("a stack");
            assert!(catch_unwind(AssertUnwindSafe(|| panics.resume())).is_err());
        });
    });
}

#[test]
fn what_a_returning_coroutine_leaves_in_the_deque_is_run() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let done =
            coroutine::Builder::new()
                .stack_size(256 << 10)
                .spawn_on(runtime.handle(), || {
                    let (returned, ran) = (AtomicBool::new(false), AtomicBool::new(false));
                    let half = AtomicBool::new(false);
                    fork_join::scope(|forks| {
                        coroutine::scope(|s| {
                            s.spawn(|| {
                                forks.spawn(|_| ran.store(true, SeqCst));
                                returned.store(true, SeqCst);
                            });
                            while !returned.load(SeqCst) {
                                coroutine::wait(time::sleep(ms(1)));
                            }
                            let began = Instant::now();
                            fork_join::join(
                                || {
                                    while !half.load(SeqCst) && began.elapsed() < ms(100) {
                                        std::thread::yield_now();
                                    }
                                },
                                || half.store(true, SeqCst),
                            );
                        });
                    });
                    ran.load(SeqCst)
                });
        assert!(join("a job of a coroutine that has returned", done));
    }
}

#[test]
fn a_coroutine_driven_by_hand_inside_a_join_takes_no_half_of_it() {
    for runtime in [runtime(1), runtime(2)] {
        let task = runtime.spawn(async {
            let sum = std::sync::atomic::AtomicU32::new(0);
            fork_join::join(
                || {
                    coroutine::drive(|driver| {
                        let mut steps = driver
                            .with_stack_size(256 << 10, || {
                                let (a, b) = fork_join::join(
                                    || {
                                        coroutine::yield_now();
                                        1
                                    },
                                    || 2,
                                );
                                coroutine::yield_now();
                                a + b
                            })
                            .expect("a stack");
                        let mut resumes = 0;
                        loop {
                            resumes += 1;
                            assert!(resumes < 1_000_000, "it ends");
                            if let CoroutineState::Finished(value) = steps.resume() {
                                sum.fetch_add(value, SeqCst);
                                return;
                            }
                        }
                    });
                },
                || sum.fetch_add(10, SeqCst),
            );
            sum.into_inner()
        });
        assert_eq!(join("a join around a coroutine driven by hand", task), 13);
    }
    let simulated = Runtime::simulated(3);
    let sum = simulated.block_on(async {
        coroutine::drive(|driver| {
            let mut steps = driver
                .with_stack_size(256 << 10, || {
                    fork_join::join(coroutine::yield_now, || ());
                    5
                })
                .expect("a stack");
            assert_eq!(steps.resume(), CoroutineState::Suspended);
            steps.resume()
        })
    });
    assert_eq!(sum, CoroutineState::Finished(5));
}

#[test]
fn a_coroutine_driven_by_hand_ends_after_the_job_that_borrows_from_it() {
    let runtime = runtime(2);
    let task = runtime.spawn(async {
        coroutine::drive(|driver| {
            let begun = Arc::new(AtomicBool::new(false));
            let inner = begun.clone();
            let mut joins = driver
                .with_stack_size(256 << 10, move || {
                    let data = vec![1u8; 100];
                    // Its own half does not yield, so that the other one is stolen, and is over
                    // first, so that it waits for that.
                    fork_join::join(|| until(&inner), look_at(&data, &inner));
                    coroutine::yield_now();
                })
                .expect("a stack");
            assert_eq!(joins.resume(), CoroutineState::Suspended);
            assert!(begun.load(SeqCst));
            joins.finish()
        })
    });
    let finished = join("a coroutine that is dropped after a join", task);
    assert_eq!(finished, coroutine::Finish::Ended);
}
