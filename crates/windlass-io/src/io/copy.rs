//! Moving everything from a reader to a writer.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::task::{BudgetUnit, spend};

use super::futures::uninterrupted;
use super::{AsyncBufRead, AsyncRead, AsyncWrite, BUFFER_SIZE, ReadBuf};

/// Copies everything from `reader` to `writer`, up to the end, and flushes; gives how many bytes
/// that were.
///
/// While the writer takes nothing, no more than the 8 KiB of the buffer between them is read. A
/// reader that has nothing for now lets the writer be flushed. Not cancel-safe: what the buffer
/// holds is lost.
///
/// ```
/// use windlass_io::io;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let mut target = Vec::new();
/// assert_eq!(io::copy(&mut &b"hello"[..], &mut target).await?, 5);
/// assert_eq!(target, b"hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of either side.
pub async fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut transfer = Transfer::new(BUFFER_SIZE);
    poll_fn(|cx| transfer.poll(cx, Pin::new(&mut *reader), Pin::new(&mut *writer))).await
}

/// Copies as [`copy`] does, from a reader that has a buffer already: none is put between.
///
/// Cancel-safe in that nothing is lost: what was not written is still in the reader. How much was
/// written is not known.
///
/// # Errors
/// The first error of either side.
pub async fn copy_buf<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncBufRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let (mut total, mut unflushed) = (0, false);
    poll_fn(|cx| {
        let mut unit = Some(ready!(spend(cx)));
        loop {
            let bytes = match Pin::new(&mut *reader).poll_fill_buf(cx) {
                Poll::Ready(Ok(bytes)) => bytes,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(Err(error)) => {
                    progress(&mut unit);
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => {
                    // The reader may wait for the answer to what the writer still keeps.
                    if unflushed {
                        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                        unflushed = false;
                    }
                    return Poll::Pending;
                }
            };
            progress(&mut unit);
            if bytes.is_empty() {
                ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                return Poll::Ready(Ok(total));
            }
            let written = uninterrupted!(Pin::new(&mut *writer).poll_write(cx, bytes));
            let count = ready!(written)?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            Pin::new(&mut *reader).consume(count);
            total += count as u64;
            unflushed = true;
        }
    })
    .await
}

/// The unit of this poll is used up: the copy got further.
fn progress(unit: &mut Option<BudgetUnit>) {
    if let Some(unit) = unit.take() {
        unit.made_progress();
    }
}

/// One direction of a copy: the buffer between a reader and a writer.
#[derive(Debug)]
pub(super) struct Transfer {
    memory: Box<[u8]>,
    /// What was read, and of that, what was written.
    read: usize,
    written: usize,
    total: u64,
    is_reader_over: bool,
    is_unflushed: bool,
}

impl Transfer {
    pub(super) fn new(size: usize) -> Transfer {
        Transfer {
            memory: vec![0; size].into(),
            read: 0,
            written: 0,
            total: 0,
            is_reader_over: false,
            is_unflushed: false,
        }
    }

    /// Moves bytes until a side has to be waited for; gives the number of all bytes at the end.
    pub(super) fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        let mut unit = Some(ready!(spend(cx)));
        loop {
            // A fuller buffer makes a larger write.
            let read = self.poll_fill(cx, reader.as_mut());
            if read.is_ready() {
                progress(&mut unit);
            }
            match read {
                Poll::Ready(result) => result?,
                Poll::Pending if self.written == self.read => {
                    // The reader may wait for the answer to what the writer still keeps.
                    if self.is_unflushed {
                        ready!(writer.as_mut().poll_flush(cx))?;
                        progress(&mut unit);
                        self.is_unflushed = false;
                    }
                    return Poll::Pending;
                }
                Poll::Pending => {}
            }
            while self.written < self.read {
                let rest = &self.memory[self.written..self.read];
                let written = uninterrupted!(writer.as_mut().poll_write(cx, rest));
                let Poll::Ready(written) = written else {
                    // While the writer has to be waited for, the buffer fills up.
                    ready!(self.poll_fill(cx, reader.as_mut()))?;
                    return Poll::Pending;
                };
                let count = written?;
                progress(&mut unit);
                if count == 0 {
                    let text = "write zero byte into writer";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::WriteZero, text)));
                }
                debug_assert!(
                    count <= self.read - self.written,
                    "writer returned length larger than input slice"
                );
                self.written += count;
                self.total += count as u64;
                self.is_unflushed = true;
            }
            (self.read, self.written) = (0, 0);
            if self.is_reader_over {
                ready!(writer.as_mut().poll_flush(cx))?;
                progress(&mut unit);
                return Poll::Ready(Ok(self.total));
            }
        }
    }

    /// Appends to the buffer; ready at once if that has no room or the reader is over.
    fn poll_fill<R: AsyncRead + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
    ) -> Poll<io::Result<()>> {
        if self.is_reader_over || self.read == self.memory.len() {
            return Poll::Ready(Ok(()));
        }
        let mut buffer = ReadBuf::new(&mut self.memory);
        buffer.set_filled(self.read);
        ready!(uninterrupted!(reader.as_mut().poll_read(cx, &mut buffer)))?;
        let read = buffer.filled().len();
        self.is_reader_over = read == self.read;
        self.read = read;
        Poll::Ready(Ok(()))
    }
}
