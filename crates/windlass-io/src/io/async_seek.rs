//! The trait of what has a position.

use std::io::{self, Cursor, Seek, SeekFrom};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Something with a position that can be moved, without blocking the thread.
///
/// The methods of [`AsyncSeekExt`](super::AsyncSeekExt) are made of these functions.
pub trait AsyncSeek {
    /// Begins to move the position. [`poll_complete`](AsyncSeek::poll_complete) ends it.
    ///
    /// # Errors
    /// If an operation is still under way: wait for `poll_complete` before each call.
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()>;

    /// Waits for the move that was begun; gives the new position from the beginning.
    ///
    /// Without a move that was begun it gives some position, which need not be the current one.
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>>;
}

/// A pointer moves what it points to.
macro_rules! seek_through {
    ($($pointer:ty),+) => { $(
        impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for $pointer {
            fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
                Pin::new(&mut **self).start_seek(position)
            }

            fn poll_complete(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<u64>> {
                Pin::new(&mut **self).poll_complete(cx)
            }
        }
    )+ };
}

seek_through!(&mut T, Box<T>);

impl<P> AsyncSeek for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncSeek,
{
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.as_deref_mut().start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.as_deref_mut().poll_complete(cx)
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncSeek for Cursor<T> {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.seek(position).map(drop)
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position()))
    }
}
