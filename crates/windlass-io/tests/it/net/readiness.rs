//! Readiness: told of once, lost never, and at no cost while nothing happens.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream};
use windlass_runtime::task::yield_now;
use windlass_runtime::{Builder, Runtime};
use windlass_sync::CancellationToken;

use super::connected;
use crate::support::{join, runtime, wait};

/// Context switches of all threads of this process whose name begins with `prefix`.
fn switches_of(prefix: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    tasks
        .filter_map(|task| {
            let path = task.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            if !name.starts_with(prefix) {
                return None;
            }
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let count = status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
                .sum::<u64>();
            Some(count)
        })
        .sum()
}

#[test]
fn e3_idle_makes_no_wakeup_and_a_byte_still_wakes_its_task() {
    let runtime = Runtime::builder()
        .workers(2)
        .name("e3-idle")
        .build()
        .expect("it builds");
    let (listener, address) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("known");
        (listener, address)
    });
    let mut client = std::net::TcpStream::connect(address).expect("connected");
    client.set_nodelay(true).expect("set");
    let (sent, received) = std::sync::mpsc::channel::<Instant>();
    let reader = runtime.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut byte = [0];
        let mut seen = 0;
        while stream.read(&mut byte).await.expect("read") == 1 {
            sent.send(Instant::now()).expect("somebody listens");
            seen += 1;
        }
        seen
    });
    // Idle: the watchdog has wound down, all workers sleep.
    std::thread::sleep(Duration::from_millis(300));
    let before = switches_of("e3-idle");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(
        switches_of("e3-idle") - before,
        0,
        "an idle runtime woke up"
    );

    let mut thread = PlainReader::start();
    let (mut latencies, mut of_a_thread) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let began = Instant::now();
        client.write_all(b"x").expect("written");
        latencies.push(received.recv().expect("it arrives") - began);
        std::thread::sleep(Duration::from_millis(1));
        of_a_thread.push(thread.ping());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(client);
    assert_eq!(runtime.block_on(reader).expect("it ends"), 200);
    latencies.sort();
    of_a_thread.sort();
    // The contract says 1 ms; a real-time twin allows ten times as much, on top of what the machine
    // needs at this moment to wake a plain thread that reads from a socket.
    let (p99, machine) = (latencies[197], of_a_thread[197]);
    let bound = Duration::from_millis(10) + 3 * machine;
    assert!(p99 < bound, "p99 {p99:?}; of a plain thread {machine:?}");
}

/// A thread that waits in a read, for comparison.
struct PlainReader {
    client: std::net::TcpStream,
    received: std::sync::mpsc::Receiver<Instant>,
}

impl PlainReader {
    fn start() -> PlainReader {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("known"));
        let client = client.expect("connected");
        client.set_nodelay(true).expect("set");
        let (mut stream, _) = listener.accept().expect("accepted");
        let (sent, received) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut byte = [0];
            while matches!(stream.read(&mut byte), Ok(1)) && sent.send(Instant::now()).is_ok() {}
        });
        PlainReader { client, received }
    }

    fn ping(&mut self) -> Duration {
        let began = Instant::now();
        self.client.write_all(b"x").expect("written");
        self.received.recv().expect("it arrives") - began
    }
}

#[test]
fn sockets_are_served_while_all_workers_are_busy_for_ever() {
    let runtime = Runtime::builder().workers(2).build().expect("it builds");
    let stop = windlass_sync::CancellationToken::new();
    for _ in 0..4 {
        let stop = stop.clone();
        drop(runtime.spawn(async move {
            while !stop.is_cancelled() {
                windlass_runtime::task::yield_now().await;
            }
        }));
    }
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("known");
        let server = windlass_runtime::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accepted");
            let mut word = [0; 5];
            stream.read_exact(&mut word).await.expect("read");
            stream.write_all(&word).await.expect("written");
        });
        let mut client = TcpStream::connect(address).await.expect("connected");
        client.write_all(b"hello").await.expect("written");
        let mut word = [0; 5];
        client.read_exact(&mut word).await.expect("read");
        assert_eq!(&word, b"hello");
        server.await.expect("it ends");
    });
    stop.cancel();
}

#[test]
fn many_connections_carry_their_own_bytes() {
    let runtime = Runtime::builder().workers(2).build().expect("it builds");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("known");
        let server = windlass_runtime::spawn(async move {
            for _ in 0..100 {
                let (mut stream, _) = listener.accept().await.expect("accepted");
                drop(windlass_runtime::spawn(async move {
                    let mut buffer = vec![0; 8192];
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        stream.write_all(&buffer[..count]).await.expect("written");
                    }
                }));
            }
        });
        let clients: Vec<_> = (0..100u32)
            .map(|number| {
                windlass_runtime::spawn(async move {
                    let mut stream = TcpStream::connect(address).await.expect("connected");
                    let sent: Vec<u8> = (0..50_000u32).map(|i| (i ^ number) as u8).collect();
                    for chunk in sent.chunks(5_000) {
                        stream.write_all(chunk).await.expect("written");
                        let mut back = vec![0; chunk.len()];
                        stream.read_exact(&mut back).await.expect("read");
                        assert!(back == chunk, "connection {number}");
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("it gets its own bytes");
        }
        server.await.expect("it ends");
    });
}

#[test]
fn a_socket_that_outlives_its_runtime_says_so_instead_of_waiting() {
    let first = Runtime::builder().workers(1).build().expect("it builds");
    let (mut reading, mut client) = first.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("known");
        let client = TcpStream::connect(address).await.expect("connected");
        let (stream, _) = listener.accept().await.expect("accepted");
        (stream, client)
    });
    let waiting = std::thread::spawn(move || {
        let mut byte = [0];
        windlass_core::block_on(reading.read(&mut byte))
            .expect_err("nobody tells of events any more")
    });
    // It may already wait, or come later: both are told.
    std::thread::sleep(Duration::from_millis(20));
    drop(first);
    let error = waiting.join().expect("it does not panic");
    assert!(error.to_string().contains("shut down"), "{error}");
    let late = windlass_core::block_on(client.write(b"x"));
    assert!(late.is_err(), "the other end is of the same runtime");
}

