//! Buffers for both directions of a stream.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::forward::{forward_buf_read, forward_write};
use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BufReader, BufWriter, ReadBuf};

pin_project! {
    /// A stream with a buffer in each direction: a [`BufReader`] and a [`BufWriter`] in one.
    ///
    /// What the buffers hold is lost when this is dropped: call
    /// [`flush`](super::AsyncWriteExt::flush) or [`shutdown`](super::AsyncWriteExt::shutdown)
    /// before.
    #[derive(Debug)]
    pub struct BufStream<RW> {
        #[pin]
        inner: BufReader<BufWriter<RW>>,
    }
}

impl<RW: AsyncRead + AsyncWrite> BufStream<RW> {
    /// Puts buffers of 8 KiB before `stream`.
    pub fn new(stream: RW) -> BufStream<RW> {
        BufReader::new(BufWriter::new(stream)).into()
    }

    /// Puts buffers of these sizes before `stream`.
    ///
    /// # Panics
    /// If the capacity for reading is 0.
    #[track_caller]
    pub fn with_capacity(
        reader_capacity: usize,
        writer_capacity: usize,
        stream: RW,
    ) -> BufStream<RW> {
        let writer = BufWriter::with_capacity(writer_capacity, stream);
        BufReader::with_capacity(reader_capacity, writer).into()
    }

    /// Returns the stream below.
    pub fn get_ref(&self) -> &RW {
        self.inner.get_ref().get_ref()
    }

    /// Returns the stream below, to be changed. What is read or written there goes past the
    /// buffers.
    pub fn get_mut(&mut self) -> &mut RW {
        self.inner.get_mut().get_mut()
    }

    /// Returns the pinned stream below. What is read or written there goes past the buffers.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut RW> {
        self.project().inner.get_pin_mut().get_pin_mut()
    }

    /// Gives the stream below back. What the buffers hold is lost.
    pub fn into_inner(self) -> RW {
        self.inner.into_inner().into_inner()
    }
}

impl<RW> From<BufReader<BufWriter<RW>>> for BufStream<RW> {
    fn from(inner: BufReader<BufWriter<RW>>) -> BufStream<RW> {
        BufStream { inner }
    }
}

impl<RW> From<BufWriter<BufReader<RW>>> for BufStream<RW> {
    fn from(inner: BufWriter<BufReader<RW>>) -> BufStream<RW> {
        let (reader, backlog, write_seek) = inner.into_parts();
        let (stream, window, read_seek) = reader.into_parts();
        let writer = BufWriter::from_parts(stream, backlog, write_seek);
        BufReader::from_parts(writer, window, read_seek).into()
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncRead for BufStream<RW> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncBufRead for BufStream<RW> {
    forward_buf_read!(inner);
}

impl<RW: AsyncRead + AsyncWrite> AsyncWrite for BufStream<RW> {
    forward_write!(ours inner);
}

/// Bytes that were written are passed on before the stream below moves; bytes that were read ahead
/// are forgotten.
impl<RW: AsyncRead + AsyncWrite + AsyncSeek> AsyncSeek for BufStream<RW> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.project().inner.start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.project().inner.poll_complete(cx)
    }
}
