//! The numbered behaviours of the contract.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use windlass_actor as process;
use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::{Runtime, coroutine, time};
use windlass_sync::channel;

use super::here;
use crate::support::{eventually, in_time, join, runtime, spin_for};

/// Who had turns in which order, with one worker and one seed.
fn order(seed: u64, coroutines: bool) -> Vec<u16> {
    const TASKS: u16 = 1_000;
    let runtime = Runtime::simulated(seed);
    let turns: Arc<Mutex<Vec<u16>>> = Arc::default();
    let noted = turns.clone();
    runtime.block_on(async move {
        let handles: Vec<_> = (0..TASKS)
            .map(|number| {
                let turns = noted.clone();
                if coroutines {
                    coroutine::spawn(move || {
                        for _ in 0..10 {
                            turns.lock().expect("no panic").push(number);
                            coroutine::yield_now();
                        }
                    })
                } else {
                    windlass_runtime::spawn(async move {
                        for _ in 0..10 {
                            turns.lock().expect("no panic").push(number);
                            windlass_runtime::task::yield_now().await;
                        }
                    })
                }
            })
            .collect();
        for handle in handles {
            handle.await.expect("no panic");
        }
    });
    let turns = turns.lock().expect("no panic").clone();
    assert_eq!(turns.len(), 10 * usize::from(TASKS));
    turns
}

#[test]
fn d1_with_a_seed_the_order_is_the_same_every_time() {
    for coroutines in [false, true] {
        assert_eq!(order(7, coroutines), order(7, coroutines));
        assert_ne!(
            order(7, coroutines),
            order(8, coroutines),
            "it is the seed's"
        );
    }
}

#[test]
fn d1_one_worker_runs_ten_thousand_tasks_and_ten_thousand_yields() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let turns = Arc::new(AtomicUsize::new(0));
    let tasks = (0..5_000).map(|_| {
        let turns = turns.clone();
        windlass_runtime::spawn(async move {
            windlass_runtime::task::yield_now().await;
            turns.fetch_add(1, Ordering::Relaxed);
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let coroutines = (0..5_000).map(|_| {
        let turns = turns.clone();
        coroutine::spawn(move || {
            coroutine::yield_now();
            turns.fetch_add(1, Ordering::Relaxed);
        })
    });
    for handle in tasks.into_iter().chain(coroutines.collect::<Vec<_>>()) {
        runtime.block_on(handle).expect("no panic");
    }
    assert_eq!(turns.load(Ordering::Relaxed), 10_000);
}

/// Four workers, one of them busy for a second: what is spawned meanwhile does not wait for it. The
/// bound is ten times the promise, for machines that are busy with other things.
#[test]
fn d2_a_spinning_task_holds_nobody_up() {
    let runtime = runtime(4);
    let _entered = runtime.enter();
    let (sender, receiver) = channel::oneshot::channel();
    let spinning = windlass_runtime::spawn(async move {
        // Spawned by the one that then spins: they are in its own queue.
        let began = Instant::now();
        let mut handles: Vec<_> = (0..4).map(|_| windlass_runtime::spawn(async {})).collect();
        handles.extend((0..4).map(|_| coroutine::spawn(|| ())));
        sender.send((began, handles)).expect("awaited");
        spin_for(Duration::from_secs(1));
    });
    let (began, handles) = runtime.block_on(receiver).expect("sent");
    for handle in handles {
        join("each ends", handle);
    }
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    join("it ends too", spinning);
}

fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("on Linux");
    let after = stat.rsplit_once(')').expect("the name ends so").1;
    let ticks: u64 = after
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 10)
}

#[test]
fn d3_a_thousand_blocked_receivers_and_actors_cost_nothing() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let (sender, receiver) = channel::mpmc::rendezvous::<()>();
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut handles = Vec::new();
    for number in 0..1_000 {
        let (receiver, waiting) = (receiver.clone(), waiting.clone());
        handles.push(if number % 2 == 0 {
            windlass_runtime::spawn(async move {
                waiting.fetch_add(1, Ordering::SeqCst);
                receiver.recv().await.is_none()
            })
        } else {
            coroutine::spawn(move || {
                waiting.fetch_add(1, Ordering::SeqCst);
                coroutine::wait(receiver.recv()).is_none()
            })
        });
    }
    let host = process::Host::of(runtime.handle()).expect("a host");
    let actors: Vec<_> = (0..1_000)
        .map(|_| {
            let actor = host.spawn(|mut ctx: process::Context<()>| async move {
                while ctx.recv().await.is_some() {}
            });
            let actor = actor.expect("room");
            actor.tell(()).expect("it lives");
            actor
        })
        .collect();
    eventually("all wait", || waiting.load(Ordering::SeqCst) == 1_000);
    eventually("all have read", || {
        actors.iter().all(|actor| actor.unread() == Some(0))
    });
    eventually("all sleep", || runtime.snapshot().pool.unparked == 0);
    let (before, began) = (cpu_time(), Instant::now());
    thread::sleep(Duration::from_secs(2));
    let share = (cpu_time() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    assert!(share < 0.01 + 0.005, "{:.1} % of a core", share * 100.0);
    drop(sender);
    for handle in handles {
        assert!(join("each is told", handle));
    }
}

/// Wakes whatever waits for the second value from another pool, and from a thread.
fn d8_check(a: &Dispatcher, prefix: &str, b: &Dispatcher) {
    for as_coroutine in [false, true] {
        let (sender, receiver) = channel::mpmc::buffered::<u32>(1);
        let names: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = names.clone();
        let note = move || noted.lock().expect("no panic").push(here());
        let handle = if as_coroutine {
            a.spawn_coroutine(move || {
                note();
                for _ in 0..2 {
                    coroutine::wait(receiver.recv()).expect("sent");
                    note();
                }
                coroutine::wait(time::sleep(Duration::from_millis(1)));
                note();
            })
        } else {
            a.spawn(async move {
                note();
                for _ in 0..2 {
                    receiver.recv().await.expect("sent");
                    note();
                }
                time::sleep(Duration::from_millis(1)).await;
                note();
            })
        };
        let from_b = sender.clone();
        join(
            "the other pool sends",
            b.spawn(async move { from_b.send(1).await.expect("received") }),
        );
        in_time("a thread sends", move || {
            windlass_core::block_on(sender.send(2)).expect("received");
        });
        join("it ends", handle);
        let names = names.lock().expect("no panic");
        assert_eq!(names.len(), 4);
        for name in names.iter() {
            assert!(name.starts_with(prefix), "{name} is not of {prefix}");
        }
    }
}

#[test]
fn d8_work_goes_on_on_its_own_dispatcher_whoever_wakes_it() {
    let runtime = Runtime::builder()
        .workers(2)
        .name("the-default")
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(2)
        .name("the-custom")
        .build()
        .expect("threads");
    let single = Dispatcher::single().expect("a thread");
    let (default, io) = (Dispatcher::default(), Dispatcher::io());
    d8_check(&custom, "the-custom-", &default);
    d8_check(&single, "windlass-single-", &custom);
    d8_check(&default, "the-default-", &single);
    d8_check(&io, "the-default-blocking-", &custom);
    d8_check(&custom, "the-custom-", &io);
}
