//! Threads that are inside of a local set without running it.
//!
//! A guard and a set that runs can be nested in any order, and guards can be dropped in any order.
//! So the guards are a list, from which each takes its own entry out, and an entry notes which set
//! ran when it was made: the newest of those made inside of the set that runs now counts.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::LocalSet;
use super::tasks::LocalTasks;

struct Entered {
    number: u64,
    set: Rc<LocalTasks>,
    /// The set that ran on this thread when the guard was made. Kept, so that no later set has its
    /// address.
    inside: Option<Rc<LocalTasks>>,
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    /// Without a destructor: guards in other thread-locals find it to the end.
    static ENTERED: ManuallyDrop<RefCell<Vec<Entered>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static ENTERED: ManuallyDrop<RefCell<Vec<Entered>>> =
        ManuallyDrop::new(RefCell::new(Vec::new()));
    static GUARDS: Cell<u64> = Cell::new(0);
}

/// The thread is inside of a local set until this is dropped; made by [`LocalSet::enter`].
#[must_use = "the thread leaves the set when the guard is dropped"]
pub struct LocalEnterGuard {
    number: u64,
    /// `!Send`: the entry is this thread's.
    thread: PhantomData<*const ()>,
}

impl LocalSet {
    /// Makes this set the one that [`spawn_local`](super::spawn_local) finds on this thread, until
    /// the guard is dropped. The tasks run when the set is awaited. Once the set is dropped, new
    /// tasks end as cancelled.
    pub fn enter(&self) -> LocalEnterGuard {
        let number = GUARDS.with(|guards| guards.replace(guards.get() + 1));
        let entered = Entered {
            number,
            set: self.tasks.clone(),
            inside: super::current::current(),
        };
        ENTERED.with(|all| all.borrow_mut().push(entered));
        LocalEnterGuard {
            number,
            thread: PhantomData,
        }
    }
}

impl Drop for LocalEnterGuard {
    fn drop(&mut self) {
        let own = ENTERED.with(|all| {
            let mut all = all.borrow_mut();
            let index = all.iter().position(|entered| entered.number == self.number);
            index.map(|index| all.remove(index))
        });
        // Not under the borrow: it may be the last reference to the set.
        drop(own);
    }
}

/// Returns the set of the newest guard that was made where the thread is now.
pub(super) fn newest(running: *const LocalTasks) -> Option<Rc<LocalTasks>> {
    ENTERED.with(|all| {
        let all = all.borrow();
        let is_here = |entered: &&Entered| {
            let inside = entered.inside.as_ref().map_or(std::ptr::null(), Rc::as_ptr);
            std::ptr::eq(inside, running)
        };
        all.iter()
            .rev()
            .find(is_here)
            .map(|newest| newest.set.clone())
    })
}

impl std::fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}
