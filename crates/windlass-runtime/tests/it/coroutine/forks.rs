//! Fork-join inside of coroutines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_runtime::coroutine::{self, Builder, wait};
use windlass_runtime::fork_join::{join, par_map, scope};
use windlass_runtime::time;

use crate::support::{Gate, expect_panics, hold_worker, join as ended, runtime};

fn pause() {
    wait(time::sleep(Duration::from_micros(200)));
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn a_join_inside_a_coroutine_has_both_results() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let handles: Vec<_> = (0..8)
            .map(|_| {
                Builder::new()
                    .stack_size(1 << 20)
                    .spawn_on(runtime.handle(), || fib(18))
            })
            .collect();
        for handle in handles {
            assert_eq!(ended("it ends", handle), 2584);
        }
    }
}

/// While one coroutine is suspended in the middle of a join, others on its worker join too.
#[test]
fn coroutines_that_are_suspended_inside_of_joins_do_not_mix_up_their_halves() {
    fn tangle(number: usize, depth: u32) -> usize {
        if depth == 0 {
            pause();
            return number;
        }
        let (a, b) = join(
            || {
                coroutine::yield_now();
                tangle(number, depth - 1)
            },
            || number,
        );
        assert_eq!(b, number, "another coroutine's half");
        a
    }
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let handles: Vec<_> = (0..100)
            .map(|number| {
                Builder::new()
                    .stack_size(256 << 10)
                    .spawn_on(runtime.handle(), move || tangle(number, 5))
            })
            .collect();
        for (number, handle) in handles.into_iter().enumerate() {
            assert_eq!(ended("it ends", handle), number);
        }
    }
}

#[test]
fn scopes_inside_of_coroutines_wait_for_what_was_handed_over() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let handles: Vec<_> = (0..50)
            .map(|_| {
                Builder::new().spawn_on(runtime.handle(), || {
                    let sum = AtomicUsize::new(0);
                    scope(|s| {
                        for number in 0..10 {
                            let sum = &sum;
                            s.spawn(move |s| {
                                sum.fetch_add(number, Ordering::Relaxed);
                                s.spawn(move |_| {
                                    sum.fetch_add(100, Ordering::Relaxed);
                                });
                            });
                            if number % 3 == 0 {
                                coroutine::yield_now();
                            }
                        }
                        pause();
                        s.spawn(|_| {
                            sum.fetch_add(5, Ordering::Relaxed);
                        });
                    });
                    sum.into_inner()
                })
            })
            .collect();
        for handle in handles {
            assert_eq!(ended("it ends", handle), 45 + 1_000 + 5);
        }
    }
}

/// A thief holds the second half: the coroutine waits, and its worker runs something else.
#[test]
fn a_coroutine_that_waits_for_its_half_does_not_block_its_worker() {
    let runtime = runtime(2);
    let (inside, gate) = (Gate::default(), Gate::default());
    let (opened, held) = (inside.clone(), gate.clone());
    let coroutine = Builder::new().spawn_on(runtime.handle(), move || {
        join(
            // Until somebody has taken the other half.
            || opened.wait(),
            || {
                opened.open();
                held.wait();
            },
        );
    });
    inside.wait();
    assert_eq!(
        ended("its worker is free", runtime.spawn(async { 1 })),
        1,
        "the other worker is held"
    );
    gate.open();
    ended("it ends", coroutine);
}

/// Cancelled in the middle of `a`: the other half still ends first, and then the coroutine unwinds.
#[test]
fn a_cancelled_coroutine_leaves_a_join_only_when_both_halves_have_ended() {
    let runtime = runtime(2);
    let (began, halves) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (opened, counted) = (began.clone(), halves.clone());
    let coroutine = Builder::new().spawn_on(runtime.handle(), move || {
        let local = AtomicUsize::new(0);
        let _counted = scopeguard(|| {
            counted.store(local.load(Ordering::SeqCst), Ordering::SeqCst);
        });
        join(
            || {
                opened.open();
                wait(std::future::pending::<()>());
            },
            || {
                std::thread::sleep(Duration::from_millis(20));
                local.fetch_add(1, Ordering::SeqCst);
            },
        );
    });
    began.wait();
    coroutine.abort();
    let error = crate::support::wait("it ends", coroutine).expect_err("aborted");
    assert!(error.is_cancelled());
    assert_eq!(
        halves.load(Ordering::SeqCst),
        1,
        "`b` has run, and before the frame was gone"
    );
}

struct Guard<F: FnMut()>(F);

impl<F: FnMut()> Drop for Guard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn scopeguard<F: FnMut()>(f: F) -> Guard<F> {
    Guard(f)
}

#[test]
fn a_shutdown_in_the_middle_of_a_join_lets_the_halves_end() {
    let runtime = runtime(1);
    let (began, ran) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (opened, counted) = (began.clone(), ran.clone());
    let coroutine = Builder::new().spawn_on(runtime.handle(), move || {
        join(
            || {
                opened.open();
                wait(std::future::pending::<()>());
            },
            || {
                counted.fetch_add(1, Ordering::SeqCst);
            },
        );
    });
    began.wait();
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert!(
        crate::support::wait("resolved", coroutine)
            .expect_err("ended")
            .is_cancelled()
    );
}

#[test]
fn panics_of_halves_come_out_in_the_coroutine() {
    expect_panics();
    let runtime = runtime(2);
    for _ in 0..20 {
        let coroutine = Builder::new().spawn_on(runtime.handle(), || {
            join(
                || {
                    coroutine::yield_now();
                    1
                },
                || -> u32 { panic!("of a half, on purpose") },
            )
        });
        let error = crate::support::wait("it ends", coroutine).expect_err("it panicked");
        assert!(error.is_panic());
    }
}

/// A worker that waits for its half leaves its place to another, so that the only other worker may
/// be held for ever.
#[test]
fn a_task_that_waits_for_a_stolen_half_is_replaced() {
    let runtime = runtime(2);
    let (inside, gate) = (Gate::default(), Gate::default());
    let (opened, held) = (inside.clone(), gate.clone());
    let joining = runtime.spawn(async move {
        join(
            || opened.wait(),
            || {
                opened.open();
                held.wait();
            },
        );
    });
    inside.wait();
    // Both workers are in the join now: one holds the half, the other waits for it.
    let other = runtime.spawn(async {
        time::sleep(Duration::from_millis(1)).await;
        7
    });
    assert_eq!(ended("somebody else runs it", other), 7);
    gate.open();
    ended("it ends", joining);
}

#[test]
fn par_map_inside_a_coroutine_beside_held_workers() {
    let runtime = runtime(2);
    let (gate, held) = hold_worker(&runtime);
    // Each piece is a frame, and large without optimisation.
    let builder = Builder::new().stack_size(1 << 20);
    let coroutine = builder.spawn_on(runtime.handle(), || {
        let numbers: Vec<u64> = (0..1_000).collect();
        par_map(&numbers[..], |number| number * 2)
            .into_iter()
            .sum::<u64>()
    });
    assert_eq!(ended("it ends", coroutine), 999_000);
    gate.open();
    ended("free again", held);
}

#[test]
fn fork_join_in_simulated_coroutines_is_reproduced() {
    windlass_runtime::simulator::explore(20, || async {
        let handles: Vec<_> = (0..4u64)
            .map(|number| {
                coroutine::spawn(move || {
                    let (a, b) = join(
                        || {
                            wait(time::sleep(Duration::from_secs(number)));
                            number
                        },
                        || number * 10,
                    );
                    a + b
                })
            })
            .collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.expect("no panic");
        }
        assert_eq!(sum, 66);
    });
}
