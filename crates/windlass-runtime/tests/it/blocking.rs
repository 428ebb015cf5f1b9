//! The blocking pool.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use windlass_runtime::task::JoinErrorKind;
use windlass_runtime::{Runtime, task};

use crate::support::{Bomb, Drops, Gate, eventually, expect_panics, join, runtime, spin_for, wait};

fn with_threads(most: usize) -> Runtime {
    Runtime::builder()
        .workers(1)
        .max_blocking_threads(most)
        .build()
        .unwrap()
}

/// Fills the pool's threads until the gate is opened.
fn occupy(runtime: &Runtime, threads: usize) -> Gate {
    let gate = Gate::default();
    for _ in 0..threads {
        let (gate, started) = (gate.clone(), Gate::default());
        let says = started.clone();
        runtime
            .spawn_blocking(move || {
                says.open();
                gate.wait();
            })
            .detach();
        started.wait();
    }
    gate
}

#[test]
fn blocking_closures_run_at_the_same_time() {
    let runtime = runtime(1);
    let together = Arc::new(Barrier::new(20));
    let meet = |number| {
        let together = together.clone();
        runtime.spawn_blocking(move || {
            together.wait();
            number
        })
    };
    let closures: Vec<_> = (0..20).map(meet).collect();
    for (number, closure) in closures.into_iter().enumerate() {
        assert_eq!(join("a closure that waits for 19 others", closure), number);
    }
}

#[test]
fn no_more_threads_than_the_cap_are_started_and_all_closures_run() {
    let runtime = with_threads(3);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = |_| {
        let (now, most) = (now.clone(), most.clone());
        runtime.spawn_blocking(move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(2));
            now.fetch_sub(1, Ordering::SeqCst);
        })
    };
    let closures: Vec<_> = (0..50).map(work).collect();
    assert!(runtime.snapshot().blocking.threads <= 3);
    for closure in closures {
        join("a closure", closure);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3, "at the same time");
    let blocking = runtime.snapshot().blocking;
    assert_eq!((blocking.submitted, blocking.queued), (50, 0));
}

#[test]
fn an_idle_thread_is_used_again_before_another_is_started() {
    let runtime = runtime(1);
    let id = || thread::current().id();
    let first = join("the first closure", runtime.spawn_blocking(id));
    eventually("its thread is idle", || {
        runtime.snapshot().blocking.idle == 1
    });
    let second = join("the second closure", runtime.spawn_blocking(id));
    assert_eq!(first, second);
    assert_eq!(runtime.snapshot().blocking.threads, 1);
}

#[test]
fn idle_threads_are_retired_after_their_keep_alive() {
    let keep_alive = Duration::from_millis(20);
    let runtime = Runtime::builder()
        .workers(1)
        .thread_keep_alive(keep_alive)
        .build()
        .unwrap();
    let gate = occupy(&runtime, 5);
    assert_eq!(runtime.snapshot().blocking.threads, 5);
    gate.open();
    eventually("the threads are gone", || {
        runtime.snapshot().blocking.threads == 0
    });
    assert_eq!(
        join("a closure on a new thread", runtime.spawn_blocking(|| 1)),
        1
    );
}

#[test]
fn no_closure_is_lost_while_threads_retire() {
    let keep_alive = Duration::from_micros(50);
    let runtime = Runtime::builder()
        .workers(1)
        .thread_keep_alive(keep_alive)
        .build()
        .unwrap();
    for number in 0..2_000u64 {
        spin_for(Duration::from_micros(number % 100));
        assert_eq!(
            runtime
                .block_on(runtime.spawn_blocking(move || number))
                .unwrap(),
            number
        );
    }
}

#[test]
fn a_closure_that_waited_past_its_limit_expires_unrun() {
    let runtime = with_threads(1);
    let gate = occupy(&runtime, 1);
    let drops = Drops::default();
    let (guard, ran) = (drops.guard(), Arc::new(AtomicBool::new(false)));
    let sets = ran.clone();
    let late = task::Builder::new()
        .name("late")
        .start_within(Duration::from_millis(1))
        .spawn_blocking_on(runtime.handle(), move || {
            let _guard = guard;
            sets.store(true, Ordering::SeqCst);
        })
        .unwrap();
    spin_for(Duration::from_millis(5));
    gate.open();
    let error = wait("the late closure", late).unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Expired);
    assert!(
        error
            .to_string()
            .ends_with("(late) waited past its deadline and was not started"),
        "{error}"
    );
    assert_eq!((ran.load(Ordering::SeqCst), drops.count()), (false, 1));
    assert_eq!(runtime.snapshot().blocking.expired, 1);
}

#[test]
fn a_closure_that_starts_within_its_limit_runs_however_large_the_limit_is() {
    let runtime = with_threads(1);
    let limits = [
        Duration::from_secs(60),
        Duration::from_secs(18_446_744_074),
        Duration::MAX,
    ];
    for limit in limits {
        let gate = occupy(&runtime, 1);
        let in_time = task::Builder::new()
            .start_within(limit)
            .spawn_blocking_on(runtime.handle(), || 1)
            .unwrap();
        // Longer than what is left of the second limit if its nanoseconds are cut to 64 bits.
        thread::sleep(Duration::from_millis(350));
        gate.open();
        let result = wait("the closure", in_time);
        assert!(result.is_ok(), "limit {limit:?}: {result:?}");
    }
}

