//! Ends: every future dropped once, every handle resolved, no thread left.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use windlass_core::task::JoinHandle;
use windlass_runtime::frontend::{FrontEnd, Stopping};
use windlass_runtime::observe::{Cursor, Observe, Page, Sample};
use windlass_runtime::{Runtime, task, task::shield, task::yield_now};

use crate::support::{
    Drops, Gate, Notify, PATIENCE, eventually, expect_panics, hold_worker, in_time, join,
    panic_message, runtime, spin_for, text, wait,
};

/// Tasks in every state that a runtime knows, with threads that wake them all the time.
struct Zoo {
    drops: Drops,
    guards: usize,
    handles: Vec<JoinHandle<()>>,
    wakers: Arc<Mutex<Vec<Waker>>>,
    finished_sections: Arc<AtomicUsize>,
    sections: Vec<Notify>,
}

impl Zoo {
    fn fill(runtime: &Runtime) -> Zoo {
        let mut zoo = Zoo {
            drops: Drops::default(),
            guards: 0,
            handles: Vec::new(),
            wakers: Arc::default(),
            finished_sections: Arc::default(),
            sections: Vec::new(),
        };
        for _ in 0..50 {
            zoo.idle_and_hammered(runtime);
            zoo.idle_for_ever(runtime);
            zoo.yields_for_ever(runtime);
            zoo.shielded_and_finishing(runtime);
            zoo.awaits_another(runtime);
            zoo.spawns_without_end(runtime);
        }
        for _ in 0..50 {
            for class in [task::Class::High, task::Class::Low, task::Class::Background] {
                let guard = zoo.guard();
                let waits = async move {
                    let _guard = guard;
                    yield_now().await;
                    pending::<()>().await;
                };
                let builder = task::Builder::new().class(class);
                zoo.handles.push(builder.spawn_on(runtime.handle(), waits));
            }
        }
        zoo.blocking(runtime);
        zoo
    }

    fn guard(&mut self) -> crate::support::Guard {
        self.guards += 1;
        self.drops.guard()
    }

    fn idle_and_hammered(&mut self, runtime: &Runtime) {
        let (guard, wakers) = (self.guard(), self.wakers.clone());
        self.handles.push(runtime.spawn(async move {
            let _guard = guard;
            let mut left = false;
            poll_fn(|cx| {
                if !std::mem::replace(&mut left, true) {
                    wakers.lock().unwrap().push(cx.waker().clone());
                }
                Poll::Pending
            })
            .await
        }));
    }

    fn idle_for_ever(&mut self, runtime: &Runtime) {
        let guard = self.guard();
        self.handles.push(runtime.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        }));
    }

    fn yields_for_ever(&mut self, runtime: &Runtime) {
        let guard = self.guard();
        self.handles.push(runtime.spawn(async move {
            let _guard = guard;
            loop {
                yield_now().await;
            }
        }));
    }

    fn shielded_and_finishing(&mut self, runtime: &Runtime) {
        let (guard, finished) = (self.guard(), self.finished_sections.clone());
        let go = Notify::default();
        self.sections.push(go.clone());
        self.handles.push(runtime.spawn(async move {
            let _guard = guard;
            shield(async {
                go.notified().await;
                yield_now().await;
                finished.fetch_add(1, Ordering::SeqCst);
            })
            .await;
            pending::<()>().await;
        }));
    }

    fn awaits_another(&mut self, runtime: &Runtime) {
        let (inner, outer) = (self.guard(), self.guard());
        self.handles.push(runtime.spawn(async move {
            let _outer = outer;
            let child = windlass_runtime::spawn(async move {
                let _inner = inner;
                pending::<()>().await;
            });
            let _ = child.await;
            pending::<()>().await;
        }));
    }

    fn spawns_without_end(&mut self, runtime: &Runtime) {
        let guard = self.guard();
        self.handles.push(runtime.spawn(async move {
            let _guard = guard;
            loop {
                let _ = windlass_runtime::spawn(async {}).await;
            }
        }));
    }

    /// One closure that runs, and some that wait for its thread.
    fn blocking(&mut self, runtime: &Runtime) {
        let (started, guard) = (Gate::default(), self.guard());
        let says = started.clone();
        self.handles.push(runtime.spawn_blocking(move || {
            let _guard = guard;
            says.open();
            thread::sleep(Duration::from_millis(20));
        }));
        started.wait();
        for _ in 0..10 {
            let guard = self.guard();
            self.handles
                .push(runtime.spawn_blocking(move || drop(guard)));
        }
    }
}

