//! What the operating system does for us, and behind our back: `fork`.
//!
//! A child of `fork` has a copy of the runtime's memory but none of its threads. Using the runtime
//! there would wait for ever, so it panics instead. A handler that runs in the child counts the
//! forks; comparing that count is cheap enough for every spawn from outside.
#![allow(unsafe_code, reason = "system calls; see each block")]

use std::sync::Once;
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Remembers the process that a runtime was made in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process(u32);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Process {
    /// This process.
    pub(crate) fn current() -> Process {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            #[cfg(unix)]
            // SAFETY: the handler is async-signal-safe: one atomic addition.
            unsafe {
                libc::pthread_atfork(None, None, Some(count_fork));
            }
        });
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// True in the process the runtime was made in.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    /// # Panics
    /// In a child of `fork`.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self) {
        assert!(
            self.is_here(),
            "this runtime belongs to the parent process: after fork() without exec() its threads \
             do not exist; build a new Runtime in the child"
        );
    }
}

/// Sleeps for `time` with the kernel's finest timer, and not a moment less; the thread's timer slack
/// goes with it.
pub(crate) fn nanosleep(time: Duration) {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            static FINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !FINE.with(|fine| fine.replace(true)) {
            // SAFETY: takes no pointers; affects this thread's timers only.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
        }
    }
    let request = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as _,
    };
    // SAFETY: the request is valid, and the remainder is not asked for. An interrupted sleep is
    // shorter, and the caller looks at the clock.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &request, std::ptr::null_mut()) };
}
