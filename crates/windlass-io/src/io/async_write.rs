//! The trait of what bytes are written to.

use std::io::{self, Cursor, IoSlice, Write};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Something that bytes are written to without blocking the thread.
///
/// The methods of [`AsyncWriteExt`](super::AsyncWriteExt) are made of these functions. `Pending`
/// means that nothing was done yet, and that the task is woken when it is worth trying again.
pub trait AsyncWrite {
    /// Tries to write some of `buf`; gives how many bytes were taken.
    ///
    /// 0 for a buffer that is not empty means that no byte will ever be taken again.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>>;

    /// Tries to pass on what was taken and is still kept in a buffer.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Passes on what is kept in a buffer and ends the writing direction.
    ///
    /// After it, writes fail. The reading direction, where there is one, goes on.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Tries to write from several buffers, one after the other.
    ///
    /// Unless it is implemented, this writes from the first buffer that is not empty.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty());
        self.poll_write(cx, first.map_or(&[], |buf| buf))
    }

    /// True if [`poll_write_vectored`](AsyncWrite::poll_write_vectored) takes from more than one
    /// buffer. A caller that would have to copy to write at once need not, then.
    fn is_write_vectored(&self) -> bool {
        false
    }
}

/// All functions of `AsyncWrite`, by way of what an expression leads to.
macro_rules! write_through {
    (|$this:ident| $to:expr) => {
        fn poll_write(
            #[allow(unused_mut)] mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let $this = &mut self;
            $to.poll_write(cx, buf)
        }

        fn poll_write_vectored(
            #[allow(unused_mut)] mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let $this = &mut self;
            $to.poll_write_vectored(cx, bufs)
        }

        fn is_write_vectored(&self) -> bool {
            (**self).is_write_vectored()
        }

        fn poll_flush(
            #[allow(unused_mut)] mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            let $this = &mut self;
            $to.poll_flush(cx)
        }

        fn poll_shutdown(
            #[allow(unused_mut)] mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            let $this = &mut self;
            $to.poll_shutdown(cx)
        }
    };
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for &mut T {
    write_through!(|this| Pin::new(&mut ***this));
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for Box<T> {
    write_through!(|this| Pin::new(&mut ***this));
}

impl<P> AsyncWrite for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncWrite,
{
    write_through!(|this| this.as_mut().as_deref_mut());
}

/// What the standard library writes to without waiting.
macro_rules! write_at_once {
    ($($type:ty),+) => { $(
        impl AsyncWrite for $type {
            fn poll_write(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(self.write(buf))
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(self.write_vectored(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.flush())
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }
        }
    )+ };
}

write_at_once!(
    Vec<u8>,
    Cursor<&mut [u8]>,
    Cursor<&mut Vec<u8>>,
    Cursor<Vec<u8>>,
    Cursor<Box<[u8]>>
);
