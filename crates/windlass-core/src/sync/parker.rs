//! One thread's place to sleep, and the token that wakes it.
//!
//! ```text
//! EMPTY --park--> PARKED --unpark--> TOKEN --(the sleeper takes it)--> EMPTY
//! EMPTY --unpark--> TOKEN --park (returns at once)--> EMPTY
//! EMPTY --sleep_elsewhere--> ELSEWHERE --unpark--> TOKEN, and the caller has to ring there
//! ```
//! The token carries what was written before it: the `swap(TOKEN, Release)` in `unpark` pairs
//! with the `swap(EMPTY, Acquire)` in `take`.

use super::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const TOKEN: u32 = 2;
const ELSEWHERE: u32 = 3;

/// What `unpark` found, and what its caller still has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Wakeup {
    /// The thread was awake and finds the token at its next park.
    Posted,
    /// The thread slept here and has been woken.
    Woken,
    /// The thread sleeps in the driver: ring there.
    Elsewhere,
}

/// A futex with one token. No timeout: a wake-up that is lost stays lost, so none may be.
#[derive(Debug)]
pub struct Parker {
    state: AtomicU32,
    #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
    lock: super::Mutex<()>,
    #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
    notified: super::Condvar,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Parker {
    /// Makes an empty one.
    pub fn new() -> Self {
        Parker {
            state: AtomicU32::new(EMPTY),
            #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
            lock: super::Mutex::new(()),
            #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
            notified: super::Condvar::new(),
        }
    }

    /// Takes the token if one is there.
    pub fn take(&self) -> bool {
        // Acquire: pairs with the Release swap in `unpark`.
        self.state.load(Ordering::Relaxed) == TOKEN
            && self.state.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Sleeps until there is a token and takes it. Only the owning thread may call this.
    pub fn park(&self) {
        while !self.take() {
            // Relaxed: a failed exchange means a token, whose contents `take` acquires.
            if self
                .state
                .compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                self.sleep();
            }
        }
    }

    /// True while the owner sleeps here. For the watchdog: it may change at any time.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PARKED
    }

    /// Announces that the owner is about to sleep in the driver. False: there is a token, do not.
    pub fn sleep_elsewhere(&self) -> bool {
        self.state
            .compare_exchange(EMPTY, ELSEWHERE, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Ends what `sleep_elsewhere` announced; a token that came meanwhile stays for `park`.
    pub fn back_from_elsewhere(&self) {
        let _ = self
            .state
            .compare_exchange(ELSEWHERE, EMPTY, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Posts the token and wakes the owner if it sleeps here.
    pub fn unpark(&self) -> Wakeup {
        // Release: pairs with the Acquire swap in `take`.
        match self.state.swap(TOKEN, Ordering::Release) {
            PARKED => {
                self.wake();
                Wakeup::Woken
            }
            ELSEWHERE => Wakeup::Elsewhere,
            _ => Wakeup::Posted,
        }
    }

    #[cfg(all(target_os = "linux", not(any(windlass_loom, windlass_shuttle))))]
    fn sleep(&self) {
        let word = self.state.as_ptr();
        while self.state.load(Ordering::Relaxed) == PARKED {
            // SAFETY: `word` points at our own state, which outlives the call; the kernel only
            // compares it and sleeps while it holds PARKED.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    word,
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    PARKED,
                    std::ptr::null::<libc::timespec>(),
                );
            }
        }
    }

    #[cfg(all(target_os = "linux", not(any(windlass_loom, windlass_shuttle))))]
    fn wake(&self) {
        // SAFETY: only the address is used, as a key; the sleeper that owns the word may already
        // have gone on, in which case no thread is woken.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.state.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
    fn sleep(&self) {
        let mut guard = self.lock.lock();
        while self.state.load(Ordering::Relaxed) == PARKED {
            guard = self.notified.wait(guard);
        }
    }

    #[cfg(any(windlass_loom, windlass_shuttle, not(target_os = "linux")))]
    fn wake(&self) {
        drop(self.lock.lock());
        self.notified.notify_one();
    }
}
