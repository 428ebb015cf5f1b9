//! Reading up to a byte, from a reader with a buffer.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::read_to_end::finish_text;
use super::uninterrupted;
use crate::io::AsyncBufRead;

/// Appends what comes, up to and with `delimiter`, or up to the end; `total` counts across polls.
pub(in crate::io) fn poll_read_until<R: AsyncBufRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    target: &mut Vec<u8>,
    total: &mut usize,
) -> Poll<io::Result<usize>> {
    loop {
        // The buffer is looked at once per attempt: an interrupted one is not to be held on to.
        let look = uninterrupted!(reader.as_mut().poll_fill_buf(cx).map_ok(|bytes| {
            let found = memchr::memchr(delimiter, bytes);
            let part = found.map_or(bytes, |at| &bytes[..=at]);
            target.extend_from_slice(part);
            (part.len(), found.is_some() || part.is_empty())
        }));
        let (count, is_last) = ready!(look)?;
        reader.as_mut().consume(count);
        *total += count;
        if is_last {
            return Poll::Ready(Ok(*total));
        }
    }
}

pin_project! {
    /// The future of [`read_until`](crate::io::AsyncBufReadExt::read_until).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadUntil<'a, R: ?Sized> {
        reader: &'a mut R,
        delimiter: u8,
        target: &'a mut Vec<u8>,
        total: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadUntil<'a, R> {
    pub(in crate::io) fn new(
        reader: &'a mut R,
        delimiter: u8,
        target: &'a mut Vec<u8>,
    ) -> ReadUntil<'a, R> {
        ReadUntil {
            reader,
            delimiter,
            target,
            total: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadUntil<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        poll_read_until(reader, cx, *this.delimiter, this.target, this.total)
    }
}

pin_project! {
    /// The future of [`read_line`](crate::io::AsyncBufReadExt::read_line).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadLine<'a, R: ?Sized> {
        reader: &'a mut R,
        // Empty while the bytes are in `bytes`.
        target: &'a mut String,
        bytes: Vec<u8>,
        total: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadLine<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R, target: &'a mut String) -> ReadLine<'a, R> {
        ReadLine {
            reader,
            bytes: std::mem::take(target).into_bytes(),
            target,
            total: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLine<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        let read = ready!(poll_read_until(reader, cx, b'\n', this.bytes, this.total));
        let keep_partial = true;
        let bytes = std::mem::take(this.bytes);
        Poll::Ready(finish_text(
            read,
            bytes,
            *this.total,
            this.target,
            keep_partial,
        ))
    }
}
