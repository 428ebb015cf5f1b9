//! Pools of their own: custom and single.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_runtime::dispatch::{
    Dispatcher, DispatcherError, OnRefusal, Scheduling, with_dispatcher,
};
use windlass_runtime::{coroutine, time};

use super::here;
use crate::support::{Drops, Gate, eventually, expect_panics, in_time, join, runtime, wait};

/// Threads of this process whose names begin so.
fn threads_called(prefix: &str) -> usize {
    std::fs::read_dir("/proc/self/task")
        .expect("on Linux")
        .filter_map(|task| {
            let path = task.ok()?.path().join("comm");
            std::fs::read_to_string(path).ok()
        })
        .filter(|name| name.starts_with(prefix))
        .count()
}

/// The kernel may list a thread for a moment after it was joined.
#[track_caller]
fn gone(prefix: &str) {
    eventually("its threads end", || threads_called(prefix) == 0);
}

#[test]
fn what_a_custom_pool_spawns_runs_there_too() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(2).name("own").build().expect("threads");
    let names = join(
        "it ends",
        custom.spawn(async {
            let child = windlass_runtime::spawn(async { here() });
            let deep = coroutine::spawn(here);
            [
                here(),
                child.await.expect("no panic"),
                deep.await.expect("no panic"),
            ]
        }),
    );
    assert!(
        names.iter().all(|name| name.starts_with("own-")),
        "{names:?}"
    );
    assert_eq!(custom.name(), "own");
}

#[test]
fn a_section_moves_to_a_dispatcher_and_comes_back() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(1)
        .name("away")
        .build()
        .expect("threads");
    let inner = custom.clone();
    let names = join(
        "it ends",
        runtime.spawn(async move {
            let before = here();
            let away = with_dispatcher(&inner, async {
                windlass_runtime::task::yield_now().await;
                here()
            });
            let away = away.await.expect("no panic");
            (before, away, here())
        }),
    );
    assert!(names.0.starts_with("windlass-") && names.2.starts_with("windlass-"));
    assert!(names.1.starts_with("away-"), "{names:?}");
}

#[test]
fn a_section_for_the_dispatcher_it_is_on_does_not_move() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::custom(1).expect("threads");
    let inner = custom.clone();
    let ids = join(
        "it ends",
        custom.spawn(async move {
            let outside = windlass_runtime::task::try_id();
            let inside = with_dispatcher(&inner, async { windlass_runtime::task::try_id() }).await;
            (outside, inside.expect("no panic"))
        }),
    );
    assert_eq!(ids.0, ids.1, "the same task");
}

#[test]
fn a_section_that_panics_tells_and_one_that_is_dropped_is_aborted() {
    expect_panics();
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let custom = Dispatcher::custom(1).expect("threads");
    let inner = custom.clone();
    let result = join(
        "it comes back",
        runtime.spawn(async move {
            with_dispatcher(&inner, async { panic!("in a section, on purpose") }).await
        }),
    );
    let error: windlass_core::task::JoinError = match result {
        Ok(()) => unreachable!("it panicked"),
        Err(error) => error,
    };
    assert!(error.is_panic());
    let drops = Drops::default();
    let guard = drops.guard();
    let early = runtime.block_on(async {
        let section = with_dispatcher(&custom, async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        time::timeout(Duration::from_millis(5), section).await
    });
    assert!(early.is_err());
    eventually("it is aborted", || drops.count() == 1);
}

#[test]
fn the_last_handle_cancels_what_is_left_and_joins_the_threads() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let drops = Drops::default();
    let custom = Dispatcher::builder(3)
        .name("mortal")
        .build()
        .expect("threads");
    let handles: Vec<_> = (0..10)
        .map(|_| {
            let guard = drops.guard();
            custom.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            })
        })
        .collect();
    let other = custom.clone();
    drop(custom);
    // A thread has its name when it has begun.
    eventually("three workers and their watchdog", || {
        threads_called("mortal-") == 4
    });
    drop(other);
    gone("mortal-");
    assert_eq!(drops.count(), 10);
    for handle in handles {
        assert!(wait("resolved", handle).expect_err("ended").is_cancelled());
    }
}

#[test]
fn the_last_handle_may_be_dropped_inside() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(2)
        .name("inside")
        .build()
        .expect("threads");
    let inner = custom.clone();
    let gate = Gate::default();
    let opened = gate.clone();
    let task = custom.spawn(async move {
        opened.wait();
        drop(inner);
        1
    });
    drop(custom);
    gate.open();
    assert_eq!(join("the turn goes on to its end", task), 1);
    gone("inside-");
}

