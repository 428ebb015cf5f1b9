//! Where the waiter of a fork-join meets the thread that ends what it waits for.
//!
//! ```text
//! PENDING --set--> SET
//! PENDING --(the waiter)--> SLEEPING --set, and the setter wakes the thread--> SET
//! PENDING --(the waiter)--> SUSPENDED --set, and the setter has taken the waker--> SET
//! ```
//! A latch lies in the frame of the one who waits. **The rule of the frame: the thread that sets a
//! latch has read what it needs before, and touches nothing of the frame afterwards.** The waiter
//! may see the latch set at once, return, and the frame is gone, while the setter is still inside
//! `set`. So the waiter is a number there, copied before the exchange, and what wakes it (a parker)
//! lives with the pool, which the setter, one of its workers, keeps alive. A coroutine leaves its
//! waker instead. Once it has said SUSPENDED the waker is the setter's, who takes it out, then
//! sets, and then wakes; a coroutine that is resumed for another reason only looks again.
//!
//! Orderings. The Release of the exchange in `set` pairs with the Acquire loads in `is_set`,
//! `begin_sleep` and `poll`: the waiter sees the result. The Release of the exchange in `poll`
//! pairs with the Acquire load in `set`: the setter sees the waker.

use std::task::{Context, Waker};

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, Ordering};

const PENDING: u32 = 0;
const SLEEPING: u32 = 1;
const SET: u32 = 2;
const SUSPENDED: u32 = 3;

/// Set once, waited for by one worker.
#[derive(Debug)]
pub struct Latch {
    state: AtomicU32,
    /// The worker that took the job, plus one.
    thief: AtomicU32,
    waiter: u32,
    /// The waiter's while PENDING, the setter's while SUSPENDED.
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker has one owner at a time (see there); the rest is shared by design.
unsafe impl Sync for Latch {}

impl Latch {
    /// A latch that this worker will wait for.
    #[inline]
    pub fn new(waiter: usize) -> Latch {
        Latch {
            state: AtomicU32::new(PENDING),
            thief: AtomicU32::new(0),
            waiter: waiter as u32,
            waker: UnsafeCell::new(None),
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

    /// The worker that took the job; none if none did, or if it has not said so yet.
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

    /// The waiter looks from a coroutine. True: it is set; otherwise the context's waker will be
    /// called.
    pub fn poll(&self, cx: &Context<'_>) -> bool {
        // Acquire: pairs with the Release exchange in `set`.
        match self.state.load(Ordering::Acquire) {
            SET => return true,
            SUSPENDED => return false,
            _ => {}
        }
        let waker = cx.waker().clone();
        // SAFETY: PENDING: no other thread looks at it.
        self.waker.with_mut(|place| unsafe { *place = Some(waker) });
        // Release: pairs with the Acquire load in `set`. Acquire on failure: as above.
        self.state
            .compare_exchange(PENDING, SUSPENDED, Ordering::Release, Ordering::Acquire)
            .is_err()
    }

    /// Sets it; `wake` is called with the waiter if that sleeps.
    ///
    /// # Safety
    /// The rule of the frame: `latch` is alive until it is set, and so this is called once and the
    /// caller touches nothing of the frame afterwards.
    pub unsafe fn set(latch: *const Latch, wake: impl FnOnce(usize)) {
        // SAFETY: not set yet, so the frame is there. A pointer and not a reference is passed in,
        // because the frame may be gone before this returns.
        let (waiter, mut state) =
            unsafe { ((*latch).waiter, (*latch).state.load(Ordering::Acquire)) };
        let waker = loop {
            let waker = if state == SUSPENDED {
                // SAFETY: SUSPENDED: the waker is ours, and the waiter does not leave before it is
                // SET.
                unsafe { (*latch).waker.with_mut(|place| (*place).take()) }
            } else {
                None
            };
            // SAFETY: as above: it is this exchange that sets it. Release: pairs with the Acquire
            // loads of the waiter. Acquire on failure: pairs with the Release exchange in `poll`.
            let set = unsafe {
                (*latch)
                    .state
                    .compare_exchange(state, SET, Ordering::Release, Ordering::Acquire)
            };
            match set {
                Ok(_) => break waker,
                // The waiter went to sleep meanwhile.
                Err(changed) => state = changed,
            }
        };
        match (state, waker) {
            (SLEEPING, _) => wake(waiter as usize),
            (_, Some(waker)) => waker.wake(),
            _ => {}
        }
    }
}
