//! Bytes through sockets, pipes in memory and buffers.

mod support;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use windlass::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex};
use windlass::net::{TcpListener, TcpStream};
use windlass::spawn;

use support::{measure, runtime};

fn main() {
    divan::main();
}

/// Small messages to a TCP server and back, over one connection of this machine.
#[divan::bench(max_time = 5)]
fn tcp_echo(bencher: Bencher<'_, '_>) {
    const MESSAGES: u64 = 100;
    let runtime = runtime();
    let mut client = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it binds");
        let address = listener.local_addr().expect("it has an address");
        spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("it accepts");
            let mut bytes = [0; 64];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.expect("it is open");
            }
        });
        let client = TcpStream::connect(address).await.expect("it connects");
        client.set_nodelay(true).expect("it is a socket");
        client
    });
    let items = ItemsCount::new(MESSAGES);
    bencher.counter(items).bench_local(|| {
        runtime.block_on(async {
            for message in 0..MESSAGES {
                let sent = [message as u8; 64];
                client.write_all(&sent).await.expect("it is open");
                let mut back = [0; 64];
                client.read_exact(&mut back).await.expect("it is open");
                assert_eq!(back, sent);
            }
        });
    });
}

/// A megabyte through a TCP connection of this machine, made for it.
#[divan::bench(max_time = 5)]
fn tcp_stream(bencher: Bencher<'_, '_>) {
    const BYTES: usize = 1 << 20;
    measure(bencher, BytesCount::new(BYTES), BYTES, || async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it binds");
        let address = listener.local_addr().expect("it has an address");
        let sending = spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("it connects");
            let bytes = vec![7; BYTES];
            stream.write_all(&bytes).await.expect("it is open");
            stream.shutdown().await.expect("it is open");
        });
        let (mut stream, _) = listener.accept().await.expect("it accepts");
        let mut received = Vec::with_capacity(BYTES);
        let count = stream.read_to_end(&mut received).await;
        sending.await.expect("it ends");
        count.expect("it is read to its end")
    });
}

/// A megabyte through a pipe in memory that holds 8 KiB.
#[divan::bench(max_time = 5)]
fn duplex_stream(bencher: Bencher<'_, '_>) {
    const BYTES: usize = 1 << 20;
    measure(bencher, BytesCount::new(BYTES), BYTES, || async {
        let (mut one, mut other) = duplex(8 << 10);
        let sending = spawn(async move {
            let bytes = vec![7; BYTES];
            one.write_all(&bytes).await.expect("it is open");
        });
        let mut received = Vec::with_capacity(BYTES);
        let count = other.read_to_end(&mut received).await;
        sending.await.expect("it ends");
        count.expect("it is read to its end")
    });
}

/// Lines of a text in memory, through a buffer.
#[divan::bench(max_time = 5)]
fn lines(bencher: Bencher<'_, '_>) {
    const LINES: usize = 10_000;
    let runtime = runtime();
    let text = "a line of some words\n".repeat(LINES);
    bencher.counter(ItemsCount::new(LINES)).bench_local(|| {
        let count = runtime.block_on(async {
            let mut lines = BufReader::new(text.as_bytes()).lines();
            let mut count = 0;
            while let Some(line) = lines.next_line().await.expect("it is text") {
                count += usize::from(line.len() == 20);
            }
            count
        });
        assert_eq!(count, LINES);
    });
}
