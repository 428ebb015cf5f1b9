//! The cooperative budget, which is Windlass's own.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use windlass_core::task::{Budget, BudgetUnit, spend};

/// Spends a unit of the budget, and yields if none is left.
pub async fn consume_budget() {
    poll_fn(|cx| spend(cx).map(BudgetUnit::made_progress)).await;
}

/// Returns true if the running poll has budget left, or is not limited.
pub fn has_budget_remaining() -> bool {
    Budget::current().remaining() != Some(0)
}

/// Runs a future as one that spends a unit of the budget each time it is ready.
pub fn cooperative<F: Future>(future: F) -> Coop<F> {
    Coop { future }
}

pin_project! {
    /// The future of [`cooperative`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Coop<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let unit = ready!(spend(cx));
        let output = ready!(self.project().future.poll(cx));
        unit.made_progress();
        Poll::Ready(output)
    }
}

/// Runs a future that is not held back by the budget.
///
/// Windlass has no unlimited budget yet, so the future is limited as any other.
pub fn unconstrained<F>(future: F) -> Unconstrained<F> {
    Unconstrained { future }
}

pin_project! {
    /// The future of [`unconstrained`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}
