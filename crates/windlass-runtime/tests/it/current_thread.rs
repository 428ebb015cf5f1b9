//! Runtimes whose tasks run on the thread in `block_on`.

use std::future::pending;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::task::{self, LocalSet, yield_now};
use windlass_runtime::{Builder, Runtime, coroutine, fork_join, spawn, time};
use windlass_sync::channel::{mpsc, oneshot};
use windlass_sync::lock::{Notify, Semaphore};

use crate::support::{eventually, in_time, panic_message};

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

#[test]
fn every_task_runs_on_the_thread_in_block_on() {
    let runtime = current_thread();
    let here = thread::current().id();
    let seen = runtime.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                spawn(async {
                    yield_now().await;
                    time::sleep(Duration::from_millis(1)).await;
                    thread::current().id()
                })
            })
            .collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.unwrap());
        }
        seen
    });
    assert!(seen.iter().all(|id| *id == here));
}

#[test]
fn nothing_runs_outside_of_block_on() {
    let runtime = current_thread();
    let count = Arc::new(AtomicUsize::new(0));
    let counting = count.clone();
    let task = runtime.spawn(async move {
        counting.fetch_add(1, Ordering::SeqCst);
        time::sleep(Duration::from_millis(1)).await;
        counting.fetch_add(1, Ordering::SeqCst);
    });
    thread::sleep(Duration::from_millis(30));
    assert_eq!(count.load(Ordering::SeqCst), 0);
    runtime.block_on(yield_now());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    thread::sleep(Duration::from_millis(30));
    assert_eq!(
        count.load(Ordering::SeqCst),
        1,
        "its timer waits for the next block_on"
    );
    runtime.block_on(task).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn other_threads_wake_the_one_that_sleeps() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    let (sender, mut receiver) = mpsc::channel(1);
    let other = thread::spawn(move || {
        for number in 0..200 {
            if number % 2 == 0 {
                sender.blocking_send(number).unwrap();
            } else {
                let sender = sender.clone();
                let sent = handle.spawn(async move { sender.send(number).await });
                // A handle's block_on runs no tasks: it waits until the runtime's does.
                handle.block_on(sent).unwrap().unwrap();
            }
        }
    });
    let sum = runtime.block_on(async {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum
    });
    assert_eq!(sum, (0..200).sum::<i32>());
    other.join().unwrap();
}

#[test]
fn sockets_files_and_blocking_closures_work() {
    let runtime = current_thread();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    });
    let here = thread::current().id();
    let (echo, thread_of_closure) = runtime.block_on(async move {
        let echo = windlass_runtime::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"ping").unwrap();
            let mut word = [0; 4];
            stream.read_exact(&mut word).unwrap();
            (word, thread::current().id())
        });
        echo.await.unwrap()
    });
    assert_eq!(&echo, b"ping");
    assert_ne!(thread_of_closure, here);
    server.join().unwrap();
}

#[test]
fn the_future_need_not_be_send_and_may_borrow() {
    let runtime = current_thread();
    let (text, shared) = (String::from("borrowed"), Rc::new(5));
    let length = runtime.block_on(async {
        let held = shared.clone();
        yield_now().await;
        text.len() + *held
    });
    assert_eq!(length, 13);
    let set = LocalSet::new();
    let local = runtime.block_on(set.run_until(async {
        let shared = Rc::new(7);
        task::spawn_local(async move { *shared }).await.unwrap()
    }));
    assert_eq!(local, 7);
}

#[test]
fn a_panic_of_the_future_goes_on_in_the_caller_and_the_runtime_works_on() {
    let runtime = current_thread();
    let message = panic_message(|| runtime.block_on(async { panic!("of the root") }));
    assert!(message.contains("of the root"), "{message}");
    let error = runtime.block_on(async { spawn(async { panic!("of a task") }).await });
    assert!(error.unwrap_err().is_panic());
    assert_eq!(runtime.block_on(async { 3 }), 3);
    let nested = panic_message(|| runtime.block_on(async { windlass_core::block_on(async {}) }));
    assert!(
        nested.contains("Cannot start a runtime from within a runtime"),
        "{nested}"
    );
}

