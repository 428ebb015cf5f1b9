//! A body with something that is dropped after it.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use windlass_core::task::{Body, Ending};

pin_project! {
    /// A body, and a guard that says when it is gone. The fields are dropped in this order.
    pub(super) struct Guarded<B, G> {
        #[pin]
        body: B,
        guard: G,
    }
}

impl<B, G> Guarded<B, G> {
    pub(super) fn new(body: B, guard: G) -> Guarded<B, G> {
        Guarded { body, guard }
    }
}

impl<B: Body, G> Body for Guarded<B, G> {
    type Output = B::Output;

    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.project().body.resume(cx)
    }

    fn ending(&self) -> Ending {
        self.body.ending()
    }
}
