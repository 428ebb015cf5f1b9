//! A reader and a writer as one stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::forward::{forward_buf_read, forward_write};
use super::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Makes one stream of a reader and a writer.
pub fn join<R: AsyncRead, W: AsyncWrite>(reader: R, writer: W) -> Join<R, W> {
    Join { reader, writer }
}

pin_project! {
    /// A stream made of a reader and a writer by [`join`].
    #[derive(Debug)]
    pub struct Join<R, W> {
        #[pin]
        reader: R,
        #[pin]
        writer: W,
    }
}

impl<R: AsyncRead, W: AsyncWrite> Join<R, W> {
    /// Gives the reader and the writer back.
    pub fn into_inner(self) -> (R, W) {
        (self.reader, self.writer)
    }

    /// Returns the reader as it is.
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// Returns the writer as it is.
    pub fn writer(&self) -> &W {
        &self.writer
    }

    /// Returns the reader, to be changed.
    pub fn reader_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the writer, to be changed.
    pub fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Returns the pinned reader.
    pub fn reader_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().reader
    }

    /// Returns the pinned writer.
    pub fn writer_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().writer
    }
}

impl<R: AsyncRead, W> AsyncRead for Join<R, W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().reader.poll_read(cx, buf)
    }
}

impl<R: AsyncBufRead, W> AsyncBufRead for Join<R, W> {
    forward_buf_read!(reader);
}

impl<R, W: AsyncWrite> AsyncWrite for Join<R, W> {
    forward_write!(ours writer);
}
