//! The request that spawns a future, whatever starts it: boxed if it is large, in a span if a
//! subscriber listens.

use std::future::Future;

use windlass_core::task::{Body, FutureBody, JoinHandle, Options, SpawnRequest};

#[cfg(feature = "tracing")]
use crate::task_span::{self, InSpan};

/// A place where tasks start: a runtime, a dispatcher, or wherever this thread is.
pub(crate) trait Starter {
    /// Starts the task of a request.
    fn start<B>(self, request: SpawnRequest<B>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static;
}

/// Starts a future as a task.
#[inline]
pub(crate) fn start_future<F>(
    future: F,
    options: Options,
    starter: impl Starter,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match is_large::<F>() {
        true => start_as_it_is(Box::pin(future), options, starter),
        false => start_as_it_is(future, options, starter),
    }
}

/// Returns true if a future is so large that a spawn puts it into a box first. A spawn moves its
/// future through several calls, and without optimisation each of them has a copy on its stack:
/// the future of an HTTP client overflowed the stack of a test's thread.
const fn is_large<F>() -> bool {
    size_of::<F>() > if cfg!(debug_assertions) { 2048 } else { 16384 }
}

#[inline]
fn start_as_it_is<F>(future: F, options: Options, starter: impl Starter) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(feature = "tracing")]
    if let Some(span) = task_span::of(&options) {
        let body = FutureBody(InSpan::new(future, span));
        return starter.start(SpawnRequest::new(body, options));
    }
    starter.start(SpawnRequest::new(FutureBody(future), options))
}
