//! The two halves of any stream.
//!
//! A stream of this crate has halves of its own, without a lock: `into_split`. These are for
//! streams that have none, such as one behind TLS.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::sync::{Arc, Mutex};

use super::{AsyncRead, AsyncWrite, ReadBuf};

/// The reading half of a stream; made by [`split`].
pub struct ReadHalf<T> {
    shared: Arc<Shared<T>>,
}

/// The writing half of a stream; made by [`split`].
pub struct WriteHalf<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    /// Boxed, so that a stream which must not move does not.
    stream: Mutex<Pin<Box<T>>>,
    is_write_vectored: bool,
}

/// Takes a stream apart into two halves, for two tasks. They share a lock, which is held for one
/// poll at a time.
///
/// Dropping a half does not end its direction: the stream is dropped with the second half.
pub fn split<T: AsyncRead + AsyncWrite>(stream: T) -> (ReadHalf<T>, WriteHalf<T>) {
    let shared = Arc::new(Shared {
        is_write_vectored: stream.is_write_vectored(),
        stream: Mutex::new(Box::pin(stream)),
    });
    let reading = ReadHalf {
        shared: shared.clone(),
    };
    (reading, WriteHalf { shared })
}

impl<T> ReadHalf<T> {
    /// True if both halves are of one stream.
    pub fn is_pair_of(&self, other: &WriteHalf<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Puts the halves together again.
    ///
    /// # Panics
    /// If they are halves of two streams: ask [`is_pair_of`](ReadHalf::is_pair_of) before.
    #[track_caller]
    pub fn unsplit(self, wr: WriteHalf<T>) -> T
    where
        T: Unpin,
    {
        if !self.is_pair_of(&wr) {
            panic!("Unrelated `split::Write` passed to `split::Read::unsplit`.");
        }
        drop(wr);
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => *Pin::into_inner(shared.stream.into_inner()),
            Err(_) => unreachable!("a stream has two halves, and both were here"),
        }
    }
}

impl<T> WriteHalf<T> {
    /// True if both halves are of one stream.
    pub fn is_pair_of(&self, other: &ReadHalf<T>) -> bool {
        other.is_pair_of(self)
    }
}

impl<T: AsyncRead> AsyncRead for ReadHalf<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.shared.stream.lock().as_mut().poll_read(cx, buf)
    }
}

impl<T: AsyncWrite> AsyncWrite for WriteHalf<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.stream.lock().as_mut().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.shared
            .stream
            .lock()
            .as_mut()
            .poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.shared.is_write_vectored
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.stream.lock().as_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.stream.lock().as_mut().poll_shutdown(cx)
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("split::ReadHalf").finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("split::WriteHalf").finish()
    }
}
