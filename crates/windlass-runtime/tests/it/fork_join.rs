//! Fork-join: results, panics, borrowed data, who runs what, and tasks beside it.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use windlass_runtime::fork_join::{
    Flow, FlowError, Scope, join, par_for_each, par_map, scope, with_grain,
};
use windlass_runtime::{Runtime, spawn_blocking, time};

use crate::support::{
    Drops, Gate, Guard, eventually, expect_panics, in_time, join as ended, panic_message, runtime,
    spin_for, spin_until,
};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn sort<T: Ord + Send>(items: &mut [T]) {
    if items.len() < 2 {
        return;
    }
    let last = items.len() - 1;
    let mut middle = 0;
    for index in 0..last {
        if items[index] <= items[last] {
            items.swap(index, middle);
            middle += 1;
        }
    }
    items.swap(middle, last);
    let (left, right) = items.split_at_mut(middle);
    join(|| sort(left), || sort(&mut right[1..]));
}

fn scrambled(count: usize) -> Vec<usize> {
    (0..count).map(|index| index * 7919 % count).collect()
}

/// Runs `f` in a task of a runtime with this many workers, in time.
fn on_worker<T: Send + 'static>(workers: usize, f: impl FnOnce() -> T + Send + 'static) -> T {
    let runtime = runtime(workers);
    let result = ended("the fork-join", runtime.spawn(async move { f() }));
    assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
    result
}

fn forks_stolen(runtime: &Runtime) -> u64 {
    let workers = runtime.handle().snapshot().pool.workers;
    workers.iter().map(|worker| worker.forks_stolen).sum()
}

/// Two halves that each wait until the other has begun: they run on two threads or not at all.
fn meet() -> (thread::ThreadId, thread::ThreadId) {
    let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
    let begin = |own: &AtomicBool, other: &AtomicBool| {
        own.store(true, Ordering::SeqCst);
        spin_until(|| other.load(Ordering::SeqCst));
        assert!(other.load(Ordering::SeqCst), "nobody took the other half");
        thread::current().id()
    };
    join(|| begin(&left, &right), || begin(&right, &left))
}

#[test]
fn the_results_are_those_of_sequential_code() {
    for workers in [1, 2, 4] {
        assert_eq!(on_worker(workers, || fib(22)), 17_711);
        let sorted = on_worker(workers, || {
            let mut items = scrambled(20_000);
            sort(&mut items);
            items
        });
        assert!(sorted.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(sorted.len(), 20_000);
    }
}

#[test]
fn a_stolen_half_runs_on_another_worker_and_is_counted() {
    let runtime = runtime(2);
    for _ in 0..20 {
        let (left, right) = ended("both halves", runtime.spawn(async { meet() }));
        assert_ne!(left, right);
    }
    assert!(forks_stolen(&runtime) >= 20);
    let mut dump = Vec::new();
    runtime.handle().debug_dump(&mut dump).unwrap();
    assert!(String::from_utf8(dump).unwrap().contains("StealJob"));
}

#[test]
fn halves_of_halves_meet_on_four_workers() {
    on_worker(4, || {
        let all = Barrier::new(4);
        let leaf = || {
            all.wait();
        };
        join(|| join(leaf, leaf), || join(leaf, leaf));
    });
}

#[test]
fn one_worker_runs_both_halves_in_order() {
    let log = on_worker(1, || {
        let log = Mutex::new(Vec::new());
        let note = |number| log.lock().unwrap().push(number);
        join(
            || {
                join(|| note(1), || note(2));
            },
            || note(3),
        );
        log.into_inner().unwrap()
    });
    assert_eq!(log, [1, 2, 3]);
}

#[test]
fn a_recursion_of_1_000_joins_works() {
    fn down(depth: u64, left: bool) -> u64 {
        if depth == 0 {
            return 0;
        }
        let (a, b) = if left {
            join(|| down(depth - 1, left), || 1)
        } else {
            join(|| 1, || down(depth - 1, left))
        };
        a + b
    }
    for (workers, left) in [(1, true), (1, false), (2, true), (2, false)] {
        assert_eq!(on_worker(workers, move || down(1_000, left)), 1_000);
    }
}

#[test]
fn a_panic_is_resumed_after_both_halves_have_ended() {
    expect_panics();
    for workers in [1, 2] {
        for (a, b) in [(true, false), (false, true), (true, true)] {
            let (message, ends) = on_worker(workers, move || {
                let ends = AtomicUsize::new(0);
                let half = |panics: bool, message: &'static str| {
                    spin_for(Duration::from_micros(50));
                    ends.fetch_add(1, Ordering::SeqCst);
                    assert!(!panics, "{message}");
                };
                let message = panic_message(|| {
                    join(
                        || half(a, "a panics on purpose"),
                        || half(b, "b panics on purpose"),
                    )
                });
                (message, ends.into_inner())
            });
            let expected = if a {
                "a panics on purpose"
            } else {
                "b panics on purpose"
            };
            assert_eq!((message.as_str(), ends), (expected, 2));
        }
    }
}

