//! A reader with a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// A reader that ends after a number of bytes; made by [`take`](super::AsyncReadExt::take).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless you `.await` or poll them"]
    pub struct Take<R> {
        #[pin]
        inner: R,
        left: u64,
    }
}

impl<R> Take<R> {
    pub(super) fn new(inner: R, limit: u64) -> Take<R> {
        Take { inner, left: limit }
    }
}

impl<R: AsyncRead> Take<R> {
    /// Returns how many bytes can still be read before this reader ends.
    ///
    /// The reader below may end earlier.
    pub fn limit(&self) -> u64 {
        self.left
    }

    /// Sets how many bytes can be read from now on; what was read before does not count.
    pub fn set_limit(&mut self, limit: u64) {
        self.left = limit;
    }

    /// Returns the reader below.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the reader below, to be changed. What is read from it there does not count.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns the pinned reader below. What is read from it there does not count.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Gives the reader below back.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: AsyncRead> AsyncRead for Take<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if *this.left == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = usize::try_from(*this.left).unwrap_or(usize::MAX);
        let (count, read) = buf.fill_part(most, |part| this.inner.poll_read(cx, part));
        *this.left -= count as u64;
        read
    }
}

impl<R: AsyncBufRead> AsyncBufRead for Take<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if *this.left == 0 {
            return Poll::Ready(Ok(&[]));
        }
        let bytes = ready!(this.inner.poll_fill_buf(cx))?;
        let most = usize::try_from(*this.left).unwrap_or(usize::MAX);
        Poll::Ready(Ok(&bytes[..bytes.len().min(most)]))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        // A caller that says too much does not get beyond the limit.
        let count = (*this.left).min(amt as u64);
        *this.left -= count;
        this.inner.consume(count as usize);
    }
}
