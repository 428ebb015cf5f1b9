//! tokio's traits on our sockets, on our runtime.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windlass::net::UnixStream;

use super::connected;
use crate::support::runtime;

async fn through_traits(mut writer: impl AsyncWrite + Unpin, mut reader: impl AsyncRead + Unpin) {
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