#[test]
fn a_panic_of_a_stolen_half_comes_back_and_the_other_result_is_dropped() {
    expect_panics();
    let drops = Drops::default();
    let guard = drops.clone();
    let message = on_worker(2, move || {
        let stolen = AtomicBool::new(false);
        panic_message(|| {
            join(
                || {
                    spin_until(|| stolen.load(Ordering::SeqCst));
                    guard.guard()
                },
                || {
                    stolen.store(true, Ordering::SeqCst);
                    panic!("far away, on purpose");
                },
            )
        })
    });
    assert_eq!(message, "far away, on purpose");
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_panic_deep_below_comes_up_and_the_pool_goes_on() {
    expect_panics();
    fn tree(depth: u32) {
        if depth == 0 {
            panic!("a leaf, on purpose");
        }
        join(|| tree(depth - 1), || tree(depth - 1));
    }
    let runtime = runtime(2);
    for _ in 0..10 {
        let message = ended(
            "the tree",
            runtime.spawn(async { panic_message(|| tree(8)) }),
        );
        assert_eq!(message, "a leaf, on purpose");
    }
    assert_eq!(ended("fib", runtime.spawn(async { fib(15) })), 610);
}

#[test]
fn a_plain_thread_a_task_a_blocking_closure_and_block_on_can_join() {
    in_time("join from everywhere", || {
        // The process-wide default.
        assert_eq!(fib(15), 610);
        let runtime = runtime(2);
        assert_eq!(runtime.block_on(async { fib(15) }), 610);
        let inside = async {
            let blocking = spawn_blocking(|| fib(15)).await.unwrap();
            let task = windlass_runtime::spawn(async { fib(15) }).await.unwrap();
            (blocking, task)
        };
        assert_eq!(runtime.block_on(inside), (610, 610));
        let _entered = runtime.handle().enter();
        let (left, right) = meet();
        assert_ne!(left, right);
        assert_ne!(left, thread::current().id(), "the call moves to a worker");
    });
}

#[test]
fn a_plain_thread_gets_panics_and_borrows() {
    expect_panics();
    in_time("join from a plain thread", || {
        let runtime = runtime(2);
        let _entered = runtime.handle().enter();
        let mut numbers = vec![1, 2, 3, 4];
        let (left, right) = numbers.split_at_mut(2);
        join(|| left.reverse(), || right.reverse());
        assert_eq!(numbers, [2, 1, 4, 3]);
        let message = panic_message(|| join(|| 1, || panic!("on purpose")));
        assert_eq!(message, "on purpose");
    });
}

#[test]
fn two_runtimes_at_once() {
    in_time("two runtimes", || {
        let runtimes = [runtime(2), runtime(2)];
        thread::scope(|threads| {
            for runtime in &runtimes {
                for _ in 0..2 {
                    threads.spawn(move || {
                        let _entered = runtime.handle().enter();
                        for _ in 0..20 {
                            assert_eq!(fib(14), 377);
                        }
                    });
                }
            }
        });
    });
}

#[test]
fn a_scope_of_one_runtime_is_used_from_another() {
    in_time("foreign spawns", || {
        let (home, other) = (runtime(2), runtime(2));
        let count = AtomicUsize::new(0);
        let one = |_: &Scope<'_>| {
            count.fetch_add(1, Ordering::SeqCst);
        };
        let _home = home.handle().enter();
        scope(|s| {
            s.spawn(one);
            thread::scope(|threads| {
                // A plain thread, a worker of the other runtime, and one of our own.
                threads.spawn(|| s.spawn(one));
                for runtime in [&home, &other] {
                    threads.spawn(move || {
                        let _entered = runtime.handle().enter();
                        join(|| s.spawn(one), || s.spawn(one));
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), 6);
    });
}

#[test]
fn many_tasks_join_at_the_same_time() {
    for workers in [2, 4] {
        let runtime = runtime(workers);
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                runtime.spawn(async {
                    let mut sum = fib(12);
                    windlass_runtime::task::yield_now().await;
                    sum += fib(12);
                    sum
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(ended("a task with joins", task), 288);
        }
        assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
    }
}

#[test]
fn a_scope_ends_after_everything_spawned_in_it() {
    fn walk<'scope>(s: &Scope<'scope>, depth: u32, leaves: &'scope AtomicUsize) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..2 {
            s.spawn(move |s| walk(s, depth - 1, leaves));
        }
    }
    for workers in [1, 2, 4] {
        let (leaves, sum) = on_worker(workers, || {
            let leaves = AtomicUsize::new(0);
            scope(|s| walk(s, 10, &leaves));
            let mut places = vec![0; 1_000];
            scope(|s| {
                for (number, place) in places.iter_mut().enumerate() {
                    s.spawn(move |_| *place = number);
                }
            });
            (leaves.into_inner(), places.iter().sum::<usize>())
        });
        assert_eq!((leaves, sum), (1_024, 499_500));
    }
}

#[test]
fn a_chain_of_100_000_spawns_needs_no_stack() {
    fn next<'scope>(s: &Scope<'scope>, left: usize) {
        if left > 0 {
            s.spawn(move |s| next(s, left - 1));
        }
    }
    for workers in [1, 2] {
        on_worker(workers, || scope(|s| next(s, 100_000)));
    }
}

#[test]
fn joins_inside_of_scopes_inside_of_joins() {
    for workers in [1, 2, 4] {
        let count = on_worker(workers, || {
            let count = AtomicUsize::new(0);
            let one = |_: &Scope<'_>| {
                count.fetch_add(1, Ordering::Relaxed);
            };
            for _ in 0..200 {
                scope(|s| {
                    join(
                        || {
                            s.spawn(one);
                            scope(|inner| {
                                inner.spawn(|_| {
                                    join(|| s.spawn(one), || s.spawn(one));
                                });
                            });
                        },
                        || {
                            s.spawn(move |s| {
                                s.spawn(one);
                                join(|| fib(5), || fib(5));
                            });
                        },
                    );
                });
            }
            count.into_inner()
        });
        assert_eq!(count, 800);
    }
}

#[test]
fn the_first_panic_in_a_scope_is_resumed_after_all_have_ended() {
    expect_panics();
    for workers in [1, 2] {
        let (message, ended) = on_worker(workers, || {
            let ended = AtomicUsize::new(0);
            let message = panic_message(|| {
                scope(|s| {
                    for number in 0..100 {
                        let ended = &ended;
                        s.spawn(move |_| {
                            ended.fetch_add(1, Ordering::SeqCst);
                            assert!(number % 10 != 3, "on purpose");
                        });
                    }
                })
            });
            (message, ended.into_inner())
        });
        assert_eq!((message.as_str(), ended), ("on purpose", 100));
        let ended = on_worker(workers, || {
            let ended = AtomicUsize::new(0);
            let message = panic_message(|| {
                scope(|s| {
                    s.spawn(|_| {
                        ended.fetch_add(1, Ordering::SeqCst);
                    });
                    panic!("the body, on purpose");
                })
            });
            assert_eq!(message, "the body, on purpose");
            ended.into_inner()
        });
        assert_eq!(ended, 1);
    }
}

#[test]
fn for_each_and_map_reach_every_item_in_its_place() {
    for workers in [1, 2, 4] {
        on_worker(workers, || {
            for count in [0, 1, 2, 3, 100, 4_097] {
                let mut items: Vec<usize> = (0..count).collect();
                par_for_each(&mut items[..], |item| *item += 1);
                let sum = AtomicUsize::new(0);
                par_for_each(&items[..], |item| {
                    sum.fetch_add(*item, Ordering::Relaxed);
                });
                par_for_each(0..count, |index| {
                    sum.fetch_add(index, Ordering::Relaxed);
                });
                assert_eq!(sum.into_inner(), count * count);
                let texts = par_map(&items[..], |item| item.to_string());
                let expected: Vec<_> = (1..=count).map(|item| item.to_string()).collect();
                assert_eq!(texts, expected);
                assert_eq!(
                    with_grain(1_000).par_map(0..count, |index| index),
                    with_grain(0).par_map(0..count, |index| index),
                );
            }
        });
    }
    // From a plain thread, and results without a size.
    assert_eq!(par_map(0..3, |_| ()), [(), (), ()]);
    let nothing: Vec<u8> = par_map(&[1_u8; 0][..], |item| *item);
    assert!(nothing.is_empty());
}

#[test]
fn a_map_that_panics_drops_what_it_has_made() {
    expect_panics();
    for workers in [1, 2] {
        on_worker(workers, || {
            for bad in [0, 1, 500, 999] {
                let (made, drops) = (AtomicUsize::new(0), Drops::default());
                let result = catch_unwind(AssertUnwindSafe(|| {
                    par_map(0..1_000, |index| -> Guard {
                        assert!(index != bad, "on purpose");
                        made.fetch_add(1, Ordering::SeqCst);
                        drops.guard()
                    })
                }));
                assert!(result.is_err());
                assert_eq!(drops.count(), made.into_inner());
            }
        });
    }
}

#[test]
fn all_workers_take_part_in_a_long_for_each() {
    let threads = on_worker(4, || {
        let threads = Mutex::new(HashSet::new());
        par_for_each(0..64, |_| {
            threads.lock().unwrap().insert(thread::current().id());
            spin_for(Duration::from_millis(5));
        });
        threads.into_inner().unwrap().len()
    });
    assert!(threads >= 3, "only {threads} of 4 workers took part");
}

#[test]
fn a_task_that_sleeps_goes_on_beside_a_long_fork_join() {
    let runtime = runtime(2);
    let stop = Arc::new(AtomicBool::new(false));
    let (ticks, longest) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(Duration::ZERO)),
    );
    let (end, count, worst) = (stop.clone(), ticks.clone(), longest.clone());
    let sleeper = runtime.spawn(async move {
        while !end.load(Ordering::SeqCst) {
            let began = Instant::now();
            time::sleep(Duration::from_millis(1)).await;
            count.fetch_add(1, Ordering::SeqCst);
            let mut worst = worst.lock().unwrap();
            *worst = worst.max(began.elapsed());
        }
    });
    let work = runtime.spawn(async {
        // 16 pieces of 19 ms: the second worker comes back to its tasks after each.
        par_for_each(0..300, |_| spin_for(Duration::from_millis(1)));
    });
    ended("the long fork-join", work);
    stop.store(true, Ordering::SeqCst);
    ended("the sleeper", sleeper);
    let (ticks, longest) = (ticks.load(Ordering::SeqCst), *longest.lock().unwrap());
    assert!(ticks >= 3, "{ticks} ticks, the longest {longest:?}");
}

