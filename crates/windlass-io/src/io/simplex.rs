//! A pipe in memory.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::task::spend;

use super::forward::write_by_vectors;
use super::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf, split};

/// A pipe in memory: what is written to it can be read from it. Made by [`simplex`].
///
/// It holds a limited number of bytes; a writer waits while it is full. Once it is shut down, reads
/// give what it holds and then the end, and writes fail with `BrokenPipe`.
#[derive(Debug)]
pub struct SimplexStream {
    bytes: VecDeque<u8>,
    most: usize,
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Makes a pipe in memory that holds at most `max_buf_size` bytes, as two halves.
///
/// Dropping a half does not close the pipe: call
/// [`shutdown`](super::AsyncWriteExt::shutdown) on the writing one.
///
/// # Panics
/// If the size is 0.
#[track_caller]
pub fn simplex(max_buf_size: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    split(SimplexStream::new_unsplit(max_buf_size))
}

/// Wakers to be dealt with once no lock is held: they run code of others.
#[derive(Debug, Default)]
#[must_use = "the other side waits for its wake-up"]
pub(super) struct AfterUnlock {
    wake: Option<Waker>,
    replaced: Option<Waker>,
}

impl AfterUnlock {
    pub(super) fn run(self) {
        if let Some(waker) = self.wake {
            waker.wake();
        }
        drop(self.replaced);
    }
}

impl SimplexStream {
    /// Makes a pipe that holds at most `max_buf_size` bytes, in one piece.
    ///
    /// # Panics
    /// If the size is 0.
    #[track_caller]
    pub fn new_unsplit(max_buf_size: usize) -> SimplexStream {
        assert!(max_buf_size > 0, "`max_buf_size` must be greater than 0");
        SimplexStream {
            bytes: VecDeque::new(),
            most: max_buf_size,
            is_closed: false,
            reader: None,
            writer: None,
        }
    }

    /// Ends the pipe: a reader that waits sees that.
    pub(super) fn close_for_reader(&mut self) -> AfterUnlock {
        self.is_closed = true;
        AfterUnlock {
            wake: self.reader.take(),
            replaced: None,
        }
    }

    /// Ends the pipe: a writer that waits sees that.
    pub(super) fn close_for_writer(&mut self) -> AfterUnlock {
        self.is_closed = true;
        AfterUnlock {
            wake: self.writer.take(),
            replaced: None,
        }
    }

    pub(super) fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        after: &mut AfterUnlock,
    ) -> Poll<io::Result<()>> {
        let unit = ready!(spend(cx));
        if self.bytes.is_empty() && !self.is_closed && buf.remaining() > 0 {
            after.replaced = self.reader.replace(cx.waker().clone());
            return Poll::Pending;
        }
        unit.made_progress();
        let count = self.bytes.len().min(buf.remaining());
        if count > 0 {
            let (front, back) = self.bytes.as_slices();
            let from_front = count.min(front.len());
            buf.put_slice(&front[..from_front]);
            buf.put_slice(&back[..count - from_front]);
            self.bytes.drain(..count);
            after.wake = self.writer.take();
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        after: &mut AfterUnlock,
    ) -> Poll<io::Result<usize>> {
        let unit = ready!(spend(cx));
        if self.is_closed {
            unit.made_progress();
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if bufs.iter().all(|buf| buf.is_empty()) {
            unit.made_progress();
            return Poll::Ready(Ok(0));
        }
        let room = self.most - self.bytes.len();
        if room == 0 {
            after.replaced = self.writer.replace(cx.waker().clone());
            return Poll::Pending;
        }
        unit.made_progress();
        let mut left = room;
        for buf in bufs {
            let count = buf.len().min(left);
            self.bytes.extend(&buf[..count]);
            left -= count;
        }
        after.wake = self.reader.take();
        Poll::Ready(Ok(room - left))
    }
}

impl AsyncRead for SimplexStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut after = AfterUnlock::default();
        let read = self.poll_take(cx, buf, &mut after);
        after.run();
        read
    }
}

impl AsyncWrite for SimplexStream {
    write_by_vectors!();

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut after = AfterUnlock::default();
        let written = self.poll_put(cx, bufs, &mut after);
        after.run();
        written
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close_for_reader().run();
        Poll::Ready(Ok(()))
    }
}