#[test]
fn a_private_pool_ends_with_its_runtime() {
    let runtime = runtime(1);
    let drops = Drops::default();
    let guard = drops.guard();
    let custom = Dispatcher::builder(1)
        .name("subject")
        .build_in(runtime.handle())
        .expect("threads");
    let task = custom.spawn(async move {
        let _guard = guard;
        time::sleep(Duration::from_secs(3600)).await;
    });
    assert!(runtime.shutdown(Duration::from_secs(5)).is_clean());
    gone("subject-");
    assert_eq!(drops.count(), 1);
    assert!(wait("resolved", task).expect_err("ended").is_cancelled());
    let refused = custom.spawn(async {});
    assert!(wait("resolved", refused).expect_err("ended").is_cancelled());
}

#[test]
fn a_single_thread_does_one_thing_after_another_in_order() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let single = Dispatcher::single().expect("a thread");
    let order: Arc<Mutex<Vec<u32>>> = Arc::default();
    let inside = Arc::new(AtomicBool::new(false));
    let handles: Vec<_> = (0..1_000)
        .map(|number| {
            let (order, inside) = (order.clone(), inside.clone());
            single.spawn(async move {
                assert!(!inside.swap(true, Ordering::SeqCst), "two at once");
                order.lock().expect("no panic").push(number);
                inside.store(false, Ordering::SeqCst);
            })
        })
        .collect();
    for handle in handles {
        join("each ends", handle);
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, (0..1_000).collect::<Vec<_>>());
}

/// Spawned by a task of the same thread, or by a coroutine, or woken by one: always at the tail.
#[test]
fn on_a_single_thread_the_order_holds_from_inside_too() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let single = Dispatcher::single().expect("a thread");
    for as_coroutine in [false, true] {
        let order: Arc<Mutex<Vec<u32>>> = Arc::default();
        let noted = order.clone();
        let children = move || -> Vec<windlass_core::task::JoinHandle<()>> {
            (0..600)
                .map(|number| {
                    let order = noted.clone();
                    if number % 2 == 0 {
                        windlass_runtime::spawn(async move {
                            order.lock().expect("no panic").push(number);
                            windlass_runtime::task::yield_now().await;
                            order.lock().expect("no panic").push(number + 1_000);
                        })
                    } else {
                        coroutine::spawn(move || {
                            order.lock().expect("no panic").push(number);
                            coroutine::yield_now();
                            order.lock().expect("no panic").push(number + 1_000);
                        })
                    }
                })
                .collect()
        };
        let handles = if as_coroutine {
            single.spawn_coroutine(children)
        } else {
            single.spawn(async move { children() })
        };
        for handle in join("they are spawned", handles) {
            join("each ends", handle);
        }
        let order = order.lock().expect("no panic").clone();
        let expected: Vec<u32> = (0..600).chain(1_000..1_600).collect();
        assert_eq!(order, expected, "coroutine: {as_coroutine}");
    }
}

#[test]
fn attributes_are_applied_and_read_back() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(2)
        .name("attributes")
        .affinity([0])
        .nice(7)
        .on_refusal(OnRefusal::Strict)
        .build()
        .expect("everybody may be nicer, on a core that is there");
    let found = custom.snapshot().attributes;
    assert_eq!(found.len(), 2);
    for attributes in found {
        assert_eq!(attributes.affinity, Some(vec![0]));
        assert_eq!(attributes.nice, Some(7));
    }
}

#[test]
fn a_refused_attribute_is_an_error_or_a_warning() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let strict = Dispatcher::builder(1)
        .name("refused")
        .affinity([1_023])
        .on_refusal(OnRefusal::Strict)
        .build();
    let error = strict.expect_err("there is no such core");
    assert!(matches!(error, DispatcherError::Attribute(_)));
    assert!(error.to_string().contains("affinity"), "{error}");
    gone("refused-");
    let warned = Dispatcher::builder(1)
        .affinity([1_023])
        .build()
        .expect("it goes on without");
    assert_eq!(join("it runs", warned.spawn(async { 1 })), 1);
    assert_ne!(warned.snapshot().attributes[0].affinity, Some(vec![1_023]));
}

