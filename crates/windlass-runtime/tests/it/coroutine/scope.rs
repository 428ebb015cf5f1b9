//! Coroutines that borrow from their parent's stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_runtime::coroutine::{Builder, ScopeError, scope, spawn, wait, yield_now};
use windlass_runtime::{Runtime, coroutine, time};

use super::cancel::assert_no_worker_panics;
use crate::support::{Drops, Gate, expect_panics, in_time, join, runtime, text};

fn pause() {
    wait(time::sleep(Duration::from_millis(1)));
}

#[test]
fn children_borrow_and_the_scope_waits_for_them() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let handle = spawn(|| {
        let mut numbers = [1u64, 2, 3, 4, 5, 6, 7, 8];
        let sum = AtomicUsize::new(0);
        scope(|s| {
            for half in numbers.chunks_mut(4) {
                let sum = &sum;
                s.spawn(move || {
                    for number in half.iter_mut() {
                        *number *= 10;
                        yield_now();
                        sum.fetch_add(*number as usize, Ordering::Relaxed);
                    }
                });
            }
        });
        (numbers, sum.into_inner())
    });
    let (numbers, sum) = join("the scope ends", handle);
    assert_eq!(numbers, [10, 20, 30, 40, 50, 60, 70, 80]);
    assert_eq!(sum, 360);
}

#[test]
fn on_one_worker_a_waiting_parent_does_not_block_its_children() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let handle = spawn(|| {
        let text = String::from("borrowed");
        scope(|s| {
            let handles: Vec<_> = (0..100)
                .map(|_| {
                    s.spawn(|| {
                        pause();
                        text.len()
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| handle.join().expect("no panic"))
                .sum::<usize>()
        })
    });
    assert_eq!(join("the scope ends", handle), 800);
}

#[test]
fn children_may_start_children_and_scopes_nest() {
    fn count(depth: u32) -> usize {
        if depth == 0 {
            return 1;
        }
        let total = AtomicUsize::new(0);
        scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    total.fetch_add(count(depth - 1), Ordering::Relaxed);
                });
            }
        });
        total.into_inner()
    }
    let runtime = runtime(2);
    let handle = Builder::new()
        .stack_size(256 << 10)
        .spawn_on(runtime.handle(), || count(5));
    assert_eq!(join("all end", handle), 3usize.pow(5));
    let handle = Builder::new().spawn_on(runtime.handle(), || {
        let seen = AtomicUsize::new(0);
        scope(|s| {
            s.spawn(|| {
                pause();
                s.spawn(|| {
                    pause();
                    seen.fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        seen.into_inner()
    });
    assert_eq!(join("a late child ends too", handle), 1);
}

#[test]
fn a_plain_thread_may_open_a_scope() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let sum = in_time("it ends", move || {
        let _entered = handle.enter();
        let numbers = [1, 2, 3];
        scope(|s| {
            let first = s.spawn(|| numbers[0] + numbers[1]);
            let second = s.spawn(|| numbers[2]);
            first.join().expect("no panic") + second.join().expect("no panic")
        })
    });
    assert_eq!(sum, 6);
}

#[test]
fn the_panic_of_a_child_goes_to_its_handle_or_else_out_of_the_scope() {
    expect_panics();
    let runtime = runtime(2);
    let handle = Builder::new().spawn_on(runtime.handle(), || {
        let drops = Drops::default();
        let joined = scope(|s| {
            let child = s.spawn(|| -> u32 { panic!("joined, on purpose") });
            let error = child.join().expect_err("it panicked");
            matches!(error, ScopeError::Panicked(payload) if text(&*payload).contains("joined"))
        });
        let unjoined = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                let guard = drops.guard();
                s.spawn(|| {
                    pause();
                    panic!("not joined, on purpose");
                });
                s.spawn(move || {
                    let _guard = guard;
                    for _ in 0..5 {
                        pause();
                    }
                });
            });
        }));
        let message = text(&*unjoined.expect_err("it panicked"));
        (joined, message, drops.count())
    });
    let (joined, message, siblings) = join("it ends", handle);
    assert!(joined);
    assert_eq!(message, "not joined, on purpose");
    assert_eq!(siblings, 1, "the sibling ended before the scope did");
}

