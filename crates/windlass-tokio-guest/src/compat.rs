//! tokio's `AsyncRead` and `AsyncWrite` for all that has those of `futures-io`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pin_project! {
    /// A stream with tokio's `AsyncRead` and `AsyncWrite`, for libraries that are written against
    /// them: sockets, halves of sockets, files, the pipes of commands.
    ///
    /// ```
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// use windlass_io::net::UnixStream;
    /// use windlass_tokio_guest::TokioCompat;
    ///
    /// # let runtime = windlass_runtime::Runtime::new()?;
    /// # runtime.block_on(async {
    /// let (one, other) = UnixStream::pair()?;
    /// let (mut one, mut other) = (TokioCompat::new(one), TokioCompat::new(other));
    /// one.write_all(b"hello").await?;
    /// drop(one);
    /// let mut text = String::new();
    /// other.read_to_string(&mut text).await?;
    /// assert_eq!(text, "hello");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug, Clone)]
    pub struct TokioCompat<T> {
        #[pin]
        inner: T,
    }
}

impl<T> TokioCompat<T> {
    /// Wraps a stream.
    pub fn new(inner: T) -> TokioCompat<T> {
        TokioCompat { inner }
    }

    /// Returns the stream inside.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the stream inside, to change it.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Takes the stream out.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: futures_io::AsyncRead> AsyncRead for TokioCompat<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Sets the unused part to 0 once per buffer, not once per read.
        let unfilled = buffer.initialize_unfilled();
        let count = ready!(self.project().inner.poll_read(cx, unfilled))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: futures_io::AsyncWrite> AsyncWrite for TokioCompat<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, buffers)
    }

    /// A stream that does not write vectors writes their first buffer, so a caller loses a copy at
    /// most.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_close(cx)
    }
}
