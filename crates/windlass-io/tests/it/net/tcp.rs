//! TCP on the driver.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream, lookup_host};
use windlass_runtime::Runtime;
use windlass_sync::CancellationToken;

use super::connected;
use crate::support::{join, runtime};

#[test]
fn a_refused_connection_is_an_error() {
    let runtime = Runtime::builder().workers(1).build().expect("it builds");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("known");
        drop(listener);
        let refused = TcpStream::connect(address).await;
        assert_eq!(
            refused.expect_err("nobody listens").kind(),
            std::io::ErrorKind::ConnectionRefused
        );
    });
}

#[test]
fn a_stream_and_its_halves_read_and_write_whole_and_in_pieces() {
    runtime(2).block_on(async {
        let (mut client, mut server) = connected().await;
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(client.write_vectored(&parts).await.unwrap(), 7);
        let mut peeked = [0; 3];
        assert_eq!(server.peek(&mut peeked).await.unwrap(), 3);
        assert_eq!(&peeked, b"one");
        let (mut first, mut second) = ([0; 4], [0; 8]);
        let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(server.try_read_vectored(&mut buffers).unwrap(), 7);
        assert_eq!((&first, &second[..3]), (b"one ", &b"two"[..]));

        let (mut reading, mut writing) = server.split();
        writing.write_all(b"three").await.unwrap();
        client.write_all(b"four").await.unwrap();
        let mut word = [0; 4];
        reading.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"four");

        let (mut reading, mut writing) = server.into_split();
        writing.write_all(b", four").await.unwrap();
        drop(writing);
        let mut all = b"kept: ".to_vec();
        assert_eq!(client.read_to_end(&mut all).await.unwrap(), 11);
        assert_eq!(all, b"kept: three, four");
        // The other direction is still open.
        client.write_all(b"five").await.unwrap();
        reading.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"five");
        client.shutdown().await.unwrap();
        assert_eq!(reading.read(&mut word).await.unwrap(), 0);
    });
}

#[test]
fn halves_of_one_stream_reunite_and_others_come_back() {
    runtime(1).block_on(async {
        let ((mut client, server), (other, _kept)) = (connected().await, connected().await);
        let (reading, writing) = server.into_split();
        let (other_reading, other_writing) = other.into_split();
        let mixed = reading.reunite(other_writing).expect_err("of two streams");
        assert!(
            mixed.to_string().contains("not from the same socket"),
            "{mixed}"
        );
        let (reading, other_writing) = (mixed.0, mixed.1);
        let mut server = reading.reunite(writing).expect("of one stream");
        drop(other_writing.reunite(other_reading).expect("of one stream"));
        // Nothing was shut down on the way.
        server.write_all(b"x").await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 1);
    });
}

