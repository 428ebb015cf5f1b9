//! The cooperative budget, which is Windlass's own.

use std::cell::Cell;
use std::fmt;
use std::task::{Context, Poll};

use windlass_core::task::{BudgetUnit, spend};

pub use windlass_runtime::coop::{
    Coop, Unconstrained, consume_budget, cooperative, has_budget_remaining, unconstrained,
};

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