fn drop_with_tasks_in_every_state(workers: usize) {
    let runtime = Runtime::builder()
        .workers(workers)
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    let mut zoo = Zoo::fill(&runtime);
    eventually("the sections wait, and many others", || {
        let waits = zoo.sections.iter().all(Notify::has_waiter);
        waits && runtime.snapshot().pool.suspended_tasks > 100
    });
    let stop = Arc::new(AtomicBool::new(false));
    let hammers: Vec<_> = (0..2)
        .map(|_| {
            let (wakers, stop) = (zoo.wakers.clone(), stop.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let wakers = wakers.lock().unwrap().clone();
                    wakers.iter().for_each(Waker::wake_by_ref);
                }
            })
        })
        .collect();
    // Sections that end while the runtime is being dropped.
    let sections = std::mem::take(&mut zoo.sections);
    let finisher = thread::spawn(move || {
        spin_for(Duration::from_millis(5));
        sections.iter().for_each(Notify::notify);
    });
    // The last queued ones: nobody has looked at them when the drop begins.
    for _ in 0..100 {
        let guard = zoo.guard();
        zoo.handles.push(runtime.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        }));
    }
    in_time("dropping the runtime", move || drop(runtime));
    assert_eq!(
        zoo.drops.count(),
        zoo.guards,
        "{workers} workers: futures dropped, of all"
    );
    stop.store(true, Ordering::Relaxed);
    hammers
        .into_iter()
        .for_each(|hammer| hammer.join().unwrap());
    finisher.join().unwrap();
    let sections = zoo.finished_sections.load(Ordering::SeqCst);
    assert_eq!(sections, 50, "shielded sections ran to their end");
    for handle in zoo.handles {
        // The blocking closure that was running is the only one with an output.
        let _ = wait("a handle of the dropped runtime", handle);
    }
    assert_eq!(zoo.drops.count(), zoo.guards, "nothing was dropped twice");
}

#[test]
fn e9_dropping_a_runtime_of_1_worker_with_tasks_in_every_state_drops_each_once() {
    (0..5).for_each(|_| drop_with_tasks_in_every_state(1));
}

#[test]
fn e9_dropping_a_runtime_of_2_workers_with_tasks_in_every_state_drops_each_once() {
    (0..5).for_each(|_| drop_with_tasks_in_every_state(2));
}

#[test]
fn e9_dropping_a_runtime_of_4_workers_with_tasks_in_every_state_drops_each_once() {
    (0..5).for_each(|_| drop_with_tasks_in_every_state(4));
}

#[test]
fn e9_a_million_suspended_tasks_are_dropped_in_seconds() {
    const TASKS: usize = 1_000_000;
    let runtime = runtime(2);
    let drops = Drops::default();
    for _ in 0..TASKS {
        let guard = drops.guard();
        let waits = async move {
            let _guard = guard;
            pending::<()>().await;
        };
        runtime.spawn(waits).detach();
    }
    eventually("all are suspended", || {
        runtime.snapshot().pool.suspended_tasks == TASKS
    });
    // Three seconds, and ten times that in real time.
    let report = runtime.shutdown(Duration::from_secs(30));
    assert!(report.is_clean(), "{report}");
    assert_eq!(drops.count(), TASKS);
}