#[test]
fn a_cancelled_child_tells_its_handle() {
    let runtime = runtime(2);
    let handle = Builder::new().spawn_on(runtime.handle(), || {
        scope(|s| {
            let child = s.spawn(|| wait(std::future::pending::<()>()));
            yield_now();
            child.abort();
            matches!(child.join(), Err(ScopeError::Cancelled))
        })
    });
    assert!(join("it ends", handle));
}

#[test]
fn a_cancelled_scope_refuses_to_start_more() {
    let runtime = runtime(2);
    let handle = Builder::new().spawn_on(runtime.handle(), || {
        let ran = AtomicUsize::new(0);
        scope(|s| {
            s.cancel();
            let late = s.spawn(|| {
                pause();
                ran.fetch_add(1, Ordering::Relaxed);
            });
            assert!(matches!(late.join(), Err(ScopeError::Cancelled)));
        });
        ran.into_inner()
    });
    assert_eq!(join("it ends", handle), 0);
}

#[test]
fn a_forgotten_handle_does_not_hold_the_scope() {
    let runtime = runtime(2);
    let handle = Builder::new().spawn_on(runtime.handle(), || {
        let drops = Drops::default();
        scope(|s| {
            let guard = drops.guard();
            std::mem::forget(s.spawn(move || {
                pause();
                drop(guard);
            }));
        });
        drops.count()
    });
    assert_eq!(join("it ends", handle), 1);
}

/// What happens to the parent of a scope.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Panic,
    Cancel,
    Shutdown,
}

/// Where its child is when that happens.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Idle,
    WaitingOnChildren,
    InADrop,
    InExternC,
}

/// A destructor that waits: on its own in the middle of the child, or while the child unwinds.
struct SlowDrop<'a>(&'a AtomicUsize);

impl Drop for SlowDrop<'_> {
    fn drop(&mut self) {
        wait(time::sleep(Duration::from_millis(5)));
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

extern "C" fn call_back(f: extern "C" fn()) {
    f();
}

extern "C" fn wait_in_c() {
    wait(time::sleep(Duration::from_millis(20)));
}

fn child(place: Place, ended: &AtomicUsize, began: &Gate) {
    let _ended = SlowDrop(ended);
    match place {
        Place::Idle => {
            began.open();
            wait(std::future::pending::<()>());
        }
        Place::WaitingOnChildren => scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let _ended = SlowDrop(ended);
                    began.open();
                    wait(std::future::pending::<()>());
                });
            }
        }),
        Place::InADrop => {
            struct Long<'a>(&'a Gate);
            impl Drop for Long<'_> {
                fn drop(&mut self) {
                    self.0.open();
                    wait(time::sleep(Duration::from_millis(30)));
                }
            }
            drop(Long(began));
            wait(std::future::pending::<()>());
        }
        Place::InExternC => {
            began.open();
            coroutine::foreign(|| call_back(wait_in_c));
            wait(std::future::pending::<()>());
        }
    }
}