/// A waker that counts how often it is alive.
struct Counted {
    _alive: Arc<()>,
}

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_dropped_accept_leaves_nothing_behind() {
    let runtime = runtime(1);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let alive = Arc::new(());
    for _ in 0..1000 {
        let waker = Waker::from(Arc::new(Counted {
            _alive: alive.clone(),
        }));
        let mut accept = pin!(listener.accept());
        let polled = accept.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(Arc::strong_count(&alive), 1, "wakers of dropped futures");
    // Poll functions have no drop: one waker is kept, the last.
    for _ in 0..1000 {
        let waker = Waker::from(Arc::new(Counted {
            _alive: alive.clone(),
        }));
        let polled = listener.poll_accept(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(Arc::strong_count(&alive), 2);
}

#[test]
fn a_dropped_read_loses_nothing() {
    let runtime = runtime(2);
    let (mut client, mut server) = runtime.block_on(connected());
    let writer = runtime.spawn(async move {
        for number in 0..2000u32 {
            client.write_all(&number.to_be_bytes()).await.unwrap();
            if number % 16 == 0 {
                windlass_runtime::task::yield_now().await;
            }
        }
    });
    let reader = runtime.spawn(async move {
        let mut all = Vec::new();
        loop {
            let mut buffer = [0; 7];
            let found = {
                // Polled once, and dropped if it was too early.
                let mut reading = pin!(server.read(&mut buffer));
                poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await
            };
            match found {
                Poll::Ready(Ok(0)) => return all,
                Poll::Ready(count) => all.extend_from_slice(&buffer[..count.unwrap()]),
                Poll::Pending => server.readable().await.unwrap(),
            }
        }
    });
    join("the writer", writer);
    let expected: Vec<u8> = (0..2000u32).flat_map(u32::to_be_bytes).collect();
    assert!(join("the reader", reader) == expected);
}

#[test]
fn no_readiness_is_lost_when_many_tasks_read_under_load() {
    const SOCKETS: usize = 64;
    const ROUNDS: u32 = 200;
    let runtime = runtime(2);
    let stop = CancellationToken::new();
    let load: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !stop.is_cancelled() {
                    windlass_runtime::task::yield_now().await;
                }
            })
        })
        .collect();
    let mut tasks = Vec::new();
    for _ in 0..SOCKETS {
        let (mut client, mut server) = runtime.block_on(connected());
        client.set_nodelay(true).unwrap();
        tasks.push(runtime.spawn(async move {
            // The buffer is never filled: each read clears what it knows, and the next byte must be
            // told of anew.
            let mut buffer = [0; 64];
            for _ in 0..ROUNDS {
                let count = server.read(&mut buffer).await.unwrap();
                server.write_all(&buffer[..count]).await.unwrap();
            }
        }));
        tasks.push(runtime.spawn(async move {
            for round in 0..ROUNDS {
                client.write_all(&round.to_be_bytes()).await.unwrap();
                let mut answer = [0; 4];
                client.read_exact(&mut answer).await.unwrap();
                assert_eq!(u32::from_be_bytes(answer), round);
            }
        }));
    }
    wait("every byte is told of", windlass_runtime::join_all(tasks))
        .into_iter()
        .for_each(|ended| ended.unwrap());
    stop.cancel();
    drop(load);
}

#[test]
fn the_end_is_told_of_after_a_short_read() {
    runtime(2).block_on(async {
        for _ in 0..200 {
            let (mut client, mut server) = connected().await;
            let reader = windlass_runtime::spawn(async move {
                let mut buffer = [0; 64];
                let mut total = 0;
                loop {
                    match server.read(&mut buffer).await.unwrap() {
                        0 => return total,
                        count => total += count,
                    }
                }
            });
            client.write_all(b"short").await.unwrap();
            client.shutdown().await.unwrap();
            assert_eq!(reader.await.unwrap(), 5);
        }
    });
}

/// Yields of a task, which is alone but for `others` that yield too, until a connection that is
/// there can be accepted.
async fn yields_until_accepted(others: usize) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let done = CancellationToken::new();
    for _ in 0..others {
        let done = done.clone();
        windlass_runtime::spawn(async move {
            while !done.is_cancelled() {
                yield_now().await;
            }
        });
    }
    let address = listener.local_addr().unwrap();
    let mut accepting = pin!(listener.accept());
    // Not accepted yet: from now on it is the driver that knows.
    assert!(poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx).is_pending())).await);
    let _client = std::net::TcpStream::connect(address).unwrap();
    let mut yields = 0;
    while poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx).is_pending())).await {
        yields += 1;
        yield_now().await;
    }
    done.cancel();
    yields
}

#[test]
fn tasks_that_only_yield_let_the_driver_be_looked_at() {
    for others in [0, 3] {
        let current_thread = Builder::new_current_thread().build().unwrap();
        let yields = current_thread.block_on(yields_until_accepted(others));
        assert!(yields < 20, "{yields} yields beside {others}");
        let worker = Builder::new_multi_thread().workers(1).build().unwrap();
        let task = worker.spawn(yields_until_accepted(others));
        let yields = worker.block_on(task).unwrap();
        assert!(yields < 20, "{yields} yields beside {others} on a worker");
    }
}