#[test]
fn spawns_that_race_with_the_shutdown_are_run_or_cancelled() {
    for _ in 0..20 {
        let runtime = runtime(2);
        let drops = Drops::default();
        let spawner = |handle: windlass_runtime::Handle, drops: Drops| {
            thread::spawn(move || {
                let spawn = |_| {
                    let guard = drops.guard();
                    handle.spawn(async move {
                        yield_now().await;
                        drop(guard);
                    })
                };
                (0..2_000).map(spawn).collect::<Vec<_>>()
            })
        };
        let spawners: Vec<_> = (0..2)
            .map(|_| spawner(runtime.handle().clone(), drops.clone()))
            .collect();
        eventually("they spawn", || drops.count() > 0);
        drop(runtime);
        for spawner in spawners {
            for handle in spawner.join().unwrap() {
                if let Err(error) = windlass_core::block_on(handle) {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
        }
        assert_eq!(drops.count(), 4_000);
    }
}

#[test]
fn a_shield_that_does_not_end_is_dropped_at_the_deadline() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let guard = drops.guard();
    let task = runtime.spawn(async move {
        let _guard = guard;
        shield(pending::<()>()).await;
    });
    eventually("the task waits", || {
        runtime.snapshot().pool.suspended_tasks == 1
    });
    let report = in_time("the shutdown", move || {
        runtime.shutdown(Duration::from_millis(100))
    });
    assert!(report.is_clean(), "{report}");
    assert!(
        report.took >= Duration::from_millis(100),
        "the section had its time: {report}"
    );
    assert_eq!(drops.count(), 1);
    assert!(wait("the shielded task", task).unwrap_err().is_cancelled());
}

#[test]
fn the_report_names_a_stuck_worker_and_the_process_goes_on() {
    let runtime = runtime(2);
    let drops = Drops::default();
    let (gate, running, guard) = (Gate::default(), Gate::default(), drops.guard());
    let (held, says) = (gate.clone(), running.clone());
    let line = line!() + 1;
    let named = task::Builder::new().name("the stuck one");
    let stuck = named.spawn_on(runtime.handle(), async move {
        let _guard = guard;
        says.open();
        held.wait();
        yield_now().await;
        unreachable!("no poll starts after shutdown returned");
    });
    running.wait();
    // What is suspended is dropped by the worker that is left.
    let other_guards: Vec<_> = (0..100).map(|_| drops.guard()).collect();
    for guard in other_guards {
        let waits = async move {
            let _guard = guard;
            pending::<()>().await;
        };
        runtime.spawn(waits).detach();
    }
    eventually("the others wait", || {
        let pool = runtime.snapshot().pool;
        pool.suspended_tasks == 100 && pool.unparked == 1
    });
    let began = Instant::now();
    let report = in_time("the shutdown", move || {
        runtime.shutdown(Duration::from_millis(300))
    });
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "it took {:?}",
        began.elapsed()
    );
    assert_eq!(drops.count(), 100, "all but the stuck one");
    let [worker] = &report.stuck_workers[..] else {
        panic!("one worker is stuck: {report}")
    };
    assert_eq!(worker.name.as_deref(), Some("the stuck one"));
    let location = worker.location.expect("a location");
    assert_eq!((location.file(), location.line()), (file!(), line));
    let text = report.to_string();
    assert!(
        text.contains("did not return from task the stuck one, spawned at"),
        "{text}"
    );
    gate.open();
    assert!(wait("the stuck task", stuck).unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 101);
}

/// The only worker is stuck: what waits behind it cannot be dropped in time. It must not be lost
/// for good either: when the poll returns, the worker drops it, and the handles resolve.
#[test]
fn what_waits_behind_the_only_stuck_worker_is_dropped_when_it_comes_back() {
    let runtime = runtime(1);
    let drops = Drops::default();
    let guard = drops.guard();
    let suspended = runtime.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    eventually("the task waits", || {
        runtime.snapshot().pool.suspended_tasks == 1
    });
    let (gate, holder) = hold_worker(&runtime);
    let guard = drops.guard();
    let queued = runtime.spawn(async move { drop(guard) });
    let report = in_time("the shutdown", move || {
        runtime.shutdown(Duration::from_millis(300))
    });
    assert!(!report.stuck_workers.is_empty(), "{report}");
    assert_eq!(drops.count(), 0);
    gate.open();
    join("the stuck task, which ends in that poll", holder);
    assert!(
        wait("the suspended task", suspended)
            .unwrap_err()
            .is_cancelled()
    );
    assert!(wait("the queued task", queued).unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 2);
}

