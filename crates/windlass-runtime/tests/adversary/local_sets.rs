//! Local sets inside of coroutines.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use windlass_runtime::coroutine::{self, CoroutineState};
use windlass_runtime::task::{LocalSet, spawn_local};
use windlass_runtime::time;

use crate::support::{deep, join, on_a_thread, panic_message, quiet, runtime};

#[test]
fn sets_of_coroutines_that_take_turns_are_not_mixed_up() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    for round in 0..20_u64 {
        let handles: Vec<_> = (0..8_u64)
            .map(|number| {
                coroutine::Builder::new()
                    .stack_size(256 << 10)
                    .spawn(move || {
                        let wait = |us| coroutine::wait(time::sleep(Duration::from_micros(us)));
                        let set = Box::new(LocalSet::new());
                        let seen = coroutine::wait(set.run_until(async move {
                            wait((number * 97 + round * 13) % 400);
                            let inside = spawn_local(async move { number });
                            wait((number * 61) % 300);
                            inside.await
                        }));
                        drop(set);
                        seen.expect("no other set cancels it")
                    })
            })
            .collect();
        for (number, handle) in handles.into_iter().enumerate() {
            assert_eq!(join("a set of its own", handle), number as u64);
        }
    }
}

#[test]
fn no_freed_set_is_left_on_the_thread() {
    quiet();
    coroutine::drive(|driver| {
        let make = |yields: u32| {
            driver
                .coroutine(move || {
                    let set = LocalSet::new();
                    coroutine::wait(set.run_until(poll_fn(|_| {
                        (0..yields).for_each(|_| coroutine::yield_now());
                        Poll::Ready(())
                    })));
                })
                .expect("a stack")
        };
        let (mut first, mut second) = (make(1), make(2));
        assert_eq!(first.resume(), CoroutineState::Suspended);
        assert_eq!(second.resume(), CoroutineState::Suspended);
        assert_eq!(first.resume(), CoroutineState::Finished(()));
        assert_eq!(second.resume(), CoroutineState::Suspended);
        assert_eq!(second.resume(), CoroutineState::Finished(()));
    });
    deep(20, &mut || ());
    let message = panic_message(|| drop(spawn_local(async {})));
    assert!(
        message.contains("outside of a `task::LocalSet`"),
        "{message}"
    );
}

#[test]
fn a_local_coroutine_goes_on_in_another_block_on_of_its_thread() {
    let set = LocalSet::new();
    let mut waits = None;
    windlass_core::block_on(set.run_until(async {
        waits = Some(coroutine::spawn_local(|| {
            for _ in 0..10 {
                coroutine::yield_now();
            }
            7
        }));
        windlass_runtime::task::yield_now().await;
    }));
    let waits = waits.expect("it was spawned");
    assert_eq!(windlass_core::block_on(set.run_until(waits)).unwrap(), 7);
}

#[test]
fn dropping_a_set_ends_although_a_coroutine_swallows_it() {
    on_a_thread(|| {
        let set = LocalSet::new();
        windlass_core::block_on(set.run_until(async {
            drop(coroutine::spawn_local(|| {
                loop {
                    let _ = std::panic::catch_unwind(coroutine::yield_now);
                }
            }));
            windlass_runtime::task::yield_now().await;
        }));
        drop(set);
    });
}

/// A simulation has one thread: nothing can wait there for the child of a scope.
#[test]
fn a_set_that_is_dropped_in_a_simulation_while_a_scope_waits_does_not_hang() {
    // A coroutine that is leaked keeps its thread.
    let ((), _stays) = on_a_thread(|| {
        let runtime = windlass_runtime::Runtime::simulated(1);
        runtime.block_on(async {
            let set = LocalSet::new();
            set.run_until(async {
                let _waits = coroutine::spawn_local(|| {
                    coroutine::scope(|scope| {
                        scope.spawn(|| coroutine::wait(time::sleep(Duration::from_millis(5))));
                    });
                });
                for _ in 0..4 {
                    windlass_runtime::task::yield_now().await;
                }
            })
            .await;
            drop(set);
        });
    });
}
