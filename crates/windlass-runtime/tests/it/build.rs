//! Building a runtime: every bad option is a typed error that says what to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_runtime::{BuildError, Builder, Runtime, RuntimeFlavor, Spin, TrySpawnError, task};

#[cfg(target_os = "linux")]
use crate::support::with_little_memory;
use crate::support::{
    BombInDrop, eventually, expect_panics, hold_worker, join, panic_message, runtime,
};

#[track_caller]
fn refused(builder: &mut Builder) -> (BuildError, String) {
    match builder.build() {
        Ok(_) => panic!("it was built"),
        Err(error) => {
            let text = error.to_string();
            (error, text)
        }
    }
}

#[test]
fn absurd_numbers_of_threads_are_refused() {
    for asked in [32_769, usize::MAX] {
        let (error, text) = refused(Runtime::builder().workers(asked));
        assert!(
            matches!(error, BuildError::TooManyWorkers { asked: a, most: 32_768 } if a == asked),
            "{error:?}"
        );
        assert!(text.contains("ask for 32768 at most"), "{text}");
    }
    let (error, _) = refused(
        Runtime::builder()
            .workers(1)
            .max_blocking_threads(usize::MAX),
    );
    assert!(
        matches!(
            error,
            BuildError::TooManyWorkers {
                asked: usize::MAX,
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn zeros_are_refused_by_name() {
    let cases = [
        (
            Runtime::builder().victims_per_search(0).clone(),
            "victims_per_search",
        ),
        (
            Runtime::builder().injector_capacity(0).clone(),
            "injector_capacity",
        ),
        (
            Runtime::builder().max_blocking_threads(0).clone(),
            "max_blocking_threads",
        ),
        (
            Runtime::builder()
                .stall_threshold(Some(Duration::ZERO))
                .clone(),
            "stall_threshold",
        ),
    ];
    for (mut builder, name) in cases {
        let (error, text) = refused(builder.workers(1));
        assert!(
            matches!(error, BuildError::Zero { option } if option == name),
            "{error:?}"
        );
        assert!(
            text.contains(name) && text.contains("give at least 1"),
            "{text}"
        );
    }
}

#[test]
fn zero_workers_mean_the_available_parallelism() {
    let runtime = runtime(0);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(runtime.snapshot().pool.workers.len(), cores);
}

#[test]
fn a_name_with_a_nul_byte_is_refused() {
    let (error, text) = refused(Runtime::builder().workers(1).name("a\0b"));
    assert!(matches!(error, BuildError::BadName), "{error:?}");
    assert!(text.contains("NUL byte"), "{text}");
}

#[test]
fn a_stack_too_small_to_start_on_is_refused() {
    for asked in [0, 1, 16 * 1024 - 1] {
        let (error, text) = refused(Runtime::builder().workers(1).thread_stack_size(asked));
        assert!(
            matches!(error, BuildError::StackTooSmall { asked: a, .. } if a == asked),
            "{error:?}"
        );
        assert!(text.contains("give at least 16384"), "{text}");
    }
    let small = Runtime::builder()
        .workers(1)
        .thread_stack_size(16 * 1024)
        .build();
    assert!(
        small.is_ok(),
        "the least that is allowed works: {:?}",
        small.err()
    );
}

#[test]
fn absurd_but_possible_values_are_taken_as_they_are() {
    let runtime = Runtime::builder()
        .workers(1)
        .victims_per_search(usize::MAX)
        .injector_capacity(usize::MAX)
        .thread_keep_alive(Duration::MAX)
        .stall_threshold(Some(Duration::MAX))
        .spin(Spin::Rounds {
            tight: 1,
            yields: 1,
        })
        .name("")
        .build()
        .unwrap();
    assert_eq!(join("a task", runtime.spawn(async { 1 })), 1);
    assert_eq!(join("a closure", runtime.spawn_blocking(|| 2)), 2);
    let report = runtime.shutdown(Duration::MAX);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn every_spin_policy_runs_tasks_and_sleeps() {
    let rounds = Spin::Rounds {
        tight: 100,
        yields: 100,
    };
    for spin in [Spin::Short, Spin::None, rounds] {
        let runtime = Runtime::builder().workers(2).spin(spin).build().unwrap();
        for number in 0..100 {
            assert_eq!(
                runtime
                    .block_on(runtime.spawn(async move { number }))
                    .unwrap(),
                number
            );
        }
        eventually("both workers sleep", || {
            runtime.snapshot().pool.unparked == 0
        });
    }
}

/// Threads of this process whose names begin with `prefix`.
#[cfg(target_os = "linux")]
fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_stack_that_the_system_refuses_is_an_error_and_leaves_no_thread_behind() {
    for stack in [1 << 46, usize::MAX] {
        let (error, text) = refused(
            Runtime::builder()
                .workers(2)
                .thread_stack_size(stack)
                .name("absurd"),
        );
        assert!(matches!(error, BuildError::Threads(_)), "{error:?}");
        assert!(
            text.contains("ask for fewer workers or smaller stacks"),
            "{text}"
        );
        assert!(
            std::error::Error::source(&error).is_some(),
            "the system's error is the source"
        );
        assert_eq!(threads_named("absurd"), 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_cannot_be_started_takes_those_before_it_back() {
    let test = "build::a_thread_that_cannot_be_started_takes_those_before_it_back";
    with_little_memory(test, || {
        let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starts, stops) = (started.clone(), stopped.clone());
        let mut builder = Runtime::builder();
        builder
            .workers(64)
            .thread_stack_size(128 << 20)
            .name("little")
            .on_worker_start(move |_| {
                starts.fetch_add(1, Ordering::SeqCst);
            })
            .on_worker_stop(move |_| {
                stops.fetch_add(1, Ordering::SeqCst);
            });
        let (error, _) = refused(&mut builder);
        assert!(matches!(error, BuildError::Threads(_)), "{error:?}");
        let (started, stopped) = (
            started.load(Ordering::SeqCst),
            stopped.load(Ordering::SeqCst),
        );
        assert!(
            started > 0 && started < 64,
            "{started} of 64 workers were started"
        );
        assert_eq!(stopped, started, "and as many ended");
        assert_eq!(threads_named("little"), 0);
    });
}

#[test]
fn try_spawn_is_refused_at_the_injectors_capacity_and_hands_the_future_back() {
    let runtime = Runtime::builder()
        .workers(1)
        .injector_capacity(10)
        .build()
        .unwrap();
    let (gate, _holder) = hold_worker(&runtime);
    let accepted: Vec<_> = (0..10)
        .map(|number| runtime.handle().try_spawn(async move { number }).unwrap())
        .collect();
    match runtime.handle().try_spawn(async { 77 }) {
        Err(error @ TrySpawnError::Full(_)) => {
            assert_eq!(
                error.to_string(),
                "the injector is full; try again later, or use spawn"
            );
            assert_eq!(
                windlass_core::block_on(error.into_inner()),
                77,
                "the future in one piece"
            );
        }
        other => panic!("expected Full, got {other:?}"),
    }
    let named = task::Builder::new().name("also refused");
    assert!(named.try_spawn_on(runtime.handle(), async {}).is_err());
    assert_eq!(
        runtime.snapshot().pool.inject_queue_overflows,
        2,
        "refusals are counted"
    );
    let never_refused = runtime.spawn(async { 11 });
    assert_eq!(runtime.snapshot().pool.injector_len, 11);
    gate.open();
    for (number, task) in accepted.into_iter().enumerate() {
        assert_eq!(join("an accepted task", task), number);
    }
    assert_eq!(join("a spawned task", never_refused), 11);
    let again = runtime
        .handle()
        .try_spawn(async { 5 })
        .expect("there is room again");
    assert_eq!(join("the next one", again), 5);
}

#[test]
fn thread_hooks_are_called_once_per_worker_on_its_own_thread() {
    type Calls = Arc<Mutex<Vec<(usize, String)>>>;
    let (started, stopped) = (Calls::default(), Calls::default());
    let note = |calls: &Calls| {
        let calls = calls.clone();
        move |index| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            calls.lock().unwrap().push((index, name));
        }
    };
    let runtime = Runtime::builder()
        .workers(3)
        .name("hooked")
        .on_worker_start(note(&started))
        .on_worker_stop(note(&stopped))
        .build()
        .unwrap();
    let sorted = |calls: &Calls| {
        let mut calls = calls.lock().unwrap().clone();
        calls.sort();
        calls
    };
    eventually("all have started", || started.lock().unwrap().len() == 3);
    let expected: Vec<_> = (0..3)
        .map(|index| (index, format!("hooked-{index}")))
        .collect();
    assert_eq!(sorted(&started), expected);
    assert_eq!(sorted(&stopped), []);
    drop(runtime);
    assert_eq!(sorted(&stopped), expected);
}

#[test]
fn hooks_that_panic_do_not_take_their_worker_with_them() {
    expect_panics();
    let bombs = Runtime::builder()
        .workers(1)
        .on_worker_start(|_| drop(BombInDrop))
        .on_worker_stop(|_| panic!("hook on purpose"))
        .build()
        .unwrap();
    assert_eq!(
        join("a task behind a panicking hook", bombs.spawn(async { 4 })),
        4
    );
    let report = bombs.shutdown(Duration::from_millis(500));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn the_backend_can_be_chosen_where_it_exists() {
    for backend in [
        windlass_runtime::Backend::Auto,
        windlass_runtime::Backend::Epoll,
    ] {
        let built = Runtime::builder().workers(1).backend(backend).build();
        if cfg!(target_os = "linux") || backend == windlass_runtime::Backend::Auto {
            let runtime = built.expect("it exists here");
            let slept = windlass_runtime::time::sleep(std::time::Duration::from_millis(1));
            runtime.block_on(slept);
        } else {
            assert!(built.unwrap_err().to_string().contains("Backend::Auto"));
        }
    }
}

#[test]
fn every_thread_calls_the_hooks_of_threads() {
    let calls = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let count = |at: usize| {
        let calls = calls.clone();
        move || {
            calls[at].fetch_add(1, Ordering::SeqCst);
        }
    };
    let mut builder = Runtime::builder();
    builder
        .worker_threads(2)
        .thread_name("counted")
        .name("ingest");
    let runtime = builder
        .on_thread_start(count(0))
        .on_thread_stop(count(1))
        .build()
        .unwrap();
    assert_eq!(runtime.handle().name(), Some("ingest"));
    let name = || std::thread::current().name().unwrap_or_default().to_owned();
    let name = join("a blocking closure", runtime.spawn_blocking(name));
    assert_eq!(name, "counted-blocking-0");
    eventually("all have started", || calls[0].load(Ordering::SeqCst) == 3);
    assert_eq!(calls[1].load(Ordering::SeqCst), 0);
    drop(runtime);
    assert_eq!(calls[1].load(Ordering::SeqCst), 3);
}

#[test]
fn runtimes_know_their_kind_and_are_told_apart() {
    let many = Runtime::builder().workers(1).build().unwrap();
    let one = Builder::new_current_thread().build().unwrap();
    assert_eq!(many.handle().runtime_flavor(), RuntimeFlavor::MultiThread);
    assert_eq!(one.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
    assert_eq!(many.handle().id(), many.handle().clone().id());
    assert_ne!(many.handle().id(), one.handle().id());
    assert_eq!(one.handle().name(), None);
    let simulated = Runtime::simulated(1);
    let flavor = simulated.handle().runtime_flavor();
    assert_eq!(flavor, RuntimeFlavor::CurrentThread);
}

#[test]
fn a_runtime_ends_in_the_background_also_from_one_of_its_tasks() {
    let outer = Runtime::builder().workers(1).build().unwrap();
    let inner = Runtime::builder().workers(1).build().unwrap();
    let handle = inner.handle().clone();
    let task = handle.spawn(async move { inner.shutdown_background() });
    // The task itself may be cancelled by the end that it asked for.
    let _ = outer.block_on(task);
    let last = handle.spawn(std::future::pending::<()>());
    assert!(outer.block_on(last).unwrap_err().is_cancelled());

    let runtime = Runtime::builder().workers(1).build().unwrap();
    let task = runtime.spawn(std::future::pending::<()>());
    runtime.shutdown_timeout(Duration::from_secs(5));
    assert!(outer.block_on(task).unwrap_err().is_cancelled());
}

#[cfg(feature = "test-util")]
#[test]
fn a_paused_clock_moves_when_it_is_told_or_every_task_waits() {
    use windlass_runtime::time::{self, Instant, sleep};
    let mut builder = Builder::new_current_thread();
    let paused = builder.start_paused(true).build().unwrap();
    paused.block_on(async {
        time::pause();
        let began = Instant::now();
        time::advance(Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(3605));
    });
    let running = Runtime::builder().workers(1).build().unwrap();
    let message = panic_message(|| running.block_on(async { time::pause() }));
    assert!(message.contains("start it paused"), "{message}");
}
