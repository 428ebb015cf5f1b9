//! A buffer before a writer.

use std::fmt;
use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::forward::forward_buf_read;
use super::futures::uninterrupted;
use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BUFFER_SIZE, ReadBuf};

pin_project! {
    /// Takes small writes and passes them on in large pieces.
    ///
    /// A write of at least the buffer's size goes past an empty buffer. What the buffer holds is
    /// lost when this is dropped: call [`flush`](super::AsyncWriteExt::flush) or
    /// [`shutdown`](super::AsyncWriteExt::shutdown) before.
    pub struct BufWriter<W> {
        #[pin]
        inner: W,
        buffer: Backlog,
        seek: Seeking,
    }
}

/// Bytes to be passed on, of which the first ones were.
pub(super) struct Backlog {
    bytes: Vec<u8>,
    passed: usize,
}

impl Backlog {
    fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }
}

/// How far a move of the position has got.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seeking {
    Nowhere,
    /// The writer below was not told yet.
    Asked(SeekFrom),
    /// The writer below moves.
    Moving,
}

impl<W: AsyncWrite> BufWriter<W> {
    /// Puts a buffer of 8 KiB before `inner`.
    pub fn new(inner: W) -> BufWriter<W> {
        BufWriter::with_capacity(BUFFER_SIZE, inner)
    }

    /// Puts a buffer of `cap` bytes before `inner`.
    pub fn with_capacity(cap: usize, inner: W) -> BufWriter<W> {
        let buffer = Backlog {
            bytes: Vec::with_capacity(cap),
            passed: 0,
        };
        BufWriter::from_parts(inner, buffer, Seeking::Nowhere)
    }

    /// Returns the writer below.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Returns the writer below, to be changed. What is written to it there overtakes the buffer.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Returns the pinned writer below. What is written to it there overtakes the buffer.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().inner
    }

    /// Gives the writer below back. What the buffer holds is lost.
    pub fn into_inner(self) -> W {
        self.inner
    }

    /// Returns what the buffer holds.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer.bytes
    }

    /// Passes on all that the buffer holds.
    fn poll_empty(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let Backlog { bytes, passed } = this.buffer;
        let result = loop {
            let rest = &bytes[*passed..];
            if rest.is_empty() {
                break Ok(());
            }
            match ready!(uninterrupted!(this.inner.as_mut().poll_write(cx, rest))) {
                Ok(0) => {
                    let text = "failed to write the buffered data";
                    break Err(io::Error::new(io::ErrorKind::WriteZero, text));
                }
                Ok(count) => *passed += count,
                Err(error) => break Err(error),
            }
        };
        // After an error, what was not passed on is tried again with the next call.
        bytes.drain(..std::mem::take(passed));
        Poll::Ready(result)
    }
}

impl<W> BufWriter<W> {
    pub(super) fn from_parts(inner: W, buffer: Backlog, seek: Seeking) -> BufWriter<W> {
        BufWriter {
            inner,
            buffer,
            seek,
        }
    }

    pub(super) fn into_parts(self) -> (W, Backlog, Seeking) {
        (self.inner, self.buffer, self.seek)
    }
}

impl<W: AsyncWrite> AsyncWrite for BufWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.len() > self.buffer.room() {
            ready!(self.as_mut().poll_empty(cx))?;
        }
        let this = self.project();
        if buf.len() >= this.buffer.bytes.capacity() {
            return this.inner.poll_write(cx, buf);
        }
        this.buffer.bytes.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.inner.is_write_vectored() {
            return self.poll_write_slices(cx, bufs);
        }
        let total = bufs
            .iter()
            .fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        if total > self.buffer.room() {
            ready!(self.as_mut().poll_empty(cx))?;
        }
        let this = self.project();
        if total >= this.buffer.bytes.capacity() {
            return this.inner.poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            this.buffer.bytes.extend_from_slice(buf);
        }
        Poll::Ready(Ok(total))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.get_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.get_pin_mut().poll_shutdown(cx)
    }
}

impl<W: AsyncWrite> BufWriter<W> {
    /// Writes several buffers, for a writer below that takes one at a time: the first one in any
    /// case, and those after it that fit beside it.
    fn poll_write_slices(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut rest = bufs.iter().filter(|buf| !buf.is_empty());
        let Some(first) = rest.next() else {
            return Poll::Ready(Ok(0));
        };
        let mut total = ready!(self.as_mut().poll_write(cx, first))?;
        let buffer = self.project().buffer;
        // Past the buffer, only some of the first may have been written.
        if total == first.len() && !buffer.bytes.is_empty() {
            for buf in rest {
                if buf.len() > buffer.room() {
                    break;
                }
                buffer.bytes.extend_from_slice(buf);
                total += buf.len();
            }
        }
        Poll::Ready(Ok(total))
    }
}

/// The buffer is passed on before the writer below moves.
impl<W: AsyncWrite + AsyncSeek> AsyncSeek for BufWriter<W> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        // Only `poll_complete` can wait for the buffer.
        *self.project().seek = Seeking::Asked(position);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if let Seeking::Asked(position) = self.seek {
            ready!(self.as_mut().poll_empty(cx))?;
            let mut this = self.as_mut().project();
            // An earlier move may still be under way.
            ready!(this.inner.as_mut().poll_complete(cx))?;
            *this.seek = Seeking::Nowhere;
            this.inner.start_seek(position)?;
            *this.seek = Seeking::Moving;
        }
        let this = self.project();
        let position = ready!(this.inner.poll_complete(cx));
        *this.seek = Seeking::Nowhere;
        Poll::Ready(position)
    }
}

/// Reads go straight to what is below.
impl<W: AsyncWrite + AsyncRead> AsyncRead for BufWriter<W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_read(cx, buf)
    }
}

impl<W: AsyncWrite + AsyncBufRead> AsyncBufRead for BufWriter<W> {
    forward_buf_read!(inner);
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Backlog { bytes, passed } = &self.buffer;
        let (held, size) = (bytes.len(), bytes.capacity());
        f.debug_struct("BufWriter")
            .field("writer", &self.inner)
            .field("buffer", &format_args!("{held}/{size}"))
            .field("written", passed)
            .finish()
    }
}
