//! Sets that their thread keeps until their coroutines have ended.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::current;
use super::tasks::LocalTasks;
use crate::sync::thread;
use crate::task::contain;

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    /// Sets with coroutines that have begun. Without a destructor, so it is there to the end.
    static KEPT: ManuallyDrop<RefCell<Vec<Rc<LocalTasks>>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    /// Some of them were dropped while the thread unwound.
    static HAS_ORPHANS: Cell<bool> = const { Cell::new(false) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static KEPT: ManuallyDrop<RefCell<Vec<Rc<LocalTasks>>>> =
        ManuallyDrop::new(RefCell::new(Vec::new()));
    static HAS_ORPHANS: Cell<bool> = Cell::new(false);
}

impl LocalTasks {
    /// The thread keeps this set until its coroutines have ended.
    pub(super) fn keep(self: &Rc<Self>) {
        if !self.is_kept.replace(true) {
            KEPT.with(|kept| kept.borrow_mut().push(self.clone()));
        }
    }

    /// The thread no longer keeps this set.
    pub(super) fn let_go(self: &Rc<Self>) {
        if self.is_kept.replace(false) {
            let let_go = KEPT.with(|kept| {
                let mut kept = kept.borrow_mut();
                let index = kept.iter().position(|set| Rc::ptr_eq(set, self));
                index.map(|index| kept.swap_remove(index))
            });
            drop(let_go);
        }
    }

    /// Leaves the coroutines of this set to [`finish_orphans`], or to the end of the thread.
    pub(super) fn make_orphan(&self) {
        self.is_orphan.set(true);
        HAS_ORPHANS.with(|orphans| orphans.set(true));
    }
}

/// Notes that a coroutine of the set that runs on this thread has begun.
pub(crate) fn note_coroutine() {
    if let Some(set) = current::current() {
        set.keep();
    }
}

/// Lets the coroutines of sets unwind that were dropped while the thread unwound, if it no longer
/// does: for the end of a call that has caught the panic.
pub(crate) fn finish_orphans() {
    if thread::panicking() || !HAS_ORPHANS.with(|orphans| orphans.replace(false)) {
        return;
    }
    let orphan = || {
        KEPT.with(|kept| {
            let kept = kept.borrow();
            kept.iter().find(|set| set.is_orphan.get()).cloned()
        })
    };
    while let Some(set) = orphan() {
        set.is_orphan.set(false);
        contain(|| set.finish());
    }
}

/// Ends the sets whose coroutines have begun on this thread and have not ended: the thread ends.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub(crate) fn finish_sets_of_thread() {
    while let Some(set) = KEPT.with(|kept| kept.borrow_mut().pop()) {
        set.is_kept.set(false);
        // A destructor that panics must not keep the others, nor the thread that joins this one.
        contain(|| set.finish());
    }
}
