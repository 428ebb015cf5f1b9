//! The cooperative budget of a task's poll, for code that is not a leaf of ours.
//!
//! Each poll of a task has a budget. Channels, locks, timers and sockets spend it, and report
//! pending when it is gone, so that a loop over values that are always there still gives way.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use windlass_core::task::{Budget, spend, unlimited};

/// Returns true if the running poll has budget left; always true outside of a task.
pub fn has_budget_remaining() -> bool {
    Budget::current().remaining() != Some(0)
}

/// Spends one unit of the running poll's budget, and yields if there is none: for long loops that
/// wait for nothing. Cancel-safe.
pub async fn consume_budget() {
    poll_fn(|cx| {
        ready!(spend(cx)).made_progress();
        Poll::Ready(())
    })
    .await;
}

/// Pending, with a wake-up arranged, if the running poll has no budget left. Spends none: for
/// `select!`, of whose branches the one that gives way must not be passed over each time.
#[doc(hidden)]
pub fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    match has_budget_remaining() {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}

/// Lets a future run without a budget: its leaves are never held back, and it may keep its worker
/// for long.
pub fn unconstrained<F>(inner: F) -> Unconstrained<F> {
    Unconstrained { inner }
}

/// Lets a future spend one unit of the budget for each of its results: for leaves of other
/// libraries, which spend none.
pub fn cooperative<F: Future>(inner: F) -> Coop<F> {
    Coop { inner }
}

pin_project! {
    /// The future of [`unconstrained`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let inner = self.project().inner;
        unlimited(|| inner.poll(cx))
    }
}

pin_project! {
    /// The future of [`cooperative`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Coop<F> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let unit = ready!(spend(cx));
        let output = ready!(self.project().inner.poll(cx));
        unit.made_progress();
        Poll::Ready(output)
    }
}
