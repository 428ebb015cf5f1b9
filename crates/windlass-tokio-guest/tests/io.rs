//! tokio's traits on our sockets, on our runtime.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use windlass_io::command::{Command, Stdio};
use windlass_io::fs::File;
use windlass_io::net::{TcpListener, TcpStream, UnixStream};
use windlass_runtime::Runtime;
use windlass_tokio_guest::TokioCompat;

fn runtime(workers: usize) -> Runtime {
    let mut builder = Runtime::builder();
    builder.workers(workers).build().expect("a runtime")
}

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

async fn through_traits<W, R>(writer: W, reader: R)
where
    TokioCompat<W>: AsyncWrite + Unpin,
    TokioCompat<R>: AsyncRead + Unpin,
{
    let (mut writer, mut reader) = (TokioCompat::new(writer), TokioCompat::new(reader));
    assert!(writer.is_write_vectored());
    let parts = [IoSlice::new(b"a"), IoSlice::new(b"bc")];
    let wrote = poll_fn(|cx| Pin::new(&mut writer).poll_write_vectored(cx, &parts)).await;
    assert_eq!(wrote.unwrap(), 3);
    let mut place = [0; 8];
    let mut buffer = ReadBuf::new(&mut place);
    buffer.put_slice(b">");
    let read = poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut buffer)).await;
    read.unwrap();
    assert_eq!(buffer.filled(), b">abc");
    poll_fn(|cx| Pin::new(&mut writer).poll_shutdown(cx))
        .await
        .unwrap();
    buffer.clear();
    let read = poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut buffer)).await;
    read.unwrap();
    assert!(buffer.filled().is_empty(), "the end");
}

#[test]
fn the_traits_of_tokio_are_on_streams_and_halves() {
    runtime(1).block_on(async {
        let (client, server) = connected().await;
        through_traits(client, server).await;
        let (client, server) = connected().await;
        through_traits(client.into_split().1, server.into_split().0).await;
        let (mut one, mut other) = UnixStream::pair().unwrap();
        through_traits(one.split().1, other.split().0).await;
        let (one, other) = UnixStream::pair().unwrap();
        through_traits(one, other).await;
    });
}

#[test]
fn the_traits_of_tokio_are_on_files_and_on_the_pipes_of_commands() {
    runtime(1).block_on(async {
        let path = std::env::temp_dir().join(format!("windlass-tokio-io-{}", std::process::id()));
        let mut file = TokioCompat::new(File::create(&path).await.unwrap());
        AsyncWriteExt::write_all(&mut file, b"abc").await.unwrap();
        AsyncWriteExt::flush(&mut file).await.unwrap();
        let mut text = String::new();
        let mut file = TokioCompat::new(File::open(&path).await.unwrap());
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "abc");
        windlass_io::fs::remove_file(&path).await.unwrap();

        let mut child = Command::new("sh")
            .args(["-c", "cat; echo oh >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = TokioCompat::new(child.stdin.take().unwrap());
        AsyncWriteExt::write_all(&mut stdin, b"through")
            .await
            .unwrap();
        stdin.shutdown().await.unwrap();
        let (mut out, mut complaints) = (String::new(), String::new());
        TokioCompat::new(child.stdout.take().unwrap())
            .read_to_string(&mut out)
            .await
            .unwrap();
        TokioCompat::new(child.stderr.take().unwrap())
            .read_to_string(&mut complaints)
            .await
            .unwrap();
        assert_eq!((&*out, &*complaints), ("through", "oh\n"));
        assert!(child.wait().await.unwrap().success());
    });
}
