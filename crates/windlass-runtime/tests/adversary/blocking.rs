//! Calls that block a worker's thread, nested and suspended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use windlass_core::observe::WorkerState;
use windlass_runtime::task::block_in_place;
use windlass_runtime::{Runtime, coroutine, fork_join, time};

use crate::support::{eventually, join, ms, runtime};

fn nest(depth: u32) {
    match depth {
        0 => std::thread::sleep(ms(20)),
        _ => block_in_place(|| nest(depth - 1)),
    }
}

fn present(runtime: &Runtime) -> usize {
    let workers = runtime.snapshot().pool.workers;
    let is_here = |state: &WorkerState| *state != WorkerState::Gone;
    workers
        .iter()
        .filter(|worker| is_here(&worker.state))
        .count()
}

#[test]
fn nested_calls_that_block_count_as_one_worker() {
    let runtime = runtime(2);
    join("nested blocks", runtime.spawn(async { nest(300) }));
    eventually("as many workers as before", || present(&runtime) == 2);
    // One long computation: another task still runs.
    let stop = Arc::new(AtomicBool::new(false));
    let inner = stop.clone();
    let long = runtime.spawn(async move {
        while !inner.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    assert_eq!(join("a task beside it", runtime.spawn(async { 2 })), 2);
    stop.store(true, SeqCst);
    join("the long one", long);
}

#[test]
fn a_coroutine_that_waits_inside_a_block_does_not_block_its_worker() {
    let runtime = runtime(1);
    let done = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..300)
        .map(|_| {
            let done = done.clone();
            coroutine::Builder::new().spawn_on(runtime.handle(), move || {
                block_in_place(|| coroutine::wait(time::sleep(ms(50))));
                done.fetch_add(1, SeqCst);
            })
        })
        .collect();
    for handle in handles {
        join("a wait inside block_in_place", handle);
    }
    assert_eq!(done.load(SeqCst), 300);
    eventually("one worker", || present(&runtime) == 1);
}

#[test]
fn a_join_sleeps_beside_many_coroutines_that_wait_inside_a_block() {
    let runtime = runtime(2);
    let waiting: Vec<_> = (0..150)
        .map(|_| {
            coroutine::Builder::new().spawn_on(runtime.handle(), || {
                block_in_place(|| coroutine::wait(time::sleep(ms(300))));
            })
        })
        .collect();
    for _ in 0..5 {
        let joined = runtime.spawn(async {
            let begun = AtomicBool::new(false);
            let data = [1_u8; 100];
            fork_join::join(
                || {
                    let began = std::time::Instant::now();
                    while !begun.load(SeqCst) && began.elapsed() < ms(50) {
                        std::thread::yield_now();
                    }
                },
                || {
                    begun.store(true, SeqCst);
                    std::thread::sleep(ms(20));
                    assert!(data.iter().all(|byte| *byte == 1));
                },
            );
        });
        join("a join that sleeps", joined);
    }
    for handle in waiting {
        join("a wait inside block_in_place", handle);
    }
}
