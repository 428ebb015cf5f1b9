//! Looking at a reader's buffer.
#![allow(
    unsafe_code,
    reason = "a lifetime that the compiler cannot see yet; see the block"
)]

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::io::AsyncBufRead;

pin_project! {
    /// The future of [`fill_buf`](crate::io::AsyncBufReadExt::fill_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct FillBuf<'a, R: ?Sized> {
        // None once the buffer was handed out: it borrows the reader from then on.
        reader: Option<&'a mut R>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> FillBuf<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R) -> FillBuf<'a, R> {
        FillBuf {
            reader: Some(reader),
            _pinned: PhantomPinned,
        }
    }
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&'a [u8]>> {
        let this = self.project();
        let reader = this.reader.as_mut().expect("Polled after completion.");
        let found = ready!(Pin::new(&mut **reader).poll_fill_buf(cx));
        let found = found.map(std::ptr::from_ref);
        // From here on this future has no reader to reach the bytes by.
        *this.reader = None;
        // SAFETY: `poll_fill_buf` borrows the bytes from the reader, which was borrowed for 'a. The
        // only path to the reader, `this.reader`, has just been given up without another use, so
        // for the rest of 'a nothing changes the bytes.
        Poll::Ready(found.map(|bytes| unsafe { &*bytes }))
    }
}
