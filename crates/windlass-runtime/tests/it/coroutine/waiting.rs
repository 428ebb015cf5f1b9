//! Waiting suspends the coroutine and not its worker, and it goes on where it was.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream};
use windlass_runtime::task::LocalSet;
use windlass_runtime::{Runtime, coroutine, time};
use windlass_sync::channel;
use windlass_sync::{lock::Barrier, lock::Semaphore};

use crate::support::{expect_panics, in_time, join, panic_message, runtime, wait};

#[test]
fn a_coroutine_returns_what_its_closure_returns() {
    let runtime = runtime(2);
    let handle = coroutine::Builder::new().spawn_on(runtime.handle(), || 6 * 7);
    assert_eq!(join("it returns", handle), 42);
}

#[test]
fn thousands_of_coroutines_share_one_worker() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let handles: Vec<_> = (0..2_000)
        .map(|number| {
            coroutine::spawn(move || {
                for _ in 0..10 {
                    coroutine::yield_now();
                }
                coroutine::wait(time::sleep(Duration::from_millis(1)));
                number
            })
        })
        .collect();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(join("each ends", handle), number);
    }
}

#[test]
fn tasks_coroutines_and_threads_join_each_other() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let task = windlass_runtime::spawn(async {
        let coroutine = coroutine::spawn(|| {
            let task = windlass_runtime::spawn(async { 1 });
            1 + coroutine::wait(task).expect("no panic")
        });
        1 + coroutine.await.expect("no panic")
    });
    let handle = runtime.handle().clone();
    let total = in_time("a thread joins", move || {
        let _entered = handle.enter();
        let outer = coroutine::spawn(move || coroutine::wait(task).expect("no panic") + 1);
        coroutine::wait(outer).expect("no panic")
    });
    assert_eq!(total, 4);
}

#[test]
fn channels_locks_barriers_and_select_work_inside() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let (sender, receiver) = channel::mpmc::buffered::<u64>(2);
    let permits = Arc::new(Semaphore::new(2));
    let barrier = Arc::new(Barrier::new(4));
    let senders: Vec<_> = (0..4u64)
        .map(|number| {
            let (sender, permits, barrier) = (sender.clone(), permits.clone(), barrier.clone());
            coroutine::spawn(move || {
                coroutine::wait(barrier.wait());
                for _ in 0..100 {
                    let _permit = coroutine::wait(permits.acquire()).expect("open");
                    coroutine::wait(sender.send(number)).expect("received");
                }
            })
        })
        .collect();
    drop(sender);
    let sum = coroutine::spawn(move || {
        let mut sum = 0;
        loop {
            let next = time::timeout(Duration::from_secs(60), receiver.recv());
            match coroutine::wait(next).expect("in time") {
                Some(number) => sum += number,
                None => return sum,
            }
        }
    });
    assert_eq!(join("all are received", sum), 100 * (1 + 2 + 3));
    for sender in senders {
        join("each sender ends", sender);
    }
}

#[test]
fn a_server_of_coroutines_answers_on_real_sockets() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let (address, bound) = channel::oneshot::channel();
    let server = coroutine::spawn(move || {
        let listener = coroutine::wait(TcpListener::bind("127.0.0.1:0")).expect("a port");
        address.send(listener.local_addr()).expect("awaited");
        for _ in 0..8 {
            let (mut stream, _) = coroutine::wait(listener.accept()).expect("a client");
            let _served = coroutine::spawn(move || {
                let mut line = [0; 5];
                coroutine::wait(stream.read_exact(&mut line)).expect("a line");
                line.make_ascii_uppercase();
                coroutine::wait(stream.write_all(&line)).expect("answered");
            });
        }
    });
    let address = wait("it listens", bound).expect("bound").expect("a port");
    let ours = coroutine::spawn(move || {
        let mut stream = coroutine::wait(TcpStream::connect(address)).expect("connected");
        let mut answer = [0; 5];
        coroutine::wait(stream.write_all(b"ours!")).expect("sent");
        coroutine::wait(stream.read_exact(&mut answer)).expect("answered");
        answer
    });
    for _ in 0..7 {
        let mut stream = std::net::TcpStream::connect(address).expect("connected");
        stream.write_all(b"hello").expect("sent");
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).expect("answered");
        assert_eq!(&answer, b"HELLO");
    }
    assert_eq!(&join("the client ends", ours), b"OURS!");
    join("the server ends", server);
}