/// Real-time scheduling needs a privilege: either the thread has it, or that is said.
#[test]
fn real_time_scheduling_is_had_or_refused() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    for scheduling in [
        Scheduling::Fifo { priority: 10 },
        Scheduling::RoundRobin { priority: 5 },
        Scheduling::Deadline {
            runtime: Duration::from_millis(1),
            deadline: Duration::from_millis(10),
            period: Duration::from_millis(10),
        },
    ] {
        let strict = Dispatcher::builder(1)
            .scheduling(scheduling)
            .on_refusal(OnRefusal::Strict)
            .build();
        match strict {
            Ok(dispatcher) => {
                let found = dispatcher.snapshot().attributes[0].scheduling;
                assert_eq!(found, Some(scheduling));
                assert_eq!(join("it runs", dispatcher.spawn(async { 1 })), 1);
            }
            Err(error) => assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}"),
        }
    }
}

#[test]
fn sizes_and_names_that_cannot_be_are_errors() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    assert!(matches!(Dispatcher::custom(0), Err(DispatcherError::Zero)));
    assert!(matches!(
        Dispatcher::custom(1 << 20),
        Err(DispatcherError::TooMany { .. })
    ));
    let named = Dispatcher::builder(1).name("a\0b").build();
    assert!(matches!(named, Err(DispatcherError::BadName)));
}

#[test]
fn private_pools_are_in_the_snapshot_and_in_the_dump() {
    let runtime = runtime(1);
    let custom = Dispatcher::builder(2)
        .name("visible")
        .build_in(runtime.handle())
        .expect("threads");
    join("it runs", custom.spawn_named("a name", async {}));
    let snapshot = runtime.snapshot();
    assert_eq!(snapshot.dispatchers.len(), 1);
    let pool = snapshot.dispatchers[0].pool.as_ref().expect("a pool");
    assert_eq!(pool.workers.len(), 2);
    let completed: u64 = pool.workers.iter().map(|w| w.tasks_completed).sum();
    assert_eq!(completed, 1);
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).expect("into memory");
    let dump = String::from_utf8_lossy(&dump).into_owned();
    assert!(dump.contains("dispatcher visible: workers 2"), "{dump}");
    drop(custom);
    assert!(runtime.snapshot().dispatchers.is_empty());
}

#[test]
fn classes_of_a_dispatcher_are_those_of_its_tasks() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::custom(1).expect("a thread");
    let (gate, inside) = (Gate::default(), Gate::default());
    let (held, opened) = (gate.clone(), inside.clone());
    let holding = custom.spawn(async move {
        opened.open();
        held.wait();
    });
    inside.wait();
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let note = |name: &'static str| {
        let order = order.clone();
        async move { order.lock().expect("no panic").push(name) }
    };
    let low = custom
        .clone()
        .with_class(windlass_runtime::task::Class::Low);
    let high = custom
        .clone()
        .with_class(windlass_runtime::task::Class::High);
    let handles = [
        low.spawn(note("low")),
        custom.spawn(note("normal")),
        high.spawn(note("high")),
    ];
    gate.open();
    join("the worker is free", holding);
    for handle in handles {
        join("each ends", handle);
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, ["high", "normal", "low"]);
}

#[test]
fn many_pools_come_and_go() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    in_time("all come and go", move || {
        let _entered = handle.enter();
        let ran = Arc::new(AtomicUsize::new(0));
        let mut threads = HashSet::new();
        for _ in 0..30 {
            let custom = Dispatcher::custom(2).expect("threads");
            let counted = ran.clone();
            let name = windlass_core::block_on(custom.spawn(async move {
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::current().id()
            }));
            threads.insert(name.expect("no panic"));
        }
        assert_eq!(ran.load(Ordering::SeqCst), 30);
        assert_eq!(threads.len(), 30);
    });
    assert!(runtime.snapshot().dispatchers.is_empty());
}

/// The runtime's own hook is told, with the pool's thread still in it.
#[test]
fn a_stall_on_a_private_pool_is_reported_with_its_name() {
    let stalls: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let noted = stalls.clone();
    let runtime = windlass_runtime::Runtime::builder()
        .workers(1)
        .stall_threshold(Some(Duration::from_millis(10)))
        .on_stall(move |stall| noted.lock().expect("no panic").push(stall.name.clone()))
        .build()
        .expect("a runtime");
    let custom = Dispatcher::builder(1)
        .build_in(runtime.handle())
        .expect("a thread");
    let (gate, held) = {
        let gate = Gate::default();
        let held = gate.clone();
        (
            gate,
            custom.spawn_named("a long task", async move { held.wait() }),
        )
    };
    eventually("it is told", || {
        !stalls.lock().expect("no panic").is_empty()
    });
    gate.open();
    join("it ends", held);
    let (gate, inside) = (Gate::default(), Gate::default());
    let (kept, opened) = (gate.clone(), inside.clone());
    let coroutine =
        coroutine::Builder::new()
            .name("a long coroutine")
            .spawn_at(&custom, move || {
                opened.open();
                kept.wait();
            });
    inside.wait();
    eventually("it is told again", || {
        stalls.lock().expect("no panic").len() == 2
    });
    gate.open();
    join("it ends", coroutine);
    let stalls = stalls.lock().expect("no panic").clone();
    let names: Vec<_> = stalls.iter().flatten().map(String::as_str).collect();
    assert_eq!(names, ["a long task", "a long coroutine"]);
    let snapshot = custom.snapshot();
    assert_eq!(snapshot.slow_polls, 2);
    let slow = custom
        .events()
        .iter()
        .filter(|event| event.kind == windlass_core::observe::EventKind::SlowPoll)
        .count();
    assert_eq!(slow, 2);
}

