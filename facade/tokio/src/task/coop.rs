//! The cooperative budget, which is Windlass's own.

use std::cell::Cell;
use std::fmt;
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

/// Spends a unit of the budget, which comes back unless the caller made progress. Pending, with a
/// wake-up arranged, if none is left.
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    spend(cx).map(|unit| RestoreOnPending(Cell::new(Some(unit))))
}

/// A unit that was spent by [`poll_proceed`]; dropped, it is given back.
#[must_use = "call made_progress() when the caller is ready"]
pub struct RestoreOnPending(Cell<Option<BudgetUnit>>);

impl RestoreOnPending {
    /// Uses the unit up.
    pub fn made_progress(&self) {
        if let Some(unit) = self.0.take() {
            unit.made_progress();
        }
    }
}

impl fmt::Debug for RestoreOnPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestoreOnPending")
    }
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
