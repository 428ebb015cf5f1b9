//! The cooperative budget of a single poll.
//!
//! Every leaf that can be ready (a channel, a lock, a timer, a join) spends one unit before it
//! reports so. When the units of this poll are gone it reports pending instead and asks for
//! another poll, so that a loop over always-ready leaves still gives way.

use std::task::{Context, Poll};

use crate::context;

/// What is left of the running poll's budget. Plain threads have none and are never stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(Option<u8>);

impl Budget {
    /// The budget of the poll that runs on this thread.
    pub fn current() -> Budget {
        Budget(context::budget())
    }

    /// Units left; none: unlimited.
    pub fn remaining(self) -> Option<u8> {
        self.0
    }
}

/// Runs `f`, a part of a poll, without a limit: its leaves are never held back.
pub fn unlimited<R>(f: impl FnOnce() -> R) -> R {
    context::with_unlimited_budget(f)
}

/// One spent unit: it comes back unless the leaf says that it made progress.
#[derive(Debug)]
#[must_use = "call made_progress() when the leaf is ready"]
pub struct BudgetUnit {
    refund: bool,
}

impl BudgetUnit {
    /// The leaf is ready; the unit is used up.
    #[inline]
    pub fn made_progress(mut self) {
        self.refund = false;
    }
}

impl Drop for BudgetUnit {
    #[inline]
    fn drop(&mut self) {
        if self.refund {
            context::refund_budget();
        }
    }
}

/// Spends one unit of the running poll's budget; pending (with a wake-up arranged) when it is gone.
#[inline]
pub fn spend(cx: &mut Context<'_>) -> Poll<BudgetUnit> {
    match context::spend_budget() {
        context::Spend::Unlimited => Poll::Ready(BudgetUnit { refund: false }),
        context::Spend::Spent => Poll::Ready(BudgetUnit { refund: true }),
        context::Spend::Exhausted => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}
