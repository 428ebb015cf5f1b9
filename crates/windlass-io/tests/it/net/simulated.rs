//! Sockets in a simulation: what the network between the hosts does to them.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use windlass_io::simulated::Net;
use windlass_runtime::time::{Instant, sleep, timeout};
use windlass_runtime::{Runtime, spawn};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A socket on each of two hosts.
async fn sockets(net: &Net) -> (UdpSocket, UdpSocket) {
    let here = net.on("here", UdpSocket::bind("0.0.0.0:1")).await.unwrap();
    let there = net.on("there", UdpSocket::bind("there:2")).await.unwrap();
    (here, there)
}

async fn receive_all(socket: &UdpSocket) -> Vec<u32> {
    let mut all = Vec::new();
    let mut buffer = [0; 4];
    while let Ok(received) = timeout(ms(1000), socket.recv(&mut buffer)).await {
        assert_eq!(received.unwrap(), 4, "datagrams keep their bounds");
        all.push(u32::from_be_bytes(buffer));
    }
    all
}

#[test]
fn datagrams_take_the_latency_and_overtake_each_other() {
    Runtime::simulated(3).block_on(async {
        let net = Net::current();
        net.latency(ms(5)..=ms(50));
        let (here, there) = sockets(&net).await;
        let began = Instant::now();
        for number in 0..100u32 {
            let to = there.local_addr().unwrap();
            here.send_to(&number.to_be_bytes(), to).await.unwrap();
        }
        assert_eq!(there.recv(&mut [0; 4]).await.unwrap(), 4);
        assert!(began.elapsed() >= ms(5));
        let all = receive_all(&there).await;
        assert_eq!(all.len(), 99);
        assert!(!all.is_sorted(), "none was overtaken");
        assert_eq!(net.dropped_datagrams().total(), 0);
    });
}

#[test]
fn a_cut_link_drops_datagrams_and_counts_them() {
    Runtime::simulated(3).block_on(async {
        let net = Net::current();
        net.latency(ms(10)..=ms(10));
        let (here, there) = sockets(&net).await;
        let to = there.local_addr().unwrap();
        here.send_to(&1u32.to_be_bytes(), to).await.unwrap();
        // It is on its way; the next is not even sent.
        net.partition("here", "there");
        here.send_to(&2u32.to_be_bytes(), to).await.unwrap();
        sleep(ms(100)).await;
        net.heal("here", "there");
        here.send_to(&3u32.to_be_bytes(), to).await.unwrap();
        assert_eq!(receive_all(&there).await, [3]);
        assert_eq!(net.dropped_datagrams().cut, 2);
        // Nobody is bound there; and breaking connections is nothing to a socket that has none.
        net.break_connections("here", "there");
        let nowhere = net.on("here", here.send_to(b"x", "there:99")).await;
        assert_eq!(nowhere.unwrap(), 1, "the sender is not told");
        here.send_to(&4u32.to_be_bytes(), to).await.unwrap();
        assert_eq!(receive_all(&there).await, [4]);
        assert_eq!(net.dropped_datagrams().unbound, 1);
    });
}

#[test]
fn a_full_socket_drops_datagrams_and_counts_them() {
    Runtime::simulated(3).block_on(async {
        let net = Net::current();
        let (here, there) = sockets(&net).await;
        let to = there.local_addr().unwrap();
        for number in 0..1000u32 {
            here.send_to(&number.to_be_bytes(), to).await.unwrap();
        }
        sleep(ms(100)).await;
        let kept = receive_all(&there).await.len() as u64;
        assert_eq!(kept + net.dropped_datagrams().full, 1000);
        assert!((1..1000).contains(&kept), "{kept}");
    });
}

/// Which of many datagrams arrive when half are lost.
fn survivors(seed: u64) -> (Vec<u32>, u64) {
    let runtime = Runtime::simulated(seed);
    let arrived = runtime.block_on(async {
        let net = Net::current();
        net.loss(0.5);
        let (here, there) = sockets(&net).await;
        let to = there.local_addr().unwrap();
        for number in 0..200u32 {
            here.send_to(&number.to_be_bytes(), to).await.unwrap();
        }
        let all = receive_all(&there).await;
        assert_eq!(all.len() as u64 + net.dropped_datagrams().lost, 200);
        assert!((50..150).contains(&all.len()), "{}", all.len());
        all
    });
    (arrived, runtime.trace().expect("simulated").hash)
}