#[test]
fn once_begun_a_coroutine_stays_on_its_worker() {
    let runtime = runtime(4);
    let _entered = runtime.enter();
    // The first two begin on different workers: each holds its own until the other is there.
    let both = Arc::new(std::sync::Barrier::new(2));
    let handles: Vec<_> = (0..200)
        .map(|number| {
            let both = both.clone();
            coroutine::spawn(move || {
                if number < 2 {
                    both.wait();
                }
                let here = thread::current().id();
                for round in 0..20 {
                    if round % 5 == 0 {
                        coroutine::wait(time::sleep(Duration::from_micros(300)));
                    } else {
                        coroutine::yield_now();
                    }
                    assert_eq!(thread::current().id(), here, "a coroutine moved");
                }
                here
            })
        })
        .collect();
    let threads: HashSet<_> = handles
        .into_iter()
        .map(|handle| join("each ends", handle))
        .collect();
    assert!(threads.len() > 1, "one worker started them all");
}

/// A woken coroutine goes on where it began, and that worker may be asleep.
#[test]
fn a_wake_from_a_thread_a_timer_or_another_pool_resumes_it_on_its_own_worker() {
    let (home, other) = (runtime(2), runtime(2));
    for _ in 0..50 {
        let (sender, receiver) = channel::mpmc::buffered::<u32>(1);
        let coroutine = coroutine::Builder::new().spawn_on(home.handle(), move || {
            let here = thread::current().id();
            let name = thread::current().name().map(str::to_owned);
            for _ in 0..2 {
                coroutine::wait(receiver.recv()).expect("sent");
                assert_eq!(thread::current().id(), here);
            }
            coroutine::wait(time::sleep(Duration::from_micros(200)));
            assert_eq!(thread::current().id(), here);
            name
        });
        let from_pool = sender.clone();
        join(
            "the other pool sends",
            other.spawn(async move { from_pool.send(1).await.expect("received") }),
        );
        in_time("a thread sends", move || {
            windlass_core::block_on(sender.send(2)).expect("received");
        });
        let name = join("it goes on", coroutine).expect("workers have names");
        assert!(name.starts_with("windlass"), "{name}");
    }
}

#[test]
fn a_migrating_coroutine_may_be_gone_on_with_anywhere() {
    let runtime = runtime(4);
    let _entered = runtime.enter();
    let threads: Arc<Mutex<HashSet<thread::ThreadId>>> = Arc::default();
    let handles: Vec<_> = (0..64)
        .map(|_| {
            let threads = threads.clone();
            // SAFETY: nothing on this stack belongs to a thread over a suspension.
            migrating(move || {
                for _ in 0..100 {
                    let here = thread::current().id();
                    threads.lock().expect("no panic").insert(here);
                    coroutine::wait(time::sleep(Duration::from_micros(50)));
                }
            })
        })
        .collect();
    for handle in handles {
        join("each ends", handle);
    }
    assert!(threads.lock().expect("no panic").len() > 1);
}

#[allow(unsafe_code, reason = "the function under test is unsafe")]
fn migrating(f: impl FnOnce() + Send + 'static) -> windlass_core::task::JoinHandle<()> {
    // SAFETY: the callers keep nothing of a thread's over a suspension.
    unsafe { coroutine::spawn_migrating(f) }
}