/// A poll that returns after the deadline with a shield up must not leave an idle task behind that
/// no worker will ever drop (and whose wake would reach for a pool that is gone).
#[test]
fn a_stuck_task_that_comes_back_shielded_is_dropped_all_the_same() {
    let runtime = runtime(2);
    let (gate, running, drops) = (Gate::default(), Gate::default(), Drops::default());
    let (held, says, guard) = (gate.clone(), running.clone(), drops.guard());
    let stuck = runtime.spawn(async move {
        let _guard = guard;
        says.open();
        held.wait();
        shield(pending::<()>()).await;
    });
    running.wait();
    eventually("the other worker sleeps", || {
        runtime.snapshot().pool.unparked == 1
    });
    let report = in_time("the shutdown", move || {
        runtime.shutdown(Duration::from_millis(300))
    });
    assert!(!report.stuck_workers.is_empty(), "{report}");
    gate.open();
    assert!(
        wait("the task that was stuck", stuck)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(drops.count(), 1);
}

#[test]
fn the_report_names_a_stuck_blocking_job_and_comes_in_time() {
    let runtime = runtime(1);
    let (gate, running) = (Gate::default(), Gate::default());
    let (held, says) = (gate.clone(), running.clone());
    let line = line!() + 1;
    let builder = task::Builder::new().name("the long job");
    let job = builder
        .spawn_blocking_on(runtime.handle(), move || {
            says.open();
            held.wait();
            5
        })
        .unwrap();
    running.wait();
    let began = Instant::now();
    let report = runtime.shutdown(Duration::from_millis(100));
    let took = began.elapsed();
    gate.open();
    let [stuck] = &report.stuck_jobs[..] else {
        panic!("one job is stuck: {report}")
    };
    assert_eq!(stuck.name.as_deref(), Some("the long job"));
    assert_eq!(
        (stuck.location.file(), stuck.location.line()),
        (file!(), line)
    );
    assert!(!report.is_clean());
    let text = report.to_string();
    assert!(
        text.contains("blocking job the long job, spawned at"),
        "{text}"
    );
    assert!(
        took < Duration::from_secs(2),
        "a limit of 100 ms took {took:?}"
    );
    assert_eq!(
        join("the job itself", job),
        5,
        "it went on in the background"
    );
}

#[test]
fn no_poll_starts_after_shutdown_returned() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let polls = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let polls = polls.clone();
            let counts = async move {
                loop {
                    polls.fetch_add(1, Ordering::SeqCst);
                    yield_now().await;
                }
            };
            runtime.spawn(counts).detach();
        }
        eventually("they run", || polls.load(Ordering::SeqCst) > 1000);
        let report = runtime.shutdown(PATIENCE);
        let at_return = polls.load(Ordering::SeqCst);
        assert!(report.is_clean(), "{report}");
        spin_for(Duration::from_millis(20));
        assert_eq!(polls.load(Ordering::SeqCst), at_return);
    }
}

/// Drops `runtime` on one of its own threads with `run`; gives the panic's message.
fn drop_inside(
    runtime: Runtime,
    run: impl FnOnce(&windlass_runtime::Handle, DropsRuntime),
) -> String {
    expect_panics();
    let drops = Drops::default();
    let guard = drops.guard();
    let suspended = runtime.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    let handle = runtime.handle().clone();
    let (sender, receiver) = mpsc::channel();
    run(&handle, DropsRuntime(Some(runtime), sender));
    let message = receiver
        .recv_timeout(PATIENCE)
        .expect("the drop inside panicked");
    assert!(
        wait("the suspended task", suspended)
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(
        drops.count(),
        1,
        "the runtime is shut down in the background"
    );
    message
}

struct DropsRuntime(Option<Runtime>, mpsc::Sender<String>);

impl DropsRuntime {
    fn now(mut self) {
        let runtime = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(runtime))) {
            self.1.send(text(&*payload)).unwrap();
        }
    }
}

#[test]
fn dropping_a_runtime_in_its_own_task_is_a_clear_panic_and_still_ends_it() {
    let message = drop_inside(runtime(2), |handle, drops| {
        handle.spawn(async move { drops.now() }).detach()
    });
    assert!(message.contains("must not be shut down or dropped on one of its own threads"));
    assert!(
        message.contains("use a Handle there"),
        "it says what to do: {message}"
    );
}

#[test]
fn dropping_a_runtime_in_its_own_blocking_closure_is_a_clear_panic_and_still_ends_it() {
    let message = drop_inside(runtime(1), |handle, drops| {
        handle.spawn_blocking(move || drops.now()).detach();
    });
    assert!(message.contains("must not be shut down or dropped on one of its own threads"));
}