#[test]
fn losses_follow_the_seed() {
    for seed in 0..10 {
        assert_eq!(survivors(seed), survivors(seed), "seed {seed}");
    }
    assert_ne!(survivors(1).0, survivors(2).0);
}

#[test]
fn nothing_or_everything_is_lost_at_the_ends_of_the_range() {
    Runtime::simulated(5).block_on(async {
        let net = Net::current();
        let (here, there) = sockets(&net).await;
        let to = there.local_addr().unwrap();
        for (loss, arrive) in [(1.0, 0), (0.0, 20)] {
            net.loss(loss);
            for number in 0..20u32 {
                here.send_to(&number.to_be_bytes(), to).await.unwrap();
            }
            assert_eq!(receive_all(&there).await.len(), arrive);
        }
        let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| net.loss(1.5)));
        assert!(wrong.is_err());
    });
}

#[test]
fn each_host_has_its_own_paths() {
    Runtime::simulated(5).block_on(async {
        let net = Net::current();
        let bind = || async { UnixListener::bind("/run/service") };
        let one = net.on("one", bind()).await.unwrap();
        let two = net.on("two", bind()).await.unwrap();
        let client = net.on("two", UnixStream::connect("/run/service"));
        let mut client = client.await.unwrap();
        let (mut server, _) = two.accept().await.unwrap();
        let other = timeout(ms(10), one.accept()).await;
        assert!(other.is_err(), "it is on another host");
        let missing = net.on("three", UnixStream::connect("/run/service")).await;
        assert_eq!(missing.expect_err("missing").kind(), ErrorKind::NotFound);

        // A link that is cut is between hosts.
        net.partition("one", "two");
        client.write_all(b"x").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        // With the same host twice the connections within it are broken.
        net.break_connections("two", "two");
        let error = client.read(&mut [0]).await.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        // There are no files: the path is free once its socket is gone.
        drop(two);
        drop(net.on("two", bind()).await.unwrap());
    });
}

#[test]
fn a_closed_receiver_frees_the_senders_that_wait() {
    Runtime::simulated(5).block_on(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let sender = spawn(async move {
            loop {
                if let Err(error) = one.send(b"x").await {
                    return error.kind();
                }
            }
        });
        sleep(ms(10)).await;
        drop(other);
        assert_eq!(sender.await.unwrap(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn half_closed_streams_peeks_and_halves_work_as_on_real_sockets() {
    Runtime::simulated(6).block_on(async {
        let (mut client, mut server) = super::connected().await;
        client.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(server.peek(&mut buffer).await.unwrap(), 5);
        assert_eq!(server.read(&mut buffer).await.unwrap(), 5);
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), 0);
        let error = client.write(b"x").await.expect_err("it was ended");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let (reading, mut writing) = server.into_split();
        writing.write_all(b"answer").await.unwrap();
        drop(writing);
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"answer");
        drop(reading);
    });
}

/// A service on all three kinds of socket, cut and healed.
fn trace(seed: u64) -> u64 {
    let runtime = Runtime::simulated(seed);
    runtime.block_on(async {
        let net = Net::current();
        net.loss(0.2);
        let (here, there) = sockets(&net).await;
        let there = Arc::new(there);
        let echo = there.clone();
        let echo = spawn(async move {
            let mut buffer = [0; 64];
            while let Ok((count, from)) = echo.recv_from(&mut buffer).await {
                echo.send_to(&buffer[..count], from).await.unwrap();
            }
        });
        let listener = net.on("there", TcpListener::bind("there:7")).await.unwrap();
        let server = spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            all.len()
        });
        let mut stream = net.on("here", TcpStream::connect("there:7")).await.unwrap();
        for round in 0..20u32 {
            if round == 10 {
                net.partition("here", "there");
            }
            if round == 15 {
                net.heal("here", "there");
            }
            let to = there.local_addr().unwrap();
            here.send_to(&round.to_be_bytes(), to).await.unwrap();
            stream.write_all(&[0; 100]).await.unwrap();
            let _ = timeout(ms(5), here.recv(&mut [0; 4])).await;
        }
        drop(stream);
        assert_eq!(server.await.unwrap(), 2000);
        echo.abort();
    });
    runtime.trace().expect("simulated").hash
}

#[test]
fn the_same_seed_gives_the_same_trace_on_every_kind_of_socket() {
    let traces: Vec<_> = (0..20).map(trace).collect();
    for (seed, hash) in traces.iter().enumerate() {
        assert_eq!(*hash, trace(seed as u64), "seed {seed}");
    }
    assert!(traces.iter().any(|hash| *hash != traces[0]));
}
