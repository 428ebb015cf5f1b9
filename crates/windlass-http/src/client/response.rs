//! The body of a response, and the flag of its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use windlass_core::sync::Arc;
use windlass_core::sync::atomic::{AtomicBool, Ordering};

/// The body of a response, as it arrives. When it was read to its end, its connection serves the
/// next request; dropped before, the connection is closed.
#[derive(Debug)]
pub struct ResponseBody {
    body: Incoming,
    over: ResponseEnd,
}

/// Says that a response is over: its connection is free, or will be as soon as it notices, or
/// closed.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseEnd(Arc<AtomicBool>);

impl ResponseEnd {
    pub(super) fn is_set(&self) -> bool {
        // Relaxed: a hint; the connection itself says whether it is ready.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ResponseBody {
    pub(super) fn new(body: Incoming, over: ResponseEnd) -> ResponseBody {
        let body = ResponseBody { body, over };
        body.look();
        body
    }

    fn look(&self) {
        if self.body.is_end_stream() {
            self.over.set();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(None | Some(Err(_))) => self.over.set(),
            Poll::Ready(Some(Ok(_))) => self.look(),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.over.set();
    }
}
