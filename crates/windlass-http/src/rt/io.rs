//! Our streams, as hyper reads and writes them.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::ReadBufCursor;

/// The most that one read takes: what a socket usually has at once.
const LONGEST_READ: usize = 32 * 1024;

/// The most that is put together before a write.
const SHORT_WRITE: usize = 1024;

thread_local! {
    /// Where reads go first. hyper gives uninitialized memory; to clear all of it for each read
    /// costs more than to copy what came.
    static LANDING: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// A stream with the `futures-io` traits, for hyper.
#[derive(Debug)]
pub struct Io<S>(S);

impl<S> Io<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Io<S> {
        Io(stream)
    }

    /// Returns the stream inside.
    pub fn get_ref(&self) -> &S {
        &self.0
    }

    /// The stream itself.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Io<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // A stream that reads from another in its own read finds the place empty, and makes one.
        let mut landing = LANDING
            .take()
            .unwrap_or_else(|| vec![0; LONGEST_READ].into_boxed_slice());
        let most = buffer.remaining().min(landing.len());
        let read = Pin::new(&mut self.0).poll_read(cx, &mut landing[..most]);
        if let Poll::Ready(Ok(count)) = read {
            buffer.put_slice(&landing[..count]);
        }
        LANDING.set(Some(landing));
        ready!(read)?;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Io<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A short answer is put together: the kernel takes one piece in less time than several.
        let mut whole = [0; SHORT_WRITE];
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        if total > SHORT_WRITE {
            return Pin::new(&mut self.0).poll_write_vectored(cx, slices);
        }
        let mut end = 0;
        for slice in slices {
            whole[end..][..slice.len()].copy_from_slice(slice);
            end += slice.len();
        }
        Pin::new(&mut self.0).poll_write(cx, &whole[..end])
    }
}