#[test]
fn dropping_a_runtime_while_panicking_does_not_abort() {
    expect_panics();
    // On a thread of its own.
    let thread = thread::spawn(|| {
        let runtime = runtime(1);
        runtime.spawn(pending::<()>()).detach();
        panic!("with a runtime on the stack, on purpose");
    });
    assert!(thread.join().is_err());
    // On one of its own workers: a second panic there would abort the process.
    let inside = runtime(1);
    let handle = inside.handle().clone();
    let task = handle.spawn(async move {
        let _inside = inside;
        panic!("with its own runtime on the stack, on purpose");
    });
    let error = wait("the panicking task", task).unwrap_err();
    assert!(
        error.to_string().contains("on the stack, on purpose"),
        "{error}"
    );
    let after = handle.spawn(pending::<()>());
    assert!(
        wait("what the background shutdown ends", after)
            .unwrap_err()
            .is_cancelled()
    );
}

#[test]
fn shutdown_on_an_own_worker_is_a_clear_panic() {
    expect_panics();
    let inside = runtime(2);
    let handle = inside.handle().clone();
    let task = handle.spawn(async move { inside.shutdown(PATIENCE).is_clean() });
    let error = wait("the task", task).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("must not be shut down or dropped"),
        "{error}"
    );
}

#[test]
fn block_on_inside_a_task_is_a_clear_panic() {
    expect_panics();
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let task = runtime.spawn(async move { handle.block_on(async { 1 }) });
    let error = wait("the task", task).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Cannot start a runtime from within a runtime"),
        "{error}"
    );
    let task = runtime.spawn(async move { windlass_core::block_on(async { 1 }) });
    assert!(wait("the task", task).unwrap_err().is_panic());
}

#[test]
fn block_on_inside_block_on_is_a_clear_panic() {
    let runtime = runtime(1);
    let message = panic_message(|| runtime.block_on(async { runtime.block_on(async { 1 }) }));
    assert!(
        message.contains("Cannot start a runtime from within a runtime"),
        "{message}"
    );
    assert!(
        message.contains("spawn_blocking"),
        "it says what to do: {message}"
    );
    assert_eq!(
        runtime.block_on(async { 2 }),
        2,
        "the thread can block again afterwards"
    );
}

#[test]
fn dropping_a_runtime_in_a_task_of_another_is_fine() {
    let (outer, inner) = (runtime(1), runtime(1));
    let task = inner.spawn(pending::<()>());
    let dropper = outer.spawn(async move { drop(inner) });
    join("the task that drops", dropper);
    assert!(
        wait("the dropped runtime's task", task)
            .unwrap_err()
            .is_cancelled()
    );
}

/// Spawns on its runtime when it is dropped.
struct SpawnsOnDrop(Arc<AtomicUsize>);

impl Drop for SpawnsOnDrop {
    fn drop(&mut self) {
        windlass_runtime::spawn(async {}).detach();
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn futures_that_spawn_in_their_drop_do_not_hold_the_shutdown_up() {
    let runtime = runtime(2);
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let spawns = SpawnsOnDrop(dropped.clone());
        let waits = async move {
            let _spawns = spawns;
            pending::<()>().await;
        };
        runtime.spawn(waits).detach();
    }
    eventually("they wait", || {
        runtime.snapshot().pool.suspended_tasks == 100
    });
    let report = in_time("the shutdown", move || runtime.shutdown(PATIENCE));
    assert!(report.is_clean(), "{report}");
    assert_eq!(dropped.load(Ordering::SeqCst), 100);
}

/// A front end that says when it was told to stop.
struct Told {
    name: &'static str,
    early: bool,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl FrontEnd for Told {
    fn stop(self: Arc<Self>, _timeout: Duration) -> Stopping {
        Box::pin(async move {
            yield_now().await;
            self.log.lock().expect("no panic").push(self.name);
            Vec::new()
        })
    }

    fn stops_early(&self) -> bool {
        self.early
    }
}

impl Observe for Told {
    fn source(&self) -> &'static str {
        self.name
    }

    fn samples(&self, _take: &mut dyn FnMut(Sample)) {}

    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

#[test]
fn front_ends_that_use_others_stop_first_and_then_the_last_that_came() {
    let runtime = runtime(2);
    let log = Arc::<Mutex<Vec<&'static str>>>::default();
    for (name, early) in [
        ("processes", false),
        ("graphs", true),
        ("others", false),
        ("more graphs", true),
        ("the last", false),
    ] {
        let log = log.clone();
        let told = Told { name, early, log };
        runtime
            .handle()
            .attach(Arc::new(told))
            .expect("it is running");
    }
    runtime.shutdown(PATIENCE);
    assert_eq!(
        *log.lock().expect("no panic"),
        ["more graphs", "graphs", "the last", "others", "processes"]
    );
}
