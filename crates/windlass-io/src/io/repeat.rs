//! One byte, again and again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{AsyncRead, ReadBuf, always_ready};

/// A reader that gives one byte again and again, without end; made by [`repeat`].
#[derive(Debug)]
pub struct Repeat {
    byte: u8,
}

/// Makes a reader that gives `byte` again and again, without end.
pub fn repeat(byte: u8) -> Repeat {
    Repeat { byte }
}

impl AsyncRead for Repeat {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(always_ready(cx));
        bytes::BufMut::put_bytes(buf, self.byte, buf.remaining());
        Poll::Ready(Ok(()))
    }
}
