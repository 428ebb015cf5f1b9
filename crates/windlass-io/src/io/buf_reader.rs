//! A buffer before a reader.

use std::fmt;
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::forward::forward_write;
use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BUFFER_SIZE, ReadBuf};

pin_project! {
    /// Reads in large pieces and hands out small ones.
    ///
    /// A read of at least the buffer's size goes past an empty buffer. What the buffer holds is
    /// lost when this is dropped or taken apart.
    pub struct BufReader<R> {
        #[pin]
        inner: R,
        buffer: Window,
        seek: Seeking,
    }
}

/// Memory of which a part holds bytes that were read and not handed out.
pub(super) struct Window {
    memory: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Window {
    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.end]
    }

    fn clear(&mut self) {
        (self.begin, self.end) = (0, 0);
    }
}

/// How far a move of the position has got.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seeking {
    Nowhere,
    /// The reader below was not told yet.
    Asked(SeekFrom),
    /// The reader below goes back to where its user is; then it moves by so much. Only if both in
    /// one would overflow.
    Back(i64),
    /// The reader below moves.
    Moving,
}

impl<R: AsyncRead> BufReader<R> {
    /// Puts a buffer of 8 KiB before `inner`.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader::with_capacity(BUFFER_SIZE, inner)
    }

    /// Puts a buffer of `capacity` bytes before `inner`.
    ///
    /// # Panics
    /// If the capacity is 0: an empty buffer would be the end.
    #[track_caller]
    pub fn with_capacity(capacity: usize, inner: R) -> BufReader<R> {
        assert!(capacity > 0, "capacity must be greater than zero");
        let buffer = Window {
            memory: vec![0; capacity].into(),
            begin: 0,
            end: 0,
        };
        BufReader::from_parts(inner, buffer, Seeking::Nowhere)
    }

    /// Returns the reader below.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the reader below, to be changed. What is read from it there is missing here.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns the pinned reader below. What is read from it there is missing here.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Gives the reader below back. What the buffer holds is lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Returns what the buffer holds, without reading.
    pub fn buffer(&self) -> &[u8] {
        self.buffer.bytes()
    }
}

impl<R> BufReader<R> {
    pub(super) fn from_parts(inner: R, buffer: Window, seek: Seeking) -> BufReader<R> {
        BufReader {
            inner,
            buffer,
            seek,
        }
    }

    pub(super) fn into_parts(self) -> (R, Window, Seeking) {
        (self.inner, self.buffer, self.seek)
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.as_mut().project();
        if this.buffer.bytes().is_empty() && buf.remaining() >= this.buffer.memory.len() {
            return this.inner.poll_read(cx, buf);
        }
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let count = bytes.len().min(buf.remaining());
        buf.put_slice(&bytes[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        let window = this.buffer;
        if window.begin == window.end {
            let mut memory = ReadBuf::new(&mut window.memory);
            ready!(this.inner.poll_read(cx, &mut memory))?;
            (window.begin, window.end) = (0, memory.filled().len());
        }
        Poll::Ready(Ok(window.bytes()))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let window = self.project().buffer;
        window.begin = window.begin.saturating_add(amt).min(window.end);
    }
}

/// Moves the reader below; `SeekFrom::Current` counts from where the user is, who has not seen what
/// the buffer holds. The buffer is empty afterwards, even if the new position is inside it.
impl<R: AsyncRead + AsyncSeek> AsyncSeek for BufReader<R> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        // The reader below may be busy, and only `poll_complete` can wait for it.
        *self.project().seek = Seeking::Asked(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        loop {
            // After an error nothing is under way.
            match std::mem::replace(this.seek, Seeking::Nowhere) {
                Seeking::Nowhere => return this.inner.poll_complete(cx),
                Seeking::Asked(position) => {
                    let ahead = this.buffer.bytes().len() as i64;
                    let (target, next) = match position {
                        SeekFrom::Current(distance) => match distance.checked_sub(ahead) {
                            Some(sum) => (SeekFrom::Current(sum), Seeking::Moving),
                            None => (SeekFrom::Current(-ahead), Seeking::Back(distance)),
                        },
                        absolute => (absolute, Seeking::Moving),
                    };
                    this.inner.as_mut().start_seek(target)?;
                    *this.seek = next;
                }
                Seeking::Back(distance) => {
                    if this.inner.as_mut().poll_complete(cx)?.is_pending() {
                        *this.seek = Seeking::Back(distance);
                        return Poll::Pending;
                    }
                    this.buffer.clear();
                    let target = SeekFrom::Current(distance);
                    this.inner.as_mut().start_seek(target)?;
                    *this.seek = Seeking::Moving;
                }
                Seeking::Moving => {
                    let Poll::Ready(position) = this.inner.as_mut().poll_complete(cx)? else {
                        *this.seek = Seeking::Moving;
                        return Poll::Pending;
                    };
                    this.buffer.clear();
                    return Poll::Ready(Ok(position));
                }
            }
        }
    }
}

/// Writes go straight to what is below.
impl<R: AsyncRead + AsyncWrite> AsyncWrite for BufReader<R> {
    forward_write!(ours inner);
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, size) = (self.buffer.bytes().len(), self.buffer.memory.len());
        f.debug_struct("BufReader")
            .field("reader", &self.inner)
            .field("buffer", &format_args!("{held}/{size}"))
            .finish()
    }
}