#[test]
fn try_methods_do_not_wait_and_readiness_says_when_to_try_again() {
    runtime(1).block_on(async {
        let (client, server) = connected().await;
        let mut buffer = [0; 16];
        let nothing = server.try_read(&mut buffer).expect_err("nothing is there");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        client.writable().await.unwrap();
        assert_eq!(client.try_write(b"now").unwrap(), 3);
        loop {
            server.readable().await.unwrap();
            match server.try_read(&mut buffer) {
                Ok(count) => break assert_eq!(&buffer[..count], b"now"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    });
}

#[test]
fn options_are_kept() {
    let check = |stream: TcpStream| {
        stream.set_nodelay(true).unwrap();
        assert!(stream.nodelay().unwrap());
        let minute = Some(Duration::from_secs(60));
        stream.set_keepalive(minute).unwrap();
        assert_eq!(stream.keepalive().unwrap(), minute);
        stream.set_keepalive(None).unwrap();
        assert_eq!(stream.keepalive().unwrap(), None);
        stream.set_linger(Some(Duration::ZERO)).unwrap();
        assert_eq!(stream.linger().unwrap(), Some(Duration::ZERO));
        stream.set_ttl(17).unwrap();
        assert_eq!(stream.ttl().unwrap(), 17);
        assert!(stream.take_error().unwrap().is_none());
    };
    runtime(1).block_on(async { check(connected().await.0) });
    Runtime::simulated(1).block_on(async { check(connected().await.0) });
}

#[test]
fn sockets_of_the_standard_library_come_and_go() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let plain = std::net::TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let mut ours = TcpStream::from_std(plain).unwrap();
        ours.write_all(b"x").await.unwrap();
        let mut plain = server.into_std().unwrap();
        plain.set_nonblocking(false).unwrap();
        assert_eq!(plain.read(&mut [0; 4]).unwrap(), 1);
    });
    Runtime::simulated(1).block_on(async {
        let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = TcpListener::from_std(plain).expect_err("no kernel here");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn incoming_gives_every_connection() {
    runtime(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = listener.incoming();
        for _ in 0..3 {
            let client = TcpStream::connect(address).await.unwrap();
            let next = poll_fn(|cx| Pin::new(&mut incoming).poll_next(cx)).await;
            let server = next.expect("it never ends").unwrap();
            assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
        }
    });
}

#[test]
fn a_connect_ends_with_its_limit() {
    let check = |address: &'static str| async move {
        let short = Duration::from_millis(20);
        let late = TcpStream::connect_within(address, short).await;
        assert_eq!(late.expect_err("no answer").kind(), ErrorKind::TimedOut);
        let stop = CancellationToken::new();
        stop.cancel();
        let cancelled = TcpStream::connect_within(address, &stop).await;
        let kind = cancelled.expect_err("cancelled").kind();
        assert_eq!(kind, ErrorKind::ConnectionAborted);
    };
    Runtime::simulated(3).block_on(async {
        let net = windlass_io::simulated::Net::current();
        net.on("far", async {}).await;
        net.partition("localhost", "far");
        check("far:80").await;
    });
}

#[test]
fn a_name_is_looked_up() {
    runtime(1).block_on(async {
        let mut found = lookup_host("localhost:80").await.unwrap();
        assert!(found.all(|address| address.ip().is_loopback() && address.port() == 80));
        assert!(lookup_host("no port").await.is_err());
    });
    Runtime::simulated(1).block_on(async {
        let net = windlass_io::simulated::Net::current();
        let own = net.on("there", lookup_host("localhost:80")).await.unwrap();
        let seen = lookup_host("there:80").await.unwrap();
        assert_eq!(own.collect::<Vec<_>>(), seen.collect::<Vec<_>>());
    });
}

#[test]
fn several_tasks_accept_from_one_listener() {
    let runtime = runtime(2);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Arc::new(listener);
    let acceptors: Vec<_> = (0..8)
        .map(|_| {
            let listener = listener.clone();
            runtime.spawn(async move { listener.accept().await.map(drop) })
        })
        .collect();
    let clients: Vec<_> = (0..8)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    for acceptor in acceptors {
        join("each gets one", acceptor).unwrap();
    }
    drop(clients);
}

/// Writes and reads one byte through the traits of `futures-io`.
async fn through_traits(mut writer: impl AsyncWrite + Unpin, mut reader: impl AsyncRead + Unpin) {
    let wrote = poll_fn(|cx| Pin::new(&mut writer).poll_write(cx, b"x")).await;
    assert_eq!(wrote.unwrap(), 1);
    poll_fn(|cx| Pin::new(&mut writer).poll_flush(cx))
        .await
        .unwrap();
    let mut byte = [0];
    let read = poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut byte)).await;
    assert_eq!((read.unwrap(), &byte), (1, b"x"));
}

#[test]
fn the_traits_of_futures_io_are_on_streams_references_and_halves() {
    runtime(1).block_on(async {
        let (mut client, mut server) = connected().await;
        through_traits(&mut client, &mut server).await;
        through_traits(&client, &server).await;
        through_traits(client.split().1, server.split().0).await;
        let (mut server_reads, server_writes) = server.into_split();
        let (client_reads, mut client_writes) = client.into_split();
        through_traits(server_writes, client_reads).await;
        // Closing ends the writing direction.
        poll_fn(|cx| Pin::new(&mut client_writes).poll_close(cx))
            .await
            .unwrap();
        assert_eq!(server_reads.read(&mut [0]).await.unwrap(), 0);
    });
}