fn check(event: Event, place: Place) {
    const WORKERS: usize = 2;
    let runtime: Runtime = runtime(WORKERS);
    let (ended, returned) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (began, go_on) = (Gate::default(), Gate::default());
    let handle = {
        let (ended, returned) = (ended.clone(), returned.clone());
        let (began, go_on) = (began.clone(), go_on.clone());
        Builder::new().spawn_on(runtime.handle(), move || {
            let borrowed = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                scope(|s| {
                    s.spawn(|| {
                        child(place, &borrowed, &began);
                    });
                    if event == Event::Panic {
                        while !go_on.is_open() {
                            pause();
                        }
                        panic!("of a parent, on purpose");
                    }
                });
            }));
            // Whatever happened, the children are gone: what they borrowed can be read and dropped.
            ended.store(borrowed.into_inner(), Ordering::SeqCst);
            returned.fetch_add(1, Ordering::SeqCst);
            if let Err(payload) = result {
                std::panic::resume_unwind(payload);
            }
        })
    };
    began.wait();
    let expected = if place == Place::WaitingOnChildren {
        3
    } else {
        1
    };
    let error = match event {
        Event::Panic => {
            go_on.open();
            let error = crate::support::wait("the parent ends", handle).expect_err("it panicked");
            assert!(error.is_panic(), "{event:?} {place:?}: {error}");
            error
        }
        Event::Cancel => {
            handle.abort();
            crate::support::wait("the parent ends", handle).expect_err("it was cancelled")
        }
        Event::Shutdown => {
            let report = runtime.shutdown(Duration::from_secs(5));
            assert!(report.is_clean(), "{event:?} {place:?}: {report}");
            let error = crate::support::wait("resolved", handle).expect_err("it was cancelled");
            assert_eq!(returned.load(Ordering::SeqCst), 1, "{event:?} {place:?}");
            assert!(error.is_cancelled());
            let ended = ended.load(Ordering::SeqCst);
            assert!(
                ended <= expected && ended >= 1,
                "{event:?} {place:?}: {ended}"
            );
            return;
        }
    };
    assert!(event == Event::Panic || error.is_cancelled(), "{error}");
    assert_eq!(returned.load(Ordering::SeqCst), 1, "{event:?} {place:?}");
    let ended = ended.load(Ordering::SeqCst);
    assert!(
        ended <= expected && ended >= 1,
        "{event:?} {place:?}: {ended}"
    );
    assert_no_worker_panics(&runtime, WORKERS);
    assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
}

#[test]
fn a_parent_that_panics_outlives_its_children_wherever_they_are() {
    expect_panics();
    for place in [
        Place::Idle,
        Place::WaitingOnChildren,
        Place::InADrop,
        Place::InExternC,
    ] {
        check(Event::Panic, place);
    }
}

#[test]
fn a_parent_that_is_cancelled_outlives_its_children_wherever_they_are() {
    for place in [
        Place::Idle,
        Place::WaitingOnChildren,
        Place::InADrop,
        Place::InExternC,
    ] {
        check(Event::Cancel, place);
    }
}

#[test]
fn a_parent_in_a_shutdown_outlives_its_children_wherever_they_are() {
    for place in [
        Place::Idle,
        Place::WaitingOnChildren,
        Place::InADrop,
        Place::InExternC,
    ] {
        check(Event::Shutdown, place);
    }
}

/// A scope inside a destructor that runs because its coroutine unwinds.
#[test]
fn a_scope_in_a_destructor_during_unwinding_still_waits() {
    struct Scoped(Arc<AtomicUsize>);
    impl Drop for Scoped {
        fn drop(&mut self) {
            let local = AtomicUsize::new(0);
            scope(|s| {
                s.spawn(|| {
                    yield_now();
                    local.fetch_add(1, Ordering::SeqCst);
                });
            });
            self.0.fetch_add(local.into_inner(), Ordering::SeqCst);
        }
    }
    let runtime = runtime(2);
    let (seen, began) = (Arc::new(AtomicUsize::new(0)), Gate::default());
    let (scoped, opened) = (Scoped(seen.clone()), began.clone());
    let handle = Builder::new().spawn_on(runtime.handle(), move || {
        let _scoped = scoped;
        opened.open();
        wait(std::future::pending::<()>());
    });
    began.wait();
    handle.abort();
    let error = crate::support::wait("it ends", handle).expect_err("aborted");
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert_no_worker_panics(&runtime, 2);
}

#[test]
fn scopes_run_in_a_simulation() {
    windlass_runtime::simulator::explore(20, || async {
        let total = spawn(|| {
            let numbers: Vec<u64> = (1..=10).collect();
            scope(|s| {
                let halves: Vec<_> = numbers
                    .chunks(5)
                    .map(|half| {
                        s.spawn(move || {
                            wait(time::sleep(Duration::from_secs(half[0])));
                            half.iter().sum::<u64>()
                        })
                    })
                    .collect();
                halves
                    .into_iter()
                    .map(|half| half.join().expect("no panic"))
                    .sum::<u64>()
            })
        });
        assert_eq!(total.await.expect("no panic"), 55);
    });
}