#[test]
fn two_threads_in_block_on_take_turns() {
    let runtime = Arc::new(current_thread());
    let notify = Arc::new(Notify::new());
    let (first, second) = (runtime.clone(), runtime.clone());
    let (sender, receiver) = oneshot::channel();
    let waits = notify.clone();
    // Has the turn until it is notified.
    let driver = thread::spawn(move || {
        first.block_on(async move {
            sender.send(()).unwrap();
            waits.notified().await;
        });
    });
    windlass_core::block_on(receiver).unwrap();
    let (gate, opens) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begun, open) = (gate.clone(), opens.clone());
    // Waits for a task, which the first thread runs, then the second.
    let other = thread::spawn(move || {
        second.block_on(async move {
            let task = spawn(async move {
                begun.add_permits(1);
                open.acquire().await.unwrap().forget();
                thread::current().id()
            });
            (task.await.unwrap(), thread::current().id())
        })
    });
    windlass_core::block_on(gate.acquire()).unwrap().forget();
    notify.notify_one();
    driver.join().unwrap();
    opens.add_permits(1);
    let (of_task, of_thread) = in_time("the second thread takes over", || other.join().unwrap());
    assert_eq!(of_task, of_thread);
}

#[test]
fn dropping_the_runtime_drops_its_tasks_and_runs_their_destructors() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    for begun in [false, true] {
        let runtime = current_thread();
        let guards: Vec<_> = (0..5).map(|_| Dropped(count.clone())).collect();
        for guard in guards {
            runtime.spawn(async move {
                pending::<()>().await;
                drop(guard);
            });
        }
        if begun {
            runtime.block_on(yield_now());
        }
        let report = runtime.shutdown(Duration::from_secs(10));
        assert!(report.is_clean(), "{report}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 10);
}

#[test]
fn handles_resolve_after_the_end() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    let never_begun = runtime.spawn(async { 1 });
    drop(runtime);
    assert!(
        windlass_core::block_on(never_begun)
            .unwrap_err()
            .is_cancelled()
    );
    assert!(windlass_core::block_on(handle.spawn(async { 2 })).is_err());
}

#[test]
fn coroutines_fork_join_and_blocking_in_place_work_within_a_block_on() {
    let runtime = current_thread();
    let here = thread::current().id();
    let result = runtime.block_on(async {
        let coroutine = coroutine::spawn(|| {
            coroutine::wait(time::sleep(Duration::from_millis(1)));
            thread::current().id()
        });
        let joined = spawn(async { fork_join::join(|| 1, || 2) });
        (coroutine.await.unwrap(), joined.await.unwrap())
    });
    assert_eq!(result, (here, (1, 2)));
    let refused = panic_message(|| runtime.block_on(async { task::block_in_place(|| ()) }));
    assert!(refused.contains("can call blocking only"), "{refused}");
}

#[test]
fn a_coroutine_waits_and_goes_on_within_a_block_on() {
    let runtime = current_thread();
    let gate = Arc::new(Semaphore::new(0));
    let waits = gate.clone();
    let ended = runtime.block_on(async move {
        let coroutine = coroutine::spawn(move || {
            coroutine::wait(waits.acquire()).unwrap().forget();
            3
        });
        yield_now().await;
        gate.add_permits(1);
        coroutine.await
    });
    assert_eq!(ended.unwrap(), 3);
    assert!(runtime.shutdown(Duration::from_secs(10)).is_clean());
}

#[test]
fn a_busy_task_does_not_keep_timers_and_sockets_from_the_others() {
    let runtime = current_thread();
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = turns.clone();
    runtime.block_on(async move {
        let busy = spawn(async move {
            loop {
                counting.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        });
        time::sleep(Duration::from_millis(20)).await;
        busy.abort();
        assert!(busy.await.unwrap_err().is_cancelled());
    });
    assert!(turns.load(Ordering::SeqCst) > 10);
}

#[test]
fn a_runtime_per_thread_many_times_over_leaves_no_thread_behind() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    for _ in 0..50 {
        let runtime = current_thread();
        runtime.spawn(pending::<()>());
        runtime.block_on(yield_now());
    }
    eventually("the threads end", || threads() <= before);
}

#[test]
fn a_shielded_task_of_a_private_pool_has_its_timers_at_the_end() {
    let runtime = current_thread();
    let dispatcher = Dispatcher::builder(1).build_in(runtime.handle()).unwrap();
    let committed = Arc::new(AtomicUsize::new(0));
    let count = committed.clone();
    let task = dispatcher.spawn(async move {
        task::shield(async {
            time::sleep(Duration::from_millis(30)).await;
            count.fetch_add(1, Ordering::SeqCst);
        })
        .await;
    });
    runtime.block_on(time::sleep(Duration::from_millis(5)));
    in_time("the end", move || {
        let report = runtime.shutdown(Duration::from_secs(60));
        assert!(report.is_clean(), "{report}");
    });
    assert_eq!(committed.load(Ordering::SeqCst), 1);
    drop(task);
}