#[test]
fn abort_before_the_start_drops_the_closure_unrun() {
    let runtime = with_threads(1);
    let gate = occupy(&runtime, 1);
    let drops = Drops::default();
    let (guard, ran) = (drops.guard(), Arc::new(AtomicBool::new(false)));
    let sets = ran.clone();
    let aborted = runtime.spawn_blocking(move || {
        let _guard = guard;
        sets.store(true, Ordering::SeqCst);
    });
    aborted.abort();
    gate.open();
    assert!(
        wait("the aborted closure", aborted)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!((ran.load(Ordering::SeqCst), drops.count()), (false, 1));
}

#[test]
fn abort_of_a_running_closure_lets_it_end_and_keeps_its_output() {
    let runtime = runtime(1);
    let (gate, started) = (Gate::default(), Gate::default());
    let (waits, says) = (gate.clone(), started.clone());
    let running = runtime.spawn_blocking(move || {
        says.open();
        waits.wait();
        8
    });
    started.wait();
    running.abort();
    gate.open();
    assert_eq!(join("the running closure", running), 8);
}

#[test]
fn a_panic_is_carried_and_the_thread_goes_on() {
    expect_panics();
    let runtime = with_threads(1);
    let panics = runtime.spawn_blocking(|| panic!("blocking on purpose"));
    let error = wait("the panicking closure", panics).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("panicked with message \"blocking on purpose\""),
        "{error}"
    );
    runtime
        .spawn_blocking(|| std::panic::panic_any(Bomb))
        .detach();
    assert_eq!(join("the next closure", runtime.spawn_blocking(|| 2)), 2);
}

#[test]
fn a_blocking_closure_may_block_on_futures_and_spawn_tasks() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let closure = runtime.spawn_blocking(move || {
        let inner = windlass_runtime::spawn(async { 20 });
        let nested = windlass_runtime::spawn_blocking(|| 1);
        handle.block_on(async { inner.await.unwrap() + nested.await.unwrap() })
            + windlass_core::block_on(async { 21 })
    });
    assert_eq!(join("the closure", closure), 42);
}

#[test]
fn a_worker_goes_on_while_a_closure_blocks() {
    let runtime = with_threads(1);
    let gate = occupy(&runtime, 1);
    let queued = runtime.spawn_blocking(|| 1);
    assert_eq!(
        join("a task on the only worker", runtime.spawn(async { 2 })),
        2
    );
    assert!(!queued.is_finished());
    gate.open();
    assert_eq!(join("the queued closure", queued), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_closure_for_which_no_thread_can_be_started_is_refused_with_a_reason() {
    let test = "blocking::a_closure_for_which_no_thread_can_be_started_is_refused_with_a_reason";
    crate::support::with_little_memory(test, || {
        expect_panics();
        // Room for one such stack, which is the worker's.
        let runtime = Runtime::builder()
            .workers(1)
            .thread_stack_size(2 << 30)
            .build()
            .unwrap();
        let drops = Drops::default();
        let guard = drops.guard();
        let error = runtime
            .handle()
            .try_spawn_blocking(move || drop(guard))
            .unwrap_err();
        assert!(
            matches!(error, windlass_runtime::SpawnBlockingError::NoThread(_)),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains("lower max_blocking_threads or the stack size")
        );
        assert_eq!(drops.count(), 1);
        let message = crate::support::panic_message(|| runtime.spawn_blocking(|| ()));
        assert!(
            message.starts_with("no blocking thread could be started"),
            "{message}"
        );
        assert_eq!(join("a task", runtime.spawn(async { 1 })), 1);
        let report = runtime.shutdown(Duration::from_secs(5));
        assert!(report.is_clean(), "{report}");
    });
}

#[test]
fn a_job_that_a_thread_is_on_its_way_to_resolves_after_the_end() {
    for _ in 0..50 {
        let runtime = with_threads(2);
        let job = runtime.spawn_blocking(|| {
            spin_for(Duration::from_micros(200));
            42
        });
        let report = runtime.shutdown(Duration::from_secs(10));
        assert!(report.is_clean(), "{report}");
        assert_eq!(windlass_core::block_on(job).unwrap(), 42);
    }
}

#[test]
fn a_job_that_comes_while_the_last_thread_ends_is_run() {
    let (ends, release) = (Gate::default(), Gate::default());
    let (says, waits) = (ends.clone(), release.clone());
    let runtime = Runtime::builder()
        .workers(1)
        .max_blocking_threads(1)
        .thread_keep_alive(Duration::from_millis(5))
        .on_thread_stop(move || {
            says.open();
            waits.wait();
        })
        .build()
        .unwrap();
    join("the first job", runtime.spawn_blocking(|| ()));
    eventually("the thread is in its last hook", || ends.is_open());
    join("a job that comes then", runtime.spawn_blocking(|| ()));
    release.open();
}

#[test]
fn a_first_hook_may_wait_for_a_job_of_its_own() {
    let begun = Arc::new(AtomicUsize::new(0));
    let (count, own) = (begun.clone(), Arc::new(std::sync::OnceLock::new()));
    let handle: Arc<std::sync::OnceLock<windlass_runtime::Handle>> = own.clone();
    let runtime = Runtime::builder()
        .workers(1)
        .max_blocking_threads(4)
        .on_thread_start(move || {
            let is_first_job = own.get().is_some() && count.fetch_add(1, Ordering::SeqCst) == 0;
            if let (true, Some(handle)) = (is_first_job, own.get()) {
                windlass_core::block_on(handle.spawn_blocking(|| ())).unwrap();
            }
        })
        .build()
        .unwrap();
    handle.set(runtime.handle().clone()).unwrap();
    join("the job", runtime.spawn_blocking(|| ()));
    assert!(begun.load(Ordering::SeqCst) >= 2);
}