#[test]
fn a_shutdown_lets_a_join_that_runs_end() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let (begun, done) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
        let (started, count) = (begun.clone(), done.clone());
        runtime
            .spawn(async move {
                started.open();
                par_for_each(0..40, |_| {
                    spin_for(Duration::from_millis(1));
                    count.fetch_add(1, Ordering::SeqCst);
                });
            })
            .detach();
        begun.wait();
        let report = runtime.shutdown(Duration::from_secs(5));
        assert!(report.is_clean(), "{report}");
        assert_eq!(done.load(Ordering::SeqCst), 40, "nothing is left out");
    }
}

#[test]
fn a_shutdown_that_cannot_wait_names_those_inside() {
    let runtime = runtime(2);
    let (gate, begun) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (door, count) = (gate.clone(), begun.clone());
    let handle = runtime.spawn(async move {
        let hang = || {
            count.fetch_add(1, Ordering::SeqCst);
            door.wait();
        };
        join(hang, hang);
    });
    eventually("both halves run", || begun.load(Ordering::SeqCst) == 2);
    let report = runtime.shutdown(Duration::from_millis(10));
    assert_eq!(report.stuck_workers.len(), 2, "{report}");
    assert!(report.to_string().contains("fork-join job"), "{report}");
    gate.open();
    let _ = crate::support::wait("the join ends after all", handle);
}

