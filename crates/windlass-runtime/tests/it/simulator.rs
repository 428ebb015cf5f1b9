//! The simulator: same seed, same trace; virtual time; a network that can be cut.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream};
use windlass_io::simulated::Net;
use windlass_runtime::simulator::explore;
use windlass_runtime::time::{Instant, sleep, timeout};
use windlass_runtime::{Runtime, spawn, spawn_blocking, task::yield_now};

use crate::support::{expect_panics, panic_message};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Which of three tasks finish in which order.
fn order(seed: u64) -> (Vec<usize>, u64) {
    let runtime = Runtime::simulated(seed);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = order.clone();
    runtime.block_on(async move {
        let tasks: Vec<_> = (0..6)
            .map(|index| {
                let log = log.clone();
                spawn(async move {
                    for _ in 0..index % 3 {
                        yield_now().await;
                    }
                    sleep(ms(index as u64 % 2)).await;
                    log.lock().unwrap().push(index);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let order = order.lock().unwrap().clone();
    (order, runtime.trace().expect("simulated").hash)
}

#[test]
fn the_same_seed_gives_the_same_trace_and_others_give_others() {
    let runs: Vec<_> = (0..50).map(order).collect();
    for (seed, run) in runs.iter().enumerate() {
        assert_eq!(*run, order(seed as u64), "seed {seed}");
    }
    let mut orders: Vec<_> = runs.iter().map(|run| run.0.clone()).collect();
    orders.sort();
    orders.dedup();
    assert!(
        orders.len() > 10,
        "only {} orders in 50 seeds",
        orders.len()
    );
}

/// Increments with a gap between reading and writing.
async fn lost_update() -> u32 {
    let counter = Arc::new(Mutex::new(0));
    let add = |counter: Arc<Mutex<u32>>| async move {
        let seen = *counter.lock().unwrap();
        yield_now().await;
        *counter.lock().unwrap() = seen + 1;
    };
    let tasks = [spawn(add(counter.clone())), spawn(add(counter.clone()))];
    for task in tasks {
        task.await.unwrap();
    }
    *counter.lock().unwrap()
}

#[test]
fn a_race_is_found_by_some_seed_and_replayed_by_it() {
    let result = |seed| Runtime::simulated(seed).block_on(lost_update());
    let racing = (0..1000)
        .find(|seed| result(*seed) == 1)
        .expect("a seed finds it");
    assert!((0..1000).any(|seed| result(seed) == 2), "and others do not");
    for _ in 0..10 {
        assert_eq!(result(racing), 1, "the seed replays it");
    }
}

#[test]
fn explore_names_the_failing_seed() {
    let failed = catch_unwind(|| {
        explore(1000, || async {
            assert_eq!(lost_update().await, 2, "an update was lost")
        })
    });
    assert!(failed.is_err());
    explore(20, || async { sleep(ms(5)).await });
}

#[test]
fn an_input_from_outside_is_noticed() {
    static CALLS: Mutex<u64> = Mutex::new(0);
    let differs = catch_unwind(|| {
        explore(1, || async {
            let wait = {
                let mut calls = CALLS.lock().unwrap();
                *calls += 1;
                *calls
            };
            sleep(ms(wait)).await;
        });
    });
    let message = *differs.expect_err("noticed").downcast::<String>().unwrap();
    assert!(message.contains("two different traces"), "{message}");
}

#[test]
fn a_deadlock_is_reported_with_the_seed_and_who_waits() {
    let runtime = Runtime::simulated(77);
    let stuck = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let waits = windlass_runtime::task::Builder::new()
                .name("the one that waits")
                .spawn(std::future::pending::<()>());
            waits.await.unwrap();
        });
    }));
    let message = *stuck
        .expect_err("it deadlocks")
        .downcast::<String>()
        .unwrap();
    assert!(message.contains("seed 77"), "{message}");
    assert!(message.contains("the one that waits"), "{message}");
}

#[test]
fn a_year_passes_in_no_time() {
    let real = std::time::Instant::now();
    let year = Duration::from_secs(365 * 86_400);
    let passed = Runtime::simulated(5).block_on(async move {
        let began = Instant::now();
        sleep(year).await;
        began.elapsed()
    });
    assert_eq!(passed, year);
    assert!(real.elapsed() < Duration::from_secs(10));
}

#[test]
fn dropping_a_simulated_runtime_drops_its_tasks() {
    let held = Arc::new(());
    let runtime = Runtime::simulated(9);
    runtime.block_on(async {
        for kind in 0..4 {
            let held = held.clone();
            drop(spawn(async move {
                match kind {
                    0 => std::future::pending::<()>().await,
                    1 => sleep(Duration::from_secs(9)).await,
                    2 => loop {
                        yield_now().await
                    },
                    _ => windlass_runtime::task::shield(sleep(ms(30))).await,
                }
                drop(held);
            }));
        }
        sleep(ms(1)).await;
    });
    assert!(Arc::strong_count(&held) >= 4);
    drop(runtime);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn blocking_closures_run_in_lock_step() {
    let run = |seed| {
        let runtime = Runtime::simulated(seed);
        let log = Arc::new(Mutex::new(Vec::new()));
        let out = log.clone();
        runtime.block_on(async move {
            let jobs: Vec<_> = (0..4)
                .map(|index| {
                    let log = log.clone();
                    spawn_blocking(move || {
                        log.lock().unwrap().push(index);
                        // Waits in virtual time, and hands the turn back meanwhile.
                        windlass_runtime::Handle::current().block_on(sleep(ms(10 * index)));
                        log.lock().unwrap().push(10 + index);
                        Instant::now()
                    })
                })
                .collect();
            for job in jobs {
                job.await.unwrap();
            }
        });
        let log = out.lock().unwrap().clone();
        (log, runtime.trace().unwrap().hash)
    };
    for seed in 0..20 {
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed}");
        assert_eq!(first.0.len(), 8);
    }
}

async fn connect(address: &str) -> TcpStream {
    loop {
        match TcpStream::connect(address).await {
            Ok(stream) => return stream,
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotFound
                ),
                "{error}"
            ),
        }
        sleep(ms(1)).await;
    }
}

