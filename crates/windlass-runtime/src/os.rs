//! What the operating system does behind our back: `fork`.
//!
//! A child of `fork` has a copy of the runtime's memory but none of its threads. Using the runtime
//! there would wait for ever, so it panics instead. A handler that runs in the child counts the
//! forks; comparing that count is cheap enough for every spawn from outside.
#![allow(unsafe_code, reason = "registers a fork handler; see each block")]

use std::sync::Once;

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
