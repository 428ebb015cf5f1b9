//! A stream without bytes.

use std::fmt;
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::sink::forgets_writes;
use super::{AsyncBufRead, AsyncRead, AsyncSeek, ReadBuf, always_ready};

/// A stream that is at its end when it is read, and takes every write and forgets it; made by
/// [`empty`].
pub struct Empty(());

/// Makes a stream that is at its end when it is read, and takes every write and forgets it.
pub fn empty() -> Empty {
    Empty(())
}

impl AsyncRead for Empty {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        always_ready(cx).map(Ok)
    }
}

impl AsyncBufRead for Empty {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        always_ready(cx).map(|()| Ok(&[][..]))
    }

    fn consume(self: Pin<&mut Self>, _: usize) {}
}

forgets_writes!(Empty);

impl AsyncSeek for Empty {
    fn start_seek(self: Pin<&mut Self>, _: SeekFrom) -> io::Result<()> {
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        ready!(always_ready(cx));
        Poll::Ready(Ok(0))
    }
}

impl fmt::Debug for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Empty { .. }")
    }
}
