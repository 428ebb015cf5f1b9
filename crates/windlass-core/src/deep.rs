//! Destructors that nest: an output that holds the handle of a task whose output holds a handle,
//! and so on. However long such a chain is, dropping it does not overflow the stack.
//!
//! Every [`nested`] call counts a level. After a few levels the next one runs on a fresh stack,
//! which the runtime provides, and there many more levels fit. Rejected: a queue of values that are
//! dropped later, by the outermost call. A value may borrow from a frame in between.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::context::Barrier;
use crate::tuning::{NESTED_DROPS_AT_FIRST, NESTED_DROPS_PER_STACK};

/// Calls the function on a fresh stack of at least a megabyte.
pub type Grow = fn(&mut dyn FnMut());

static GROW: OnceLock<Grow> = OnceLock::new();

/// From now on fresh stacks come from `grow`. The first call counts.
pub fn set_grow(grow: Grow) {
    let _ = GROW.set(grow);
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    /// Levels that are left on this stack.
    static LEFT: Cell<u32> = const { Cell::new(NESTED_DROPS_AT_FIRST) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static LEFT: Cell<u32> = Cell::new(NESTED_DROPS_AT_FIRST);
}

/// The levels that are left on a stack of its own, while its thread runs on another one.
#[derive(Debug)]
pub struct LevelsLeft(Cell<u32>);

impl Default for LevelsLeft {
    fn default() -> LevelsLeft {
        LevelsLeft(Cell::new(NESTED_DROPS_AT_FIRST))
    }
}

impl LevelsLeft {
    /// The thread goes over to this stack, or back from it.
    #[inline]
    pub fn exchange(&self) {
        LEFT.with(|left| left.swap(&self.0));
    }
}

/// Runs `f`, which drops a value that may hold more of its kind. Fresh stacks come from
/// [`set_grow`].
#[inline]
pub fn nested(f: impl FnOnce()) {
    nested_on(GROW.get().copied(), 1, f);
}

/// As [`nested`], for destructors whose frames are as large as those of so many levels.
#[inline]
pub(crate) fn nested_levels(levels: u32, f: impl FnOnce()) {
    nested_on(GROW.get().copied(), levels, f);
}

/// Does what [`nested`] does, with fresh stacks from `grow`, if there are any. Counts as so many
/// levels.
#[inline]
pub fn nested_on(grow: Option<Grow>, levels: u32, f: impl FnOnce()) {
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT.with(|left| left.set(self.0));
        }
    }
    let left = LEFT.with(Cell::get);
    let _restore = Restore(left);
    let Some(left) = left.checked_sub(levels) else {
        return on_fresh_stack(grow, f);
    };
    LEFT.with(|cell| cell.set(left));
    f();
}

#[cold]
fn on_fresh_stack(grow: Option<Grow>, f: impl FnOnce()) {
    let Some(grow) = grow else {
        return f();
    };
    LEFT.with(|left| left.set(NESTED_DROPS_PER_STACK));
    // A coroutine further down is not suspended by code on a stack that is not its own.
    let _barrier = Barrier::raise();
    let mut f = Some(f);
    grow(&mut || {
        if let Some(f) = f.take() {
            f();
        }
    });
}