#[test]
fn a_runtime_that_has_ended_leaves_the_caller_to_itself() {
    in_time("after shutdown", || {
        let runtime = runtime(2);
        let handle = runtime.handle().clone();
        assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
        let _entered = handle.enter();
        assert_eq!(fib(12), 144);
        let count = AtomicUsize::new(0);
        scope(|s| {
            s.spawn(|s| {
                s.spawn(|_| {
                    count.fetch_add(1, Ordering::SeqCst);
                });
            });
        });
        assert_eq!(count.into_inner(), 1);
        assert_eq!(par_map(0..3, |index| index + 1), [1, 2, 3]);
    });
}

#[test]
fn a_simulation_runs_everything_in_order_and_reproducibly() {
    let run = |seed| {
        let runtime = Runtime::simulated(seed);
        let result = runtime.block_on(async {
            let log = Mutex::new(Vec::new());
            let note = |number: usize| log.lock().unwrap().push(number);
            par_for_each(0..10, note);
            join(|| note(10), || note(11));
            let blocking = spawn_blocking(|| fib(10)).await.unwrap();
            let task = windlass_runtime::spawn(async { fib(10) }).await.unwrap();
            assert_eq!((blocking, task), (55, 55));
            log.into_inner().unwrap()
        });
        (result, runtime.trace().expect("simulated").hash)
    };
    for seed in 0..5 {
        let first = run(seed);
        assert_eq!(first.0, (0..12).collect::<Vec<_>>());
        assert_eq!(first, run(seed));
    }
}

