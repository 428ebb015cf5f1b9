//! The trait of what bytes are read from.

use std::io::{self, Cursor};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::ReadBuf;

/// Something that bytes are read from without blocking the thread.
///
/// The methods of [`AsyncReadExt`](super::AsyncReadExt) are made of this one function.
pub trait AsyncRead {
    /// Tries to append bytes to `buf`.
    ///
    /// `Ready(Ok(()))` with no byte appended, although there was room, is the end. While nothing is
    /// there to be read, the answer is `Pending`, nothing was appended, and the task is woken when
    /// that changes. If several tasks poll, only the last one need be woken.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;

    /// Says that the next `poll_read` is of a caller that wants everything up to the end, so that a
    /// reader with a high price per read can fetch more at once.
    #[doc(hidden)]
    fn announce_read_to_end(self: Pin<&mut Self>) {}
}

/// A pointer reads what it points to.
macro_rules! read_through {
    ($($pointer:ty),+) => { $(
        impl<T: AsyncRead + Unpin + ?Sized> AsyncRead for $pointer {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).poll_read(cx, buf)
            }

            fn announce_read_to_end(mut self: Pin<&mut Self>) {
                Pin::new(&mut **self).announce_read_to_end();
            }
        }
    )+ };
}

read_through!(&mut T, Box<T>);

impl<P> AsyncRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_read(cx, buf)
    }

    fn announce_read_to_end(self: Pin<&mut Self>) {
        self.as_deref_mut().announce_read_to_end();
    }
}

/// Moves as many bytes as fit, and gives their number.
fn copy_some(from: &[u8], to: &mut ReadBuf<'_>) -> usize {
    let count = from.len().min(to.remaining());
    to.put_slice(&from[..count]);
    count
}

impl AsyncRead for &[u8] {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = copy_some(*self, buf);
        *self = &self[count..];
        Poll::Ready(Ok(()))
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncRead for Cursor<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let position = self.position();
        let bytes = self.get_ref().as_ref();
        // A position behind the end is the end.
        let rest = usize::try_from(position)
            .ok()
            .and_then(|begin| bytes.get(begin..));
        let count = copy_some(rest.unwrap_or(&[]), buf);
        self.set_position(position + count as u64);
        Poll::Ready(Ok(()))
    }
}
