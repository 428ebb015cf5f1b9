//! What goes wrong with real connections, and that each await point says so.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream};
use windlass_runtime::{spawn, time};

use super::connected;
use crate::support::runtime;

/// Closes a connection the hard way: the other side is told of a reset, not of an end.
fn reset(stream: TcpStream) {
    stream.set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

#[test]
fn a_reset_ends_a_read_that_waits() {
    runtime(2).block_on(async {
        let (client, mut server) = connected().await;
        let reader = spawn(async move { server.read(&mut [0; 8]).await });
        time::sleep(Duration::from_millis(10)).await;
        reset(client);
        let error = reader.await.unwrap().expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_reset_ends_a_write_that_waits() {
    runtime(2).block_on(async {
        let (client, mut server) = connected().await;
        let writer = spawn(async move { server.write_all(&vec![0; 64 << 20]).await });
        time::sleep(Duration::from_millis(20)).await;
        reset(client);
        let error = writer.await.unwrap().expect_err("reset");
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
            "{error}"
        );
    });
}

#[test]
fn a_reset_before_the_operation_is_seen_by_it() {
    runtime(1).block_on(async {
        let (client, mut server) = connected().await;
        reset(client);
        server.readable().await.unwrap();
        let error = server.read(&mut [0; 8]).await.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let error = server.write_all(b"x").await.expect_err("it is gone");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_connection_reset_in_the_backlog_does_not_end_the_accept_loop() {
    runtime(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        reset(TcpStream::connect(address).await.unwrap());
        let mut good = TcpStream::connect(address).await.unwrap();
        good.write_all(b"x").await.unwrap();
        // Systems differ in whether the first is accepted or an error.
        if let Ok((mut first, _)) = listener.accept().await {
            let error = first.read(&mut [0]).await.expect_err("reset");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        let (mut second, _) = listener.accept().await.unwrap();
        second.read_exact(&mut [0]).await.unwrap();
    });
}

#[test]
fn a_connect_to_a_full_and_then_closed_listener_ends_with_an_error() {
    runtime(2).block_on(async {
        // A backlog of none: the system keeps one connection, and the next gets no answer.
        let listener = listener_with_least_backlog();
        let address = listener.local_addr().unwrap();
        let mut kept = Vec::new();
        let waiting = loop {
            let connecting = TcpStream::connect_within(address, Duration::from_millis(50));
            match connecting.await {
                Ok(stream) => kept.push(stream),
                Err(error) => break error,
            }
            assert!(kept.len() < 64, "the backlog has no end");
        };
        assert_eq!(waiting.kind(), ErrorKind::TimedOut);
        let connecting = spawn(TcpStream::connect(address));
        time::sleep(Duration::from_millis(10)).await;
        drop(listener);
        let refused = time::timeout(Duration::from_secs(8), connecting).await;
        let refused = refused.expect("it asks again within seconds").unwrap();
        let kind = refused.expect_err("nobody listens any more").kind();
        assert!(
            matches!(
                kind,
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
            ),
            "{kind}"
        );
        for mut stream in kept {
            let error = stream.read(&mut [0]).await.expect_err("never accepted");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    });
}

/// A listener that keeps as few connections as the system allows.
fn listener_with_least_backlog() -> std::net::TcpListener {
    use std::os::fd::AsRawFd;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: takes no pointers. A second `listen` changes the backlog.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    listener
}

#[test]
fn each_direction_ends_by_itself() {
    runtime(1).block_on(async {
        let (mut client, mut server) = connected().await;
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        // The other direction, and again after the end was seen.
        server.write_all(b"still here").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        let mut heard = [0; 10];
        client.read_exact(&mut heard).await.unwrap();
        let error = client.write_all(b"x").await.expect_err("it was ended");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut heard).await.unwrap(), 0);

        let (mut client, server) = connected().await;
        client.shutdown_socket(std::net::Shutdown::Read).unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        client.write_all(b"x").await.unwrap();
        let (mut reading, writing) = server.into_split();
        drop(writing);
        assert_eq!(reading.read(&mut [0; 8]).await.unwrap(), 1);
    });
}

#[test]
fn a_slow_reader_holds_its_writer_back_and_gets_everything() {
    const TOTAL: usize = 24 << 20;
    runtime(2).block_on(async {
        let (mut client, mut server) = connected().await;
        let written = Arc::new(AtomicUsize::new(0));
        let count = written.clone();
        let writer = spawn(async move {
            let chunk: Vec<u8> = (0..=255).cycle().take(64 * 1024).collect();
            for _ in 0..TOTAL / chunk.len() {
                client.write_all(&chunk).await.unwrap();
                count.fetch_add(chunk.len(), Ordering::Relaxed);
            }
        });
        time::sleep(Duration::from_millis(100)).await;
        let before = written.load(Ordering::Relaxed);
        assert!(before < TOTAL, "nobody reads, and everything was written");
        let mut buffer = vec![0; 100_000];
        let mut total = 0;
        loop {
            let count = server.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            for (offset, byte) in buffer[..count].iter().enumerate() {
                assert_eq!(*byte, (total + offset) as u8);
            }
            total += count;
            if total < 2 << 20 {
                time::sleep(Duration::from_millis(2)).await;
            }
        }
        assert_eq!(total, TOTAL);
        writer.await.unwrap();
    });
}

#[test]
fn a_port_in_use_is_refused_and_free_again_at_once() {
    runtime(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = TcpListener::bind(address).await.expect_err("in use");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        // The server closes first, so that its end waits for stragglers for a minute.
        let mut client = TcpStream::connect(address).await.unwrap();
        drop(listener.accept().await.unwrap());
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        drop((client, listener));
        TcpListener::bind(address).await.expect("free again");
    });
}

/// Takes every descriptor that is left.
fn take_all_descriptors() -> Vec<std::fs::File> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn out_of_descriptors_an_accept_loop_is_told_each_time_and_goes_on_later() {
    let name = "net::faults::out_of_descriptors_an_accept_loop_is_told_each_time_and_goes_on_later";
    crate::support::with_limit("ulimit -n 64", name, || {
        runtime(1).block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut plain = std::net::TcpStream::connect(address).unwrap();
            plain.write_all(b"x").unwrap();
            let taken = take_all_descriptors();
            // Each time, though the kernel has told of the connection once.
            for _ in 0..5 {
                let error = listener.accept().await.expect_err("no descriptor");
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                time::sleep(Duration::from_millis(5)).await;
            }
            drop(taken);
            let (mut stream, _) = listener.accept().await.expect("free again");
            stream.read_exact(&mut [0]).await.unwrap();
            // And it waits again, rather than turning in circles.
            let idle = time::timeout(Duration::from_millis(50), listener.accept());
            assert!(idle.await.is_err());
        });
    });
}
