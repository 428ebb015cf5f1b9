//! A `tracing` span per task (feature `tracing`): what happens in its polls is inside.
//!
//! The span `task` of the target `windlass::task` has the task's name and where it was spawned; its
//! parent is the span in which it was spawned. Events say when it was spawned, completed, cancelled
//! or panicked. Without a subscriber at the level DEBUG, a spawn costs one load more and nothing
//! else.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::Span;
use windlass_core::task::Options;

/// Returns the span for a new task; none if no subscriber listens.
#[inline]
pub(crate) fn of(options: &Options) -> Option<Span> {
    if tracing::level_filters::LevelFilter::current() < tracing::Level::DEBUG {
        return None;
    }
    made(options)
}

#[cold]
fn made(options: &Options) -> Option<Span> {
    let location = options.location;
    let span = tracing::debug_span!(
        target: "windlass::task",
        "task",
        name = options.name.as_deref(),
        file = location.file(),
        line = location.line(),
    );
    if span.is_disabled() {
        return None;
    }
    tracing::debug!(target: "windlass::task", parent: &span, "spawned");
    Some(span)
}

pin_project! {
    /// A future in its span.
    pub(crate) struct InSpan<F> {
        // None only while it is dropped or taken out.
        #[pin]
        future: Option<F>,
        span: Span,
        end: End,
    }

    impl<F> PinnedDrop for InSpan<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _inside = this.span.enter();
            let end = *this.end;
            this.future.set(None);
            end.report();
        }
    }
}

/// Says, in the span that the task would have had, that `try_spawn` refused it.
pub(crate) fn report_refusal(options: &Options) {
    if let Some(span) = of(options) {
        span.in_scope(|| tracing::debug!(target: "windlass::task", "refused"));
    }
}

/// How it ended, as far as is known.
#[derive(Debug, Clone, Copy)]
enum End {
    NotYet,
    Completed,
    Panicked,
}

impl End {
    /// When nothing is left of it.
    fn report(self) {
        match self {
            End::NotYet => tracing::debug!(target: "windlass::task", "cancelled"),
            End::Panicked => tracing::debug!(target: "windlass::task", "panicked"),
            End::Completed => tracing::debug!(target: "windlass::task", "completed"),
        }
    }
}

/// The span of a body that is no future; it says how that ended when it is dropped, after it.
#[derive(Debug)]
pub(crate) struct BodySpan {
    span: Span,
    end: End,
}

impl BodySpan {
    /// Returns the span for a new body; none if no subscriber listens.
    pub(crate) fn of(options: &Options) -> Option<BodySpan> {
        let span = of(options)?;
        Some(BodySpan {
            span,
            end: End::NotYet,
        })
    }

    pub(crate) fn enter(&self) -> tracing::span::Entered<'_> {
        self.span.enter()
    }

    pub(crate) fn completed(&mut self) {
        self.end = End::Completed;
    }

    pub(crate) fn panicked(&mut self) {
        self.end = End::Panicked;
    }
}

impl Drop for BodySpan {
    fn drop(&mut self) {
        let _inside = self.span.enter();
        self.end.report();
    }
}

impl<F> InSpan<F> {
    pub(crate) fn new(future: F, span: Span) -> InSpan<F> {
        InSpan {
            future: Some(future),
            span,
            end: End::NotYet,
        }
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _inside = this.span.enter();
        let Some(future) = this.future.as_pin_mut() else {
            unreachable!("only the drop takes it away");
        };
        // What a panic leaves behind.
        *this.end = End::Panicked;
        let polled = future.poll(cx);
        *this.end = match polled {
            Poll::Ready(_) => End::Completed,
            Poll::Pending => End::NotYet,
        };
        polled
    }
}