async fn echo_server() {
    let listener = TcpListener::bind("server:7").await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                if stream.write_all(&buffer[..count]).await.is_err() {
                    break;
                }
            }
        }));
    }
}

#[test]
fn messages_take_the_latency_and_keep_their_order() {
    for seed in 0..20 {
        Runtime::simulated(seed).block_on(async {
            let net = Net::current();
            net.latency(ms(5)..=ms(20));
            drop(spawn(net.on("server", echo_server())));
            let mut stream = net.on("client", connect("server:7")).await;
            let began = Instant::now();
            for round in 0..20u8 {
                stream.write_all(&[round; 100]).await.unwrap();
            }
            for round in 0..20u8 {
                let mut answer = [0; 100];
                stream.read_exact(&mut answer).await.unwrap();
                assert_eq!(answer, [round; 100]);
            }
            assert!(began.elapsed() >= ms(10) && began.elapsed() <= ms(40 * 20));
        });
    }
}

#[test]
fn a_partition_is_silent_and_healing_delivers() {
    Runtime::simulated(4).block_on(async {
        let net = Net::current();
        drop(spawn(net.on("server", echo_server())));
        let mut stream = net.on("client", connect("server:7")).await;
        net.partition("client", "server");
        stream.write_all(b"anybody").await.unwrap();
        let mut answer = [0; 7];
        let silent = timeout(Duration::from_secs(60), stream.read_exact(&mut answer)).await;
        assert!(silent.is_err(), "nothing gets through");
        net.heal("client", "server");
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"anybody");
    });
}

