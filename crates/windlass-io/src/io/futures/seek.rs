//! Moving a position.

use std::future::Future;
use std::io::{self, SeekFrom};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::io::AsyncSeek;

pin_project! {
    /// The future of [`seek`](crate::io::AsyncSeekExt::seek).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Seek<'a, S: ?Sized> {
        target: &'a mut S,
        // None once the move was begun.
        position: Option<SeekFrom>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, S: ?Sized> Seek<'a, S> {
    pub(in crate::io) fn new(target: &'a mut S, position: SeekFrom) -> Seek<'a, S> {
        Seek {
            target,
            position: Some(position),
            _pinned: PhantomPinned,
        }
    }
}

impl<S: AsyncSeek + Unpin + ?Sized> Future for Seek<'_, S> {
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        let mut target = Pin::new(&mut **this.target);
        if let Some(position) = *this.position {
            // An earlier move, of a future that was dropped, may still be under way.
            ready!(target.as_mut().poll_complete(cx))?;
            target.as_mut().start_seek(position)?;
            *this.position = None;
        }
        target.poll_complete(cx)
    }
}
