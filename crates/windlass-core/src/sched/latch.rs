//! Where the waiter of a fork-join meets whoever ends what it waits for.
//!
//! ```text
//! PENDING --set--> SET
//! PENDING --(the waiter)--> SLEEPING --set, and the setter wakes the waiter--> SET
//! ```
//! A latch lies in the frame of the one who waits. **The rule of the frame: whoever sets a latch has read
//! what it needs before, and touches nothing of the frame afterwards.** The waiter may see the latch
//! set at once, return, and the frame is gone, while the setter is still inside `set`. So the waiter
//! is a number there, copied before the exchange, and what wakes it (a parker) lives with the pool,
//! which the setter, one of its workers, keeps alive.
//!
//! Orderings. The Release of the exchange in `set` pairs with the Acquire loads in `is_set` and
//! `begin_sleep`: the waiter sees the result.

use crate::sync::atomic::{AtomicU32, Ordering};

const PENDING: u32 = 0;
const SLEEPING: u32 = 1;
const SET: u32 = 2;

/// Set once, waited for by one worker.
#[derive(Debug)]
pub struct Latch {
    state: AtomicU32,
    /// The worker that took the job, plus one.
    thief: AtomicU32,
    waiter: u32,
}

impl Latch {
    /// A latch that this worker will wait for.
    #[inline]
    pub fn new(waiter: usize) -> Latch {
        Latch {
            state: AtomicU32::new(PENDING),
            thief: AtomicU32::new(0),
            waiter: waiter as u32,
        }
    }

    /// True once it is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release exchange in `set`.
        self.state.load(Ordering::Acquire) == SET
    }

    /// The thief says who it is, before it begins.
    pub fn stolen_by(&self, worker: usize) {
        // Relaxed: a hint where to look; what may be taken there, the deque decides (`fork.rs`).
        self.thief.store(worker as u32 + 1, Ordering::Relaxed);
    }

    /// Who took the job; none: nobody, or it has not said so yet.
    pub fn thief(&self) -> Option<usize> {
        let thief = self.thief.load(Ordering::Relaxed);
        thief.checked_sub(1).map(|thief| thief as usize)
    }

    /// The waiter is about to sleep. False: the latch is set.
    #[must_use]
    pub fn begin_sleep(&self) -> bool {
        // Acquire on failure: pairs with the Release exchange in `set`.
        self.state
            .compare_exchange(PENDING, SLEEPING, Ordering::Relaxed, Ordering::Acquire)
            .is_ok()
    }

    /// Sets it; `wake` is called with the waiter if that sleeps.
    ///
    /// # Safety
    /// The rule of the frame: `latch` is alive until it is set, and so this is called once and the
    /// caller touches nothing of the frame afterwards.
    pub unsafe fn set(latch: *const Latch, wake: impl FnOnce(usize)) {
        // SAFETY: not set yet, so the frame is there.
        let waiter = unsafe { (*latch).waiter };
        // SAFETY: as above; a pointer and not a reference is passed in, because the frame may be gone
        // before this returns.
        // Release: pairs with the Acquire loads in `is_set` and `begin_sleep`.
        if unsafe { (*latch).state.swap(SET, Ordering::Release) } == SLEEPING {
            wake(waiter as usize);
        }
    }
}