#[test]
fn a_local_coroutine_may_hold_what_is_not_send() {
    let runtime = runtime(2);
    let set = LocalSet::new();
    let shared = std::rc::Rc::new(std::cell::Cell::new(0));
    let inner = shared.clone();
    runtime.block_on(set.run_until(async move {
        let handles: Vec<_> = (0..10)
            .map(|_| {
                let shared = inner.clone();
                coroutine::spawn_local(move || {
                    for _ in 0..10 {
                        shared.set(shared.get() + 1);
                        coroutine::yield_now();
                    }
                    coroutine::wait(time::sleep(Duration::from_millis(1)));
                })
            })
            .collect();
        for handle in handles {
            handle.await.expect("no panic");
        }
    }));
    assert_eq!(shared.get(), 100);
}

#[test]
fn a_suspended_local_coroutine_unwinds_when_its_set_is_dropped() {
    struct Count(std::rc::Rc<std::cell::Cell<u32>>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let runtime = runtime(1);
    let set = LocalSet::new();
    let dropped = std::rc::Rc::new(std::cell::Cell::new(0));
    let inner = dropped.clone();
    runtime.block_on(async {
        set.run_until(async move {
            let _forgotten = coroutine::spawn_local(move || {
                let _count = Count(inner);
                coroutine::wait(std::future::pending::<()>());
            });
            windlass_runtime::task::yield_now().await;
            windlass_runtime::task::yield_now().await;
        })
        .await;
        assert_eq!(dropped.get(), 0);
        drop(set);
        assert_eq!(dropped.get(), 1);
    });
}

#[test]
fn a_panic_goes_to_the_handle_and_the_worker_goes_on() {
    expect_panics();
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let panicked = coroutine::spawn(|| {
        coroutine::yield_now();
        panic!("of a coroutine, on purpose");
    });
    let error = wait("it panics", panicked).expect_err("it panicked");
    assert!(error.is_panic());
    let after = coroutine::spawn(std::thread::panicking);
    assert!(!join("the worker goes on", after));
}

#[test]
fn waiting_in_a_future_is_refused_with_advice() {
    expect_panics();
    let runtime = runtime(1);
    let task = runtime.spawn(async { coroutine::wait(async {}) });
    let error = wait("it panics", task).expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("Cannot start a runtime from within a runtime"),
        "{error}"
    );
    let task = runtime.spawn(async { coroutine::scope(|_| ()) });
    let error = wait("it panics", task).expect_err("refused");
    assert!(
        error.to_string().contains("use it in a coroutine"),
        "{error}"
    );
}

#[test]
fn block_on_inside_a_coroutine_suspends_it() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let handle = runtime.handle().clone();
    let (sender, receiver) = channel::mpmc::buffered::<u32>(1);
    // One worker: if it were blocked, nobody could send.
    let waiting = coroutine::spawn(move || {
        let first = handle.block_on(receiver.recv());
        let second = windlass_core::block_on(receiver.recv());
        (first, second, receiver.blocking_recv())
    });
    let sending = windlass_runtime::spawn(async move {
        for number in 5..8 {
            sender.send(number).await.expect("received");
        }
    });
    assert_eq!(join("received", waiting), (Some(5), Some(6), Some(7)));
    join("sent", sending);
}

#[test]
fn an_early_unpark_is_kept_and_several_count_as_one() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let passed = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel::oneshot::channel();
    let inner = passed.clone();
    let parked = coroutine::spawn(move || {
        let own = coroutine::current();
        own.unpark();
        own.unpark();
        coroutine::park();
        inner.fetch_add(1, Ordering::SeqCst);
        sender.send(coroutine::current()).expect("awaited");
        coroutine::park();
        inner.fetch_add(1, Ordering::SeqCst);
    });
    let other = wait("the first park ends", receiver).expect("sent");
    thread::sleep(Duration::from_millis(20));
    assert_eq!(passed.load(Ordering::SeqCst), 1, "the second one waits");
    other.unpark();
    join("the second park ends", parked);
    assert_eq!(passed.load(Ordering::SeqCst), 2);
}

#[test]
fn parking_outside_of_a_coroutine_is_refused() {
    expect_panics();
    assert!(panic_message(coroutine::park).contains("outside of a coroutine"));
}

