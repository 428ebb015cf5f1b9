//! A connection in memory.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::sync::{Arc, Mutex};

use super::forward::write_by_vectors;
use super::simplex::AfterUnlock;
use super::{AsyncRead, AsyncWrite, ReadBuf, SimplexStream};

/// One end of a connection in memory; made by [`duplex`].
///
/// Dropping it, or shutting it down, ends what the other end reads. After a drop the other end's
/// writes fail with `BrokenPipe`.
#[derive(Debug)]
pub struct DuplexStream {
    read: Arc<Mutex<SimplexStream>>,
    write: Arc<Mutex<SimplexStream>>,
}

/// Makes two streams that are connected to each other in memory. Each direction holds at most
/// `max_buf_size` bytes; a writer waits while it is full.
///
/// ```
/// use windlass_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let (mut one, mut other) = io::duplex(64);
/// one.write_all(b"ping").await?;
/// let mut word = [0; 4];
/// other.read_exact(&mut word).await?;
/// assert_eq!(&word, b"ping");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the size is 0.
#[track_caller]
pub fn duplex(max_buf_size: usize) -> (DuplexStream, DuplexStream) {
    let forth = Arc::new(Mutex::new(SimplexStream::new_unsplit(max_buf_size)));
    let back = Arc::new(Mutex::new(SimplexStream::new_unsplit(max_buf_size)));
    let one = DuplexStream {
        read: back.clone(),
        write: forth.clone(),
    };
    let other = DuplexStream {
        read: forth,
        write: back,
    };
    (one, other)
}

impl AsyncRead for DuplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut after = AfterUnlock::default();
        let read = self.read.lock().poll_take(cx, buf, &mut after);
        after.run();
        read
    }
}

impl AsyncWrite for DuplexStream {
    write_by_vectors!();

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut after = AfterUnlock::default();
        let written = self.write.lock().poll_put(cx, bufs, &mut after);
        after.run();
        written
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let after = self.write.lock().close_for_reader();
        after.run();
        Poll::Ready(Ok(()))
    }
}

impl Drop for DuplexStream {
    fn drop(&mut self) {
        let reader = self.write.lock().close_for_reader();
        let writer = self.read.lock().close_for_writer();
        reader.run();
        writer.run();
    }
}