#[test]
fn a_wait_runs_nothing_but_its_own_descendants() {
    thread_local! {
        static INSIDE: Cell<usize> = const { Cell::new(0) };
    }
    /// Below frames of one tree there are never frames of another.
    fn tree(id: usize, depth: u32) {
        let before = INSIDE.replace(id);
        assert!(before == 0 || before == id, "{id} on top of {before}");
        if depth > 0 {
            join(|| tree(id, depth - 1), || tree(id, depth - 1));
        } else {
            spin_for(Duration::from_nanos(500));
        }
        INSIDE.set(before);
    }
    for workers in [2, 4] {
        let runtime = runtime(workers);
        let tasks: Vec<_> = (1..=8)
            .map(|id| {
                runtime.spawn(async move {
                    for _ in 0..10 {
                        tree(id, 9);
                        windlass_runtime::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            ended("a tree", task);
        }
    }
}

/// Random steps, each waiting for some of those before it.
fn random_targets(steps: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut state = seed | 1;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut targets = vec![Vec::new(); steps];
    for step in 1..steps {
        for _ in 0..next(4) {
            targets[next(step)].push(step);
        }
    }
    targets
}

/// When each step of a flow began and ended, on one counter.
fn run_and_check(flow: &mut Flow, targets: &[Vec<usize>]) {
    let clock = AtomicUsize::new(1);
    let times: Vec<(AtomicUsize, AtomicUsize)> =
        targets.iter().map(|_| Default::default()).collect();
    flow.run(|step| {
        let begun = clock.fetch_add(1, Ordering::Relaxed);
        assert_eq!(times[step].0.swap(begun, Ordering::Relaxed), 0, "once");
        times[step]
            .1
            .store(clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    });
    for (step, after) in targets.iter().enumerate() {
        for &target in after {
            let ended = times[step].1.load(Ordering::Relaxed);
            assert!(ended > 0 && ended < times[target].0.load(Ordering::Relaxed));
        }
    }
}

#[test]
fn a_flow_runs_every_step_once_after_those_it_waits_for() {
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.block_on(async {
            windlass_runtime::spawn(async {
                for seed in 1..20 {
                    let targets = random_targets(500, seed);
                    let mut flow = Flow::new(&targets).unwrap();
                    for _ in 0..20 {
                        run_and_check(&mut flow, &targets);
                    }
                }
            })
            .await
            .unwrap();
        });
    }
}

#[test]
fn a_flow_of_many_roots_is_shared_by_the_workers_and_by_plain_threads() {
    let targets: Vec<Vec<usize>> = (0..1000)
        .map(|step| {
            if step < 500 {
                vec![500 + step]
            } else {
                Vec::new()
            }
        })
        .collect();
    let mut flow = Flow::new(&targets).unwrap();
    for _ in 0..50 {
        run_and_check(&mut flow, &targets);
    }
    let empty: &[Vec<usize>] = &[];
    Flow::new(empty)
        .unwrap()
        .run(|_| unreachable!("it has no steps"));
}

#[test]
fn a_panic_of_a_step_comes_out_of_the_flow_and_leaves_it_usable() {
    let targets = random_targets(300, 7);
    let mut flow = Flow::new(&targets).unwrap();
    expect_panics();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async {
        windlass_runtime::spawn(async move {
            for _ in 0..20 {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    flow.run(|step| assert_ne!(step, 150, "on purpose"));
                }));
                assert!(panicked.is_err());
                run_and_check(&mut flow, &targets);
            }
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_flow_may_run_inside_a_step_of_another() {
    let outer = random_targets(50, 3);
    let mut flow = Flow::new(&outer).unwrap();
    let runs = AtomicUsize::new(0);
    flow.run(|_| {
        let inner = random_targets(50, 5);
        run_and_check(&mut Flow::new(&inner).unwrap(), &inner);
        runs.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(runs.into_inner(), 50);
}

#[test]
fn a_flow_that_cannot_be_run_is_refused() {
    let circle = Flow::new(&[vec![1], vec![2], vec![1]]);
    assert_eq!(circle.unwrap_err(), FlowError::Cycle { step: 1 });
    let unknown = Flow::new(&[vec![1]]);
    let expected = FlowError::NoSuchStep { step: 0, target: 1 };
    assert_eq!(unknown.unwrap_err(), expected);
}

#[test]
fn a_flow_runs_in_a_simulation_in_the_same_order_every_time() {
    let order = || {
        Runtime::simulated(5).block_on(async {
            let seen = Mutex::new(Vec::new());
            let mut flow = Flow::new(&random_targets(100, 9)).unwrap();
            flow.run(|step| seen.lock().unwrap().push(step));
            seen.into_inner().unwrap()
        })
    };
    let first = order();
    assert_eq!(first.len(), 100);
    assert_eq!(first, order());
}