#[test]
fn coroutines_and_tasks_share_a_worker_fairly() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let (turns, stop) = (Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]), {
        windlass_sync::CancellationToken::new()
    });
    let (inner, stopped) = (turns.clone(), stop.clone());
    let coroutine = coroutine::spawn(move || {
        while !stopped.is_cancelled() {
            inner[0].fetch_add(1, Ordering::Relaxed);
            coroutine::yield_now();
        }
    });
    let (inner, stopped) = (turns.clone(), stop.clone());
    let task = windlass_runtime::spawn(async move {
        while !stopped.is_cancelled() {
            inner[1].fetch_add(1, Ordering::Relaxed);
            windlass_runtime::task::yield_now().await;
        }
    });
    thread::sleep(Duration::from_millis(50));
    stop.cancel();
    join("the coroutine ends", coroutine);
    join("the task ends", task);
    let turns = [0, 1].map(|index| turns[index].load(Ordering::Relaxed) as f64);
    assert!((0.5..2.0).contains(&(turns[0] / turns[1])), "{turns:?}");
}

/// A loop over waits that are always ready still gives way.
#[test]
fn a_coroutine_that_is_always_ready_gives_way() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let stop = windlass_sync::CancellationToken::new();
    let stopped = stop.clone();
    let greedy = coroutine::spawn(move || {
        let permits = Semaphore::new(1);
        while !stopped.is_cancelled() {
            drop(coroutine::wait(permits.acquire()).expect("open"));
        }
    });
    let task = windlass_runtime::spawn(async move { stop.cancel() });
    join("the other one runs", task);
    join("it ends", greedy);
}

#[test]
fn coroutines_run_in_a_simulation_and_are_reproduced() {
    windlass_runtime::simulator::explore(20, || async {
        let (sender, receiver) = channel::mpmc::buffered::<u32>(1);
        let began = time::Instant::now();
        let senders: Vec<_> = (0..5)
            .map(|number| {
                let sender = sender.clone();
                coroutine::spawn(move || {
                    coroutine::wait(time::sleep(Duration::from_secs(u64::from(number))));
                    coroutine::wait(sender.send(number)).expect("received");
                })
            })
            .collect();
        drop(sender);
        let received = coroutine::spawn(move || {
            let mut all = Vec::new();
            while let Some(number) = coroutine::wait(receiver.recv()) {
                all.push(number);
            }
            all
        });
        assert_eq!(received.await.expect("no panic"), [0, 1, 2, 3, 4]);
        for sender in senders {
            sender.await.expect("no panic");
        }
        assert_eq!(began.elapsed(), Duration::from_secs(4));
    });
}

#[test]
fn the_snapshot_counts_coroutines_that_have_begun_and_the_dump_shows_their_stacks() {
    if cfg!(windlass_asan) {
        // Frames are larger there, and touch other pages.
        return;
    }
    let runtime = runtime(1);
    let handle = coroutine::Builder::new()
        .name("deep thinker")
        .spawn_on(runtime.handle(), || {
            let large = std::hint::black_box([1u8; 20_000]);
            coroutine::wait(std::future::pending::<()>());
            large.len()
        });
    let pinned = |runtime: &Runtime| runtime.snapshot().pool.workers[0].pinned_tasks;
    crate::support::eventually("it has begun", || pinned(&runtime) == 1);
    crate::support::eventually("it waits", || runtime.snapshot().pool.suspended_tasks == 1);
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).expect("into memory");
    let dump = String::from_utf8(dump).expect("text");
    assert!(dump.contains("deep thinker"), "{dump}");
    let line = dump
        .lines()
        .skip_while(|line| !line.starts_with("coroutine stacks in use"))
        .find(|line| line.contains("waiting.rs"))
        .unwrap_or_else(|| panic!("no stack in the dump: {dump}"));
    let touched: usize = line
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number of KiB");
    assert!((20..=64).contains(&touched), "{line}");
    handle.abort();
    assert!(wait("it ends", handle).expect_err("aborted").is_cancelled());
    crate::support::eventually("it is gone", || pinned(&runtime) == 0);
}
