//! Two readers, one after the other.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// A reader that goes on with a second one after the end of the first; made by
    /// [`chain`](super::AsyncReadExt::chain).
    #[must_use = "streams do nothing unless polled"]
    pub struct Chain<T, U> {
        #[pin]
        first: T,
        #[pin]
        second: U,
        is_first_over: bool,
    }
}

impl<T, U> Chain<T, U> {
    pub(super) fn new(first: T, second: U) -> Chain<T, U> {
        Chain {
            first,
            second,
            is_first_over: false,
        }
    }
}

impl<T: AsyncRead, U: AsyncRead> Chain<T, U> {
    /// Returns both readers.
    pub fn get_ref(&self) -> (&T, &U) {
        (&self.first, &self.second)
    }

    /// Returns both readers, to be changed. What is read from them there is missing here.
    pub fn get_mut(&mut self) -> (&mut T, &mut U) {
        (&mut self.first, &mut self.second)
    }

    /// Returns both pinned readers. What is read from them there is missing here.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> (Pin<&mut T>, Pin<&mut U>) {
        let this = self.project();
        (this.first, this.second)
    }

    /// Gives both readers back.
    pub fn into_inner(self) -> (T, U) {
        (self.first, self.second)
    }
}

impl<T: fmt::Debug, U: fmt::Debug> fmt::Debug for Chain<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("t", &self.first)
            .field("u", &self.second)
            .finish()
    }
}

impl<T: AsyncRead, U: AsyncRead> AsyncRead for Chain<T, U> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if !*this.is_first_over {
            let room = buf.remaining();
            ready!(this.first.poll_read(cx, buf))?;
            // Without room nothing can be read, which says nothing about the end.
            if room == 0 || buf.remaining() < room {
                return Poll::Ready(Ok(()));
            }
            *this.is_first_over = true;
        }
        this.second.poll_read(cx, buf)
    }
}

impl<T: AsyncBufRead, U: AsyncBufRead> AsyncBufRead for Chain<T, U> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if !*this.is_first_over {
            let bytes = ready!(this.first.poll_fill_buf(cx))?;
            if !bytes.is_empty() {
                return Poll::Ready(Ok(bytes));
            }
            *this.is_first_over = true;
        }
        this.second.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        match *this.is_first_over {
            false => this.first.consume(amt),
            true => this.second.consume(amt),
        }
    }
}