#[test]
fn a_broken_connection_is_reset_on_both_sides() {
    Runtime::simulated(4).block_on(async {
        let net = Net::current();
        drop(spawn(net.on("server", echo_server())));
        let mut stream = net.on("client", connect("server:7")).await;
        let cut = net.clone();
        drop(spawn(async move {
            sleep(ms(50)).await;
            cut.break_connections("client", "server");
        }));
        let mut answer = [0; 7];
        let error = stream.read_exact(&mut answer).await.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let error = stream.write_all(b"x").await.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_full_window_holds_the_writer_back_until_the_reader_reads() {
    Runtime::simulated(4).block_on(async {
        let net = Net::current();
        let server = spawn(net.on("server", async {
            let listener = TcpListener::bind("server:7").await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            sleep(Duration::from_secs(5)).await;
            let mut total = 0;
            let mut buffer = vec![0; 4096];
            loop {
                match stream.read(&mut buffer).await.unwrap() {
                    0 => return total,
                    count => total += count,
                }
            }
        }));
        let mut stream = net.on("client", connect("server:7")).await;
        let began = Instant::now();
        stream.write_all(&vec![1; 300_000]).await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(4));
        drop(stream);
        assert_eq!(server.await.unwrap(), 300_000);
    });
}

#[test]
fn a_port_without_a_listener_refuses() {
    Runtime::simulated(4).block_on(async {
        let net = Net::current();
        let refused = net.on("client", TcpStream::connect("localhost:1")).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let unknown = TcpStream::connect("nowhere:1").await;
        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
        let taken = (
            TcpListener::bind("localhost:5").await,
            TcpListener::bind("localhost:5").await,
        );
        assert_eq!(taken.1.unwrap_err().kind(), ErrorKind::AddrInUse);
        assert!(TcpStream::connect("no port").await.is_err());
    });
}

#[test]
fn the_end_of_a_simulation_ends_or_names_its_blocking_closures() {
    let runtime = Runtime::simulated(11);
    let dropped = Arc::new(());
    let unbegun = runtime.block_on(async {
        let held = dropped.clone();
        let blocked = windlass_runtime::task::Builder::new().name("waits for ever");
        let blocked = blocked.spawn_blocking_on(&windlass_runtime::Handle::current(), || {
            windlass_runtime::Handle::current().block_on(std::future::pending::<()>());
        });
        drop(blocked.expect("a thread"));
        let freed = windlass_runtime::task::Builder::new().name("waits for a task");
        let task = spawn(std::future::pending::<()>());
        let freed = freed.spawn_blocking_on(&windlass_runtime::Handle::current(), move || {
            assert!(windlass_runtime::Handle::current().block_on(task).is_err());
        });
        drop(freed.expect("a thread"));
        // All of them wait now; the next one has no chance to begin.
        sleep(ms(5)).await;
        Some(spawn_blocking(move || drop(held)))
    });
    let report = runtime.shutdown(ms(10));
    let unbegun = unbegun.expect("just made");
    assert!(
        windlass_core::block_on(unbegun).is_err(),
        "dropped, not run"
    );
    assert_eq!(Arc::strong_count(&dropped), 1);
    let names: Vec<_> = report
        .stuck_jobs
        .iter()
        .map(|job| job.name.clone())
        .collect();
    assert_eq!(names, [Some("waits for ever".to_owned())], "{report}");
}

#[test]
fn several_tasks_accept_and_a_full_backlog_refuses() {
    Runtime::simulated(2).block_on(async {
        let listener = Arc::new(TcpListener::bind("localhost:9").await.unwrap());
        let acceptors: Vec<_> = (0..3)
            .map(|_| {
                let listener = listener.clone();
                spawn(async move { listener.accept().await.map(|(stream, _)| stream) })
            })
            .collect();
        sleep(ms(1)).await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect("localhost:9").await.unwrap());
        }
        for acceptor in acceptors {
            acceptor.await.unwrap().unwrap();
        }
        for _ in 0..128 {
            clients.push(TcpStream::connect("localhost:9").await.unwrap());
        }
        let refused = TcpStream::connect("localhost:9").await.expect_err("full");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn what_is_spawned_on_a_host_is_there_too() {
    Runtime::simulated(4).block_on(async {
        let net = Net::current();
        let child = net.on("far", async {
            windlass_runtime::spawn(async {
                // A task of a task, after others had their turns.
                windlass_runtime::task::yield_now().await;
                windlass_runtime::spawn(async { TcpListener::bind("far:80").await }).await
            })
            .await
        });
        let listener = child
            .await
            .expect("no panic")
            .expect("no panic")
            .expect("it is there");
        let here = TcpListener::bind("far:81").await;
        assert!(here.is_err(), "but the rest is not");
        let there = listener.local_addr().expect("known");
        let stream = windlass_runtime::spawn(windlass_io::net::TcpStream::connect("far:80"));
        let (_, from) = listener.accept().await.expect("accepted");
        stream.await.expect("no panic").expect("connected");
        assert_ne!(from.ip(), there.ip(), "it came from another host");
    });
}

#[test]
fn a_panic_that_nobody_is_told_of_fails_the_run() {
    expect_panics();
    let message = panic_message(|| {
        explore(1, || async {
            windlass_runtime::spawn(async { panic!("unheard, on purpose") }).detach();
            windlass_runtime::task::yield_now().await;
            sleep(ms(1_000)).await;
        });
    });
    assert!(message.contains("unheard, on purpose"), "{message}");
    assert!(message.contains("simulator.rs"), "it says where: {message}");
    let message = panic_message(|| {
        explore(1, || async {
            let _never_awaited = windlass_runtime::spawn(async { panic!("unheard, on purpose") });
            sleep(ms(1_000)).await;
        });
    });
    assert!(message.contains("unheard, on purpose"), "{message}");
}

#[test]
fn a_panic_that_somebody_is_told_of_or_expects_is_fine() {
    expect_panics();
    explore(3, || async {
        let told = windlass_runtime::spawn(async { panic!("heard, on purpose") });
        assert!(told.await.is_err());
        let _expected = windlass_runtime::simulator::expect_panics();
        windlass_runtime::spawn(async { panic!("expected, on purpose") }).detach();
        sleep(ms(1_000)).await;
    });
}

#[test]
fn a_later_panic_that_is_expected_does_not_hide_an_earlier_one() {
    expect_panics();
    let message = panic_message(|| {
        explore(1, || async {
            spawn(async { panic!("unheard, on purpose") }).detach();
            for _ in 0..9 {
                yield_now().await;
            }
            let _expected = windlass_runtime::simulator::expect_panics();
            for _ in 0..5 {
                let _ = spawn(async { panic!("expected, on purpose") }).await;
            }
        });
    });
    assert!(message.contains("unheard, on purpose"), "{message}");
}
