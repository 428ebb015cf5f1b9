//! Reading everything up to the end.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{not_utf8, uninterrupted};
use crate::io::AsyncRead;
use crate::io::read_buf::GrowingVec;

pin_project! {
    /// The future of [`read_to_end`](crate::io::AsyncReadExt::read_to_end).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadToEnd<'a, R: ?Sized> {
        reader: &'a mut R,
        target: GrowingVec<&'a mut Vec<u8>>,
        total: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToEnd<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R, target: &'a mut Vec<u8>) -> ReadToEnd<'a, R> {
        ReadToEnd {
            reader,
            target: GrowingVec::new(target),
            total: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToEnd<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        poll_to_end(&mut **this.reader, this.target, this.total, cx)
    }
}

/// Fills the vector until a read appends nothing; `total` counts across polls.
fn poll_to_end<R: AsyncRead + Unpin + ?Sized, V: std::borrow::BorrowMut<Vec<u8>>>(
    reader: &mut R,
    target: &mut GrowingVec<V>,
    total: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    loop {
        let read = uninterrupted!({
            let mut reader = Pin::new(&mut *reader);
            reader.as_mut().announce_read_to_end();
            let (count, read) = target.fill(|buffer| reader.poll_read(cx, buffer));
            *total += count;
            read.map_ok(|()| count)
        });
        if ready!(read)? == 0 {
            return Poll::Ready(Ok(*total));
        }
    }
}

pin_project! {
    /// The future of [`read_to_string`](crate::io::AsyncReadExt::read_to_string).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadToString<'a, R: ?Sized> {
        reader: &'a mut R,
        // Empty while the bytes are in `bytes`.
        target: &'a mut String,
        bytes: GrowingVec<Vec<u8>>,
        total: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToString<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R, target: &'a mut String) -> ReadToString<'a, R> {
        ReadToString {
            reader,
            bytes: GrowingVec::new(std::mem::take(target).into_bytes()),
            target,
            total: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToString<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let read = ready!(poll_to_end(&mut **this.reader, this.bytes, this.total, cx));
        let keep_partial = false;
        let bytes = this.bytes.take();
        Poll::Ready(finish_text(
            read,
            bytes,
            *this.total,
            this.target,
            keep_partial,
        ))
    }
}

/// Makes text of what was read and puts it into `target`. Of `bytes` the last `new` ones were read,
/// the others were text before; if what was read is no text, only they are put back.
///
/// After an error of the reader the text before it is kept if `keep_partial`.
pub(super) fn finish_text(
    read: io::Result<usize>,
    mut bytes: Vec<u8>,
    new: usize,
    target: &mut String,
    keep_partial: bool,
) -> io::Result<usize> {
    let before = bytes.len() - new;
    if read.is_err() && !keep_partial {
        bytes.truncate(before);
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            *target = text;
            read
        }
        Err(error) => {
            let mut bytes = error.into_bytes();
            bytes.truncate(before);
            // It was text when it was taken.
            *target = String::from_utf8(bytes).unwrap_or_default();
            read.and(Err(not_utf8()))
        }
    }
}
