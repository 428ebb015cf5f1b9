//! The trait of readers that have a buffer.

use std::io::{self, BufRead, Cursor};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::AsyncRead;

/// A reader with a buffer of its own, which callers can look at.
///
/// The methods of [`AsyncBufReadExt`](super::AsyncBufReadExt) are made of these functions.
pub trait AsyncBufRead: AsyncRead {
    /// Returns what the buffer holds; reads first if it is empty. An empty answer is the end.
    ///
    /// What is looked at stays there until [`consume`](AsyncBufRead::consume).
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>;

    /// Takes `amt` bytes out of the buffer: no read gives them again. `amt` is at most what
    /// [`poll_fill_buf`](AsyncBufRead::poll_fill_buf) has given.
    fn consume(self: Pin<&mut Self>, amt: usize);
}

/// A pointer has the buffer of what it points to.
macro_rules! buffer_through {
    ($($pointer:ty),+) => { $(
        impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for $pointer {
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                Pin::new(&mut **self.get_mut()).poll_fill_buf(cx)
            }

            fn consume(mut self: Pin<&mut Self>, amt: usize) {
                Pin::new(&mut **self).consume(amt);
            }
        }
    )+ };
}

buffer_through!(&mut T, Box<T>);

impl<P> AsyncBufRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncBufRead,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.as_deref_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.as_deref_mut().consume(amt);
    }
}

impl AsyncBufRead for &[u8] {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(*self))
    }

    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        *self = &self[amt..];
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncBufRead for Cursor<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(self.get_mut().fill_buf())
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        BufRead::consume(self.get_mut(), amt);
    }
}