/// A single thread that blocks holds up what comes after: nobody takes its place.
#[test]
fn a_single_thread_that_blocks_in_place_stays_serial() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let single = Dispatcher::single().expect("a thread");
    let order: Arc<Mutex<Vec<u32>>> = Arc::default();
    let (gate, inside) = (Gate::default(), Gate::default());
    let (held, opened, first) = (gate.clone(), inside.clone(), order.clone());
    let blocked = single.spawn(async move {
        windlass_runtime::task::block_in_place(|| {
            opened.open();
            held.wait();
        });
        first.lock().expect("no panic").push(1);
    });
    inside.wait();
    let second = order.clone();
    let next = single.spawn(async move { second.lock().expect("no panic").push(2) });
    std::thread::sleep(Duration::from_millis(20));
    assert!(order.lock().expect("no panic").is_empty());
    gate.open();
    join("it goes on", blocked);
    join("then the next", next);
    assert_eq!(*order.lock().expect("no panic"), [1, 2]);
}

#[test]
fn threads_that_come_later_have_the_attributes_too_and_are_not_kept_for_ever() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let custom = Dispatcher::builder(1).nice(3).build().expect("a thread");
    for _ in 0..20 {
        let task = custom.spawn(async {
            windlass_runtime::task::block_in_place(|| {
                std::thread::sleep(Duration::from_micros(200))
            });
        });
        join("it ends", task);
    }
    let found = custom.snapshot().attributes;
    assert!(found.len() <= 4, "{} of them", found.len());
    assert!(found.iter().all(|attributes| attributes.nice == Some(3)));
}

#[test]
fn a_future_on_a_thread_of_its_own_has_its_name_and_attributes_and_the_runtime() {
    let runtime = runtime(2);
    let future = async {
        windlass_runtime::time::sleep(Duration::from_millis(2)).await;
        let answer = windlass_runtime::spawn(async { 6 * 7 })
            .await
            .expect("no panic");
        (answer, std::thread::current().name().map(str::to_owned))
    };
    let own = Dispatcher::builder(1).name("own").nice(3);
    let own = own.run_in(runtime.handle(), future).expect("a thread");
    assert_eq!(own.attributes().nice, Some(3));
    assert_eq!(runtime.block_on(own), (42, Some("own".to_owned())));
}

#[test]
fn a_future_on_a_thread_of_its_own_is_dropped_with_its_handle_and_its_panic_comes_out() {
    let runtime = runtime(1);
    let (dropped, told) = std::sync::mpsc::channel::<()>();
    let future = async move {
        let _dropped = dropped;
        std::future::pending::<()>().await;
    };
    let own = Dispatcher::builder(1).run_in(runtime.handle(), future);
    drop(own.expect("a thread"));
    assert_eq!(
        told.recv_timeout(Duration::from_secs(10)),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    let panics = async { panic!("on purpose") };
    let own = Dispatcher::builder(1).run_in(runtime.handle(), panics);
    let own = own.expect("a thread");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(own)));
    assert!(caught.is_err());

    let strict = Dispatcher::builder(1)
        .affinity([1023])
        .on_refusal(OnRefusal::Strict);
    let refused = strict.run_in(runtime.handle(), async {});
    assert!(matches!(refused, Err(DispatcherError::Attribute(_))));
}

#[test]
fn a_precise_wait_ends_at_its_time_or_with_its_future() {
    use windlass_runtime::time::{Instant, precise::block_until_or};
    let at = Instant::now() + Duration::from_millis(5);
    assert_eq!(block_until_or(at, std::future::pending::<()>()), None);
    assert!(Instant::now() >= at);
    let late = Instant::now() + Duration::from_secs(3600);
    let notify = Arc::new(windlass_sync::lock::Notify::new());
    let rings = notify.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        rings.notify_one();
    });
    assert_eq!(block_until_or(late, notify.notified()), Some(()));
    thread.join().expect("no panic");
}
